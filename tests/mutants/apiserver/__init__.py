"""Defects of what the API server takes, refuses, stores and shows."""
