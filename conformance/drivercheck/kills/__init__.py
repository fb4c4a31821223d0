"""Killing a driver within a call: at every change of a file, or at moments where that cannot be."""
