"""Which features meet in the shipped scenarios, and the page pairs.md that says so.

What the page cannot have from scenarios is in reasons.yaml: why two features cannot meet, or need
no scenario where they do.
"""
