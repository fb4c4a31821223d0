"""Expectations on what containers show of their devices, read from inside them."""
