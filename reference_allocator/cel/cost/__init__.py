"""What an expression can cost at most, by its text, for which the API may reject it.

The unit and the numbers are cel-go's with Kubernetes' estimators.
"""
