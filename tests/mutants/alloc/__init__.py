"""Defects in choosing devices, written from what tests/statements/alloc*.yaml say."""
