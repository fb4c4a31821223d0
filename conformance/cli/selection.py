"""Which scenarios a command is about."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from fnmatch import fnmatchcase
from pathlib import Path

from conformance.data import scenarios_dir
from conformance.errors import UsageError
from conformance.scenario.loader import LoadedScenario, default_paths, load_scenarios
from conformance.scenario.near import nearest
from conformance.scenario.registry import FeatureRegistry, load_registry


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
    for path in paths:
        check_path(path)
    scenarios = load_scenarios(
        list(paths) or default_paths(root),
        root,
        registry,
        lambda identity: not names or any(_like(identity, name) for name in names),
    )
    if not scenarios:
        where = ", ".join(map(str, paths)) or str(root)
        given = ", ".join(f"-k {name}" for name in names or ())
        what = f"whose id fits {given}" if given else "file (*.yaml)"
        raise UsageError(f"no scenario {what} below {where}; see `dra-conformance list`")
    for feature in features or ():
        _check_feature(feature, scenarios, registry)
    found = [
        item
        for item in scenarios
        if (not tiers or item.scenario.spec.tier in tiers)
        and (not levels or item.scenario.spec.level in levels)
        and (not features or item.scenario.spec.feature in features)
    ]
    if not found:
        asked = [
            *(f"--tier {tier}" for tier in tiers or ()),
            *(f"--level {level}" for level in levels or ()),
            *(f"--feature {feature}" for feature in features or ()),
        ]
        raise UsageError(
            f"none of {len(scenarios)} scenarios fits {' '.join(asked)}; see `dra-conformance list`"
        )
    return found


def _check_feature(
    feature: str, scenarios: Sequence[LoadedScenario], registry: FeatureRegistry
) -> None:
    shown = {item.scenario.spec.feature for item in scenarios}
    if feature in shown:
        return
    if feature in registry.features:
        raise UsageError(
            f"no scenario is about feature {feature}; there are some about"
            f" {', '.join(sorted(shown))}"
        )
    near = nearest(feature, registry.features)
    meant = f"did you mean {near}?" if near else f"known are {', '.join(sorted(shown))}"
    raise UsageError(f"unknown feature {feature}; {meant}")


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
    """A glob over the id or its last part; without a wildcard any part of the id."""
    if any(char in pattern for char in "*?["):
        return any(fnmatchcase(text, pattern) for text in (identity, Path(identity).name))
    return pattern in identity
