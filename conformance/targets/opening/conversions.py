"""What the text of an option means, where it is more than a name, a number or a path."""

from __future__ import annotations

import shlex

from kube.base.errors import UsageError


def gates_of(settings: tuple[str, ...]) -> dict[str, bool]:
    """Return gate -> on or off, from NAME=true and NAME=false. Raises UsageError."""
    gates: dict[str, bool] = {}
    for text in settings:
        name, _, value = text.partition("=")
        if value not in {"true", "false"} or not name:
            raise UsageError(f"--feature-gate {text!r}: write NAME=true or NAME=false")
        on = value == "true"
        if gates.setdefault(name, on) != on:
            raise UsageError(f"--feature-gate {name} is set to both true and false")
    return gates


def words_of(text: str, option: str = "--driver-command") -> tuple[str, ...]:
    """Return a command line's words, without a shell. Raises UsageError: a quote is not closed."""
    try:
        return tuple(shlex.split(text))
    except ValueError as error:
        raise UsageError(f"{option} {text!r}: {error}") from None


def version_of(text: str, option: str = "--kubernetes") -> str:
    """Return a version whose rules are known; for a minor alone, its pinned patch.

    Raises UsageError: it is no version, or its rules are not known.
    """
    from localkube.binaries.versions import full_version
    from reference_allocator.gates import gates_for_version

    try:
        gates_for_version(text)
        return full_version(text).removeprefix("v")
    except ValueError as error:
        raise UsageError(f"{option}: {error}") from None


def churn_seconds_of(text: str) -> float:
    """The seconds of --churn-time. Raises UsageError: it is no duration, or longer than an hour."""
    from conformance.scenario.base import parse_duration

    try:
        return parse_duration(text)
    except ValueError as error:
        raise UsageError(f"--churn-time {text!r}: {error}") from None
