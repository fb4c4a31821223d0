"""Selecting scenarios: the same filters on the command line and in pytest."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from kube.base.errors import UsageError
from kube.base.options import option_field

if TYPE_CHECKING:
    from conformance.scenario.loader import LoadedScenario
    from conformance.scenario.model import Spec
    from conformance.scenario.registry import Feature

Tier = Literal["allocation", "node", "device"]
Level = Literal["core", "extended"]

_GROUP = "Selection"


@dataclass(frozen=True, slots=True)
class Selection:
    """Filters; a scenario must match one value of each filter given, and no exclusion.

    ``only`` has parts of ids, or globs over the whole id or its last part; ``ids`` are exact.
    """

    tier: tuple[Tier, ...] = option_field((), "Only this tier (repeatable).", _GROUP)
    level: tuple[Level, ...] = option_field((), "Only this level (repeatable).", _GROUP)
    feature: tuple[str, ...] = option_field(
        (), "Only this feature (repeatable); see `list --features`.", _GROUP, metavar="NAME"
    )
    gate: tuple[str, ...] = option_field(
        (),
        "Only scenarios that need this feature gate enabled or disabled (repeatable).",
        _GROUP,
        metavar="NAME",
    )
    kep: tuple[int, ...] = option_field(
        (), "Only features of this KEP, for example 4816 (repeatable).", _GROUP, metavar="NUMBER"
    )
    since: tuple[str, ...] = option_field(
        (),
        "Only behaviour introduced in this Kubernetes minor, for example 1.36: a feature that "
        "became enabled by default, or a rule (repeatable).",
        _GROUP,
        metavar="MINOR",
    )
    only: tuple[str, ...] = option_field(
        (),
        "Only ids that contain this text; a pattern with * or ? must match the whole id or "
        "its last part (repeatable).",
        _GROUP,
        flag="-k",
        metavar="TEXT",
    )
    exclude: tuple[str, ...] = option_field(
        (),
        "No ids that contain this text or match this pattern (repeatable).",
        _GROUP,
        metavar="TEXT",
    )
    no_faults: bool = option_field(
        False,
        "Skip scenarios that stop, restart or update components or start a second driver; "
        "they take half of the time on a local cluster.",
        _GROUP,
    )
    failed_in: Path | None = option_field(
        None,
        "Only scenarios that failed in an earlier run, given as its result file or folder.",
        _GROUP,
        metavar="PATH",
    )
    ids: tuple[str, ...] | None = None

    def wants(self, identity: str) -> bool:
        """Whether the filters on ids match; otherwise the file need not be read."""
        return (
            (not self.only or any(_like(identity, pattern) for pattern in self.only))
            and not any(_like(identity, pattern) for pattern in self.exclude)
            and (self.ids is None or identity in self.ids)
        )

    def fits(self, loaded: LoadedScenario) -> bool:
        return self.wants(loaded.id) and all(
            fits(loaded.scenario.spec) for _, fits in self._filters()
        )

    def check(self) -> None:
        """Check the names that filters use. Raises UsageError: one is unknown; suggests names."""
        from conformance.scenario.registry import load_registry
        from reference_allocator.gates import MINORS

        features = load_registry().features
        for name in self.feature:
            _known("feature", name, features, "; see `dra-conformance list --features`")
        for name in self.gate:
            _known("feature gate", name, sorted(_gates()))
        for number in self.kep:
            _known(
                "enhancement", str(number), sorted({_kep(item.kep) for item in features.values()})
            )
        for minor in self.since:
            if minor not in MINORS:
                raise UsageError(f"--since {minor}: known minors are {', '.join(MINORS)}")

    def left(self, scenarios: Sequence[LoadedScenario]) -> list[LoadedScenario]:
        """The scenarios that match. Raises UsageError: none; names the filter that leaves none."""
        found = list(scenarios)
        said = [f"{len(found)} in all"]
        for name, fits in self._filters():
            found = [item for item in found if fits(item.scenario.spec)]
            said.append(f"{len(found)} with {name}")
            if not found:
                raise UsageError(
                    f"no scenario matches all filters: {', '.join(said)}; "
                    "`dra-conformance list` shows all scenarios"
                )
        return found

    def _filters(self) -> list[tuple[str, Callable[[Spec], bool]]]:
        """Each filter that is set, as the user wrote it, with its predicate."""
        features = {name.lower() for name in self.feature}
        gates = {name.lower() for name in self.gate}
        keps = {str(number) for number in self.kep}
        filters: list[tuple[str, Sequence[object] | bool, Callable[[Spec], bool]]] = [
            ("--tier", self.tier, lambda spec: spec.tier in self.tier),
            ("--level", self.level, lambda spec: spec.level in self.level),
            ("--feature", self.feature, lambda spec: spec.feature.lower() in features),
            (
                "--gate",
                self.gate,
                lambda spec: any(one.lower() in gates for one in _gates_of(spec)),
            ),
            ("--kep", self.kep, lambda spec: _kep(_feature(spec).kep) in keps),
            ("--since", self.since, lambda spec: _first_minor(spec) in self.since),
            (
                "--no-faults",
                self.no_faults,
                lambda spec: (
                    not (spec.requires.other_devices or any(step.fault for step in spec.steps))
                ),
            ),
        ]
        return [(_said(flag, values), fits) for flag, values, fits in filters if values]


def select(paths: Sequence[Path] = (), selection: Selection | None = None) -> list[LoadedScenario]:
    """The scenarios below ``paths`` (default: shipped) that match. Raises UsageError."""
    from conformance.data import scenarios_dir
    from conformance.scenario.loader import load_scenarios

    selection = selection or Selection()
    selection.check()
    scenarios = load_scenarios(paths, selection.wants)
    if not scenarios:
        where = ", ".join(map(str, paths)) or str(scenarios_dir())
        what = [f"with an id that matches {_said('-k', selection.only)}"] if selection.only else []
        what += [f"without {_said('--exclude', selection.exclude)}"] if selection.exclude else []
        what += ["of those that failed"] if selection.ids is not None else []
        said = " and ".join(what) or "(YAML)"
        raise UsageError(f"no scenario {said} below {where}; see `dra-conformance list`")
    return selection.left(scenarios)


def _known(what: str, name: str, known: Iterable[str], more: str = "") -> None:
    from conformance.scenario.documents.validate import hint

    names = {one.lower(): one for one in known}
    if name.lower() in names:
        return
    alike = [names[key] for key in names if name.lower() in key]
    meant = f"did you mean {' or '.join(alike)}?" if alike else hint(name, names.values())
    raise UsageError(f"unknown {what} {name}; {meant}{more}")


def _feature(spec: Spec) -> Feature:
    from conformance.scenario.registry import load_registry

    return load_registry().features[spec.feature]


def _gates_of(spec: Spec) -> set[str]:
    """The gates that a scenario depends on: its feature's, and those that it needs on or off."""
    own = _feature(spec).gate
    needs = spec.requires
    return {*needs.feature_gates, *needs.feature_gates_off, *([own] if own else [])}


def _gates() -> set[str]:
    """The gates that features have, or that the shipped scenarios need."""
    from conformance.scenario.registry import load_registry
    from reference_allocator.gates import MINORS, gates_for_version

    features = load_registry().features.values()
    known = {item.gate for item in features if item.gate}
    return known.union(*(gates_for_version(minor) for minor in MINORS))


def _kep(address: str) -> str:
    return address.rstrip("/").rpartition("/")[2]


def _first_minor(spec: Spec) -> str:
    """The first minor that has the rule, and its feature on if that is on by default anywhere."""
    from packaging.specifiers import SpecifierSet

    from reference_allocator.gates import MINORS

    since = _feature(spec).since or MINORS[0]
    has = SpecifierSet(spec.requires.kubernetes)
    first = next((minor for minor in MINORS if has.contains(f"{minor}.99")), MINORS[0])
    return max(first, since, key=MINORS.index)


def _said(flag: str, values: Sequence[object] | bool) -> str:
    if isinstance(values, bool):
        return flag
    return " ".join(f"{flag} {value}" for value in values)


def _like(identity: str, pattern: str) -> bool:
    if any(char in pattern for char in "*?["):
        return fnmatchcase(identity, pattern) or fnmatchcase(identity.rpartition("/")[2], pattern)
    return pattern in identity
