"""Values of CEL expressions and the operators that work on them (cel-go's ``common/types``)."""
