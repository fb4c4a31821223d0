"""The estimate of what an expression can cost at most, for which the API may reject it.

The unit and the numbers are cel-go's with Kubernetes' estimators.
"""
