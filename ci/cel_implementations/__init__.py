"""Other implementations of CEL on selectors as people write them: programs, results, a page."""
