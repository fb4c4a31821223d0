"""Values of CEL expressions and the functions that work on them."""
