"""Defects of the controllers, written from Kubernetes' sources."""
