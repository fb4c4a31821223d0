"""Opaque configuration of claims and classes: decoded strictly, applied by prepare."""
