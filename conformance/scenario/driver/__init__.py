"""What the suite must know of a driver: its profile, and what it says of containers."""
