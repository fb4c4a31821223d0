"""All checks, in the order in which they run."""

from __future__ import annotations

from collections.abc import Sequence
from fnmatch import fnmatchcase
from typing import Final

from conformance.drivercheck.check import Check
from conformance.drivercheck.checks import (
    cdi,
    concurrent,
    health,
    hostile,
    prepare,
    refusing,
    registration,
    restart,
    slices,
    unprepare,
)
from conformance.errors import UsageError

CHECKS: Final[tuple[Check, ...]] = tuple(
    check
    for module in (
        registration,
        slices,
        prepare,
        refusing,
        unprepare,
        cdi,
        concurrent,
        hostile,
        health,
        restart,
    )
    for check in module.section.checks
)


def chosen(patterns: Sequence[str]) -> tuple[Check, ...]:
    """The checks that patterns name (wildcards or a section), by default all. Raises UsageError."""
    for pattern in patterns:
        if not any(_matches(check, pattern) for check in CHECKS):
            sections = ", ".join(dict.fromkeys(check.name.partition("/")[0] for check in CHECKS))
            raise UsageError(
                f"no check is named {pattern!r}; sections are {sections}; --list names all checks"
            )
    if not patterns:
        return CHECKS
    return tuple(c for c in CHECKS if any(_matches(c, pattern) for pattern in patterns))


def _matches(check: Check, pattern: str) -> bool:
    return fnmatchcase(check.name, pattern) or check.name.startswith(f"{pattern}/")
