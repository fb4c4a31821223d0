"""MIG devices: which exist, which could be made, and making them for claims."""
