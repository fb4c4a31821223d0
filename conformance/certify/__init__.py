"""Conformance reports: made from a result file, and checked against it by somebody else."""
