"""How a scenario can go wrong: the target's fault, or ours."""

from __future__ import annotations


class Interrupted(Exception):  # noqa: N818 -- the user's wish, not an error
    """The run was asked to stop; the scenario is cleaned up and counts as lost."""
