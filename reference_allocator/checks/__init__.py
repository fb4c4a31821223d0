"""The rules of an allocation, each stated as a check of a finished one.

These modules share the API types, CEL and the single-object predicates (does a node match, is a
taint tolerated) with the search, and nothing else: what a search builds up step by step is stated
here as a property of the result, so that one mistake does not hide in both.
"""
