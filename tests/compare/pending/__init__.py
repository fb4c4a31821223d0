"""Situations in which a pod waits: made, explained, changed as the explanation says, and ended."""
