"""YAML documents: read with the line of every value, and checked against their models."""
