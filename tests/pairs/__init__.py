"""Which features meet in the shipped scenarios, and the page docs/pairs.md that says so.

`python -m tests.pairs` writes it. What the page cannot have from scenarios is in reasons.yaml: why
two features cannot meet, or need no scenario where they do.
"""
