"""The step ``churn``: random operations from a seed, invariants at every resourceVersion."""
