"""The evaluator that defines every result (cel-go's ``interpreter``)."""
