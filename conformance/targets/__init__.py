"""What a scenario runs against: one protocol (seam), two implementations (reference, cluster)."""
