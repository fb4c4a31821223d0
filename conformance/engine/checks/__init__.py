"""One module for each kind of expectation: how it is evaluated, once, now."""
