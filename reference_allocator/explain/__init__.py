"""The reasons why there is no allocation, for people: which rule removed how many devices."""

from reference_allocator.explain.explainer import explain
from reference_allocator.explain.explanation import Explanation

__all__ = ["Explanation", "explain"]
