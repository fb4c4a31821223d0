"""Scenarios: their model, how they are read from YAML, checked, and given the driver's names."""
