"""Protobuf messages as values: building them, and what an ``Any`` holds."""
