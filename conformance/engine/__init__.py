"""Runs scenarios against a target: steps, expectations, events, cleanup."""
