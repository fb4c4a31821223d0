"""What a scenario runs against: one protocol, two implementations (reference, cluster)."""
