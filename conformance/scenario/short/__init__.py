"""Scenarios as people write them, in short, become what the rest of the suite knows."""
