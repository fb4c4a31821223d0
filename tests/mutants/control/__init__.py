"""Defects of controllers and scheduler, written from Kubernetes' sources without the scenarios."""
