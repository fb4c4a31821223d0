"""The API server: what is stored, in which versions, by which rules."""
