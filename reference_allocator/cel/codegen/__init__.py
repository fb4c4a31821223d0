"""Python code for a checked tree: the fast path of the evaluation."""
