"""Defects of a kubelet."""
