"""What a run makes in a cluster, and how it is removed again."""
