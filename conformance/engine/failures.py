"""How a scenario can go wrong: the target's fault, or ours."""

from __future__ import annotations


class Divergence(AssertionError):  # noqa: N818 -- it is a finding about the target, not an error
    """The target did not do what the scenario says. The scenario has failed.

    Attributes:
        expected: what the scenario says, in a line.
        found: what was there instead.
    """

    def __init__(self, expected: str, found: str) -> None:
        super().__init__(f"expected {expected}; found {found}")
        self.expected = expected
        self.found = found


class Interrupted(Exception):  # noqa: N818 -- the user's wish, not an error
    """The run was asked to stop; the scenario is cleaned up and counts as lost."""
