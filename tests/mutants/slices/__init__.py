"""Defects of what the API server owes of slices, taint rules, reports on devices and pods."""
