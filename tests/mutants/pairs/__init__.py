"""Defects that sit where two features meet: each feature is sound alone."""
