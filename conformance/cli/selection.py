"""Which scenarios a command is about."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from fnmatch import fnmatchcase
from pathlib import Path

from conformance.data import scenarios_dir
from conformance.errors import UsageError
from conformance.scenario.loader import LoadedScenario, default_paths, load_scenarios
from conformance.scenario.registry import load_registry


class Tier(StrEnum):
    """What a scenario needs; see docs/scenarios.md."""

    ALLOCATION = "allocation"
    NODE = "node"
    DEVICE = "device"


class Level(StrEnum):
    """What a scenario counts for."""

    CORE = "core"
    EXTENDED = "extended"


def select(
    paths: Sequence[Path],
    tiers: Sequence[Tier] | None = None,
    levels: Sequence[Level] | None = None,
    features: Sequence[str] | None = None,
    names: Sequence[str] | None = None,
) -> list[LoadedScenario]:
    """The scenarios below ``paths`` (all shipped ones if empty) that fit every filter.

    Raises:
        UsageError: a file is wrong, a feature is unknown, or nothing fits.
    """
    root = scenarios_dir()
    registry = load_registry(root / "features.yaml")
    unknown = sorted(set(features or ()) - set(registry.features))
    if unknown:
        known = ", ".join(sorted(registry.features))
        raise UsageError(f"unknown feature {', '.join(unknown)}; known are {known}")
    for path in paths:
        check_path(path)
    scenarios = load_scenarios(list(paths) or default_paths(root), root, registry)
    found = [
        item
        for item in scenarios
        if (not tiers or item.scenario.spec.tier in tiers)
        and (not levels or item.scenario.spec.level in levels)
        and (not features or item.scenario.spec.feature in features)
        and (not names or any(_like(item.id, name) for name in names))
    ]
    if not found:
        raise UsageError("no scenario fits what was asked for; see `dra-conformance list`")
    return found


def check_path(path: Path) -> None:
    """See that there is something at a path.

    Raises:
        UsageError: there is not, or the system refuses even to look (a name that is too long).
    """
    try:
        path.stat()
    except (OSError, ValueError) as error:
        said = error.strerror if isinstance(error, OSError) else str(error)
        if isinstance(error, FileNotFoundError):
            said = "no such file or folder"
        text = str(path)
        named = text if len(text) <= 200 else f"{text[:100]}...{text[-50:]}"
        raise UsageError(f"{named}: {said}; check the path") from None


def _like(identity: str, pattern: str) -> bool:
    """A glob over the id, or a part of it where the pattern has no wildcard."""
    if any(char in pattern for char in "*?["):
        return fnmatchcase(identity, pattern)
    return pattern in identity
