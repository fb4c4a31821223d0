"""Defects in choosing devices."""
