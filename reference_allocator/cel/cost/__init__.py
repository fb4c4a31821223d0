"""What an expression costs: at most, by its text, and actually, when it is evaluated.

The unit and the numbers are cel-go's with Kubernetes' estimators, because the API rejects an
expression by its estimate and the evaluation stops at a limit.
"""
