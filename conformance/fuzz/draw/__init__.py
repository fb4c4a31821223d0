"""Draws problems: nodes, what drivers publish, and claims, from a seed."""
