"""The rules of an allocation, each stated as a check of a finished one.

These modules share the API types, CEL and the rules about single objects (does a node match, is a
taint tolerated) with the search, and nothing else: what a search builds up step by step is stated
here as a property of the result, so that one mistake does not hide in both.
"""

from reference_allocator.checks.case import SelectorProblems, Violation
from reference_allocator.checks.checker import check

__all__ = ["SelectorProblems", "Violation", "check"]
