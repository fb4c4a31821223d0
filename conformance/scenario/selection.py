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

    def matches_id(self, identity: str) -> bool:
        """Return whether the filters on ids match; otherwise the file need not be read."""
        return (
            (not self.only or any(_matches_pattern(identity, pattern) for pattern in self.only))
            and not any(_matches_pattern(identity, pattern) for pattern in self.exclude)
            and (self.ids is None or identity in self.ids)
        )

    def matches(self, loaded: LoadedScenario) -> bool:
        return self.matches_id(loaded.id) and all(
            filter_matches(loaded.scenario.spec) for _, filter_matches in self._list_filters()
        )

    def check_names(self) -> None:
        """Raise UsageError, with suggestions, if a filter uses an unknown name."""
        from conformance.scenario.registry import load_registry
        from reference_allocator.gates import MINORS

        features = load_registry().features
        for name in self.feature:
            _check_known_name("feature", name, features, "; see `dra-conformance list --features`")
        for name in self.gate:
            _check_known_name("feature gate", name, sorted(_list_gates()))
        for number in self.kep:
            _check_known_name(
                "enhancement",
                str(number),
                sorted({_kep_number(item.kep) for item in features.values()}),
            )
        for minor in self.since:
            if minor not in MINORS:
                raise UsageError(f"--since {minor}: known minors are {', '.join(MINORS)}")

    def filter_scenarios(self, scenarios: Sequence[LoadedScenario]) -> list[LoadedScenario]:
        """Return the scenarios that match. Raises UsageError, with the filter that leaves none."""
        matching = list(scenarios)
        counts = [f"{len(matching)} in all"]
        for name, filter_matches in self._list_filters():
            matching = [item for item in matching if filter_matches(item.scenario.spec)]
            counts.append(f"{len(matching)} with {name}")
            if not matching:
                raise UsageError(
                    f"no scenario matches all filters: {', '.join(counts)}; "
                    "`dra-conformance list` shows all scenarios"
                )
        return matching

    def _list_filters(self) -> list[tuple[str, Callable[[Spec], bool]]]:
        """Return each filter that is set, as the user wrote it, with its predicate."""
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
                lambda spec: any(gate.lower() in gates for gate in _list_gates_of(spec)),
            ),
            ("--kep", self.kep, lambda spec: _kep_number(_find_feature(spec).kep) in keps),
            ("--since", self.since, lambda spec: _first_minor(spec) in self.since),
            (
                "--no-faults",
                self.no_faults,
                lambda spec: (
                    not (spec.requires.other_devices or any(step.fault for step in spec.steps))
                ),
            ),
        ]
        return [(_format_option(flag, values), fits) for flag, values, fits in filters if values]


def select(paths: Sequence[Path] = (), selection: Selection | None = None) -> list[LoadedScenario]:
    """Return the scenarios below ``paths`` (default: shipped) that match. Raises UsageError."""
    from conformance.data import scenarios_dir
    from conformance.scenario.loader import load_scenarios

    selection = selection or Selection()
    selection.check_names()
    scenarios = load_scenarios(paths, selection.matches_id)
    if not scenarios:
        where = ", ".join(map(str, paths)) or str(scenarios_dir())
        criteria = (
            [f"with an id that matches {_format_option('-k', selection.only)}"]
            if selection.only
            else []
        )
        criteria += (
            [f"without {_format_option('--exclude', selection.exclude)}"]
            if selection.exclude
            else []
        )
        criteria += ["of those that failed"] if selection.ids is not None else []
        criteria_text = " and ".join(criteria) or "(YAML)"
        raise UsageError(f"no scenario {criteria_text} below {where}; see `dra-conformance list`")
    return selection.filter_scenarios(scenarios)


def _check_known_name(what: str, name: str, known: Iterable[str], more: str = "") -> None:
    from conformance.scenario.documents.validate import hint

    names = {known_name.lower(): known_name for known_name in known}
    if name.lower() in names:
        return
    alike = [names[key] for key in names if name.lower() in key]
    meant = f"did you mean {' or '.join(alike)}?" if alike else hint(name, names.values())
    raise UsageError(f"unknown {what} {name}; {meant}{more}")


def _find_feature(spec: Spec) -> Feature:
    from conformance.scenario.registry import load_registry

    return load_registry().features[spec.feature]


def _list_gates_of(spec: Spec) -> set[str]:
    """Return the gates that a scenario depends on: its feature's, and those needed on or off."""
    feature_gate = _find_feature(spec).gate
    needs = spec.requires
    return {
        *needs.feature_gates,
        *needs.feature_gates_off,
        *([feature_gate] if feature_gate else []),
    }


def _list_gates() -> set[str]:
    """Return the gates that features have, or that the shipped scenarios need."""
    from conformance.scenario.registry import load_registry
    from reference_allocator.gates import MINORS, gates_for_version

    features = load_registry().features.values()
    feature_gates = {item.gate for item in features if item.gate}
    return feature_gates.union(*(gates_for_version(minor) for minor in MINORS))


def _kep_number(address: str) -> str:
    return address.rstrip("/").rpartition("/")[2]


def _first_minor(spec: Spec) -> str:
    """Return the first minor with the rule, and with its feature on by default if any has that."""
    from packaging.specifiers import SpecifierSet

    from reference_allocator.gates import MINORS

    since = _find_feature(spec).since or MINORS[0]
    has = SpecifierSet(spec.requires.versions)
    first = next((minor for minor in MINORS if has.contains(f"{minor}.99")), MINORS[0])
    return max(first, since, key=MINORS.index)


def _format_option(flag: str, values: Sequence[object] | bool) -> str:
    if isinstance(values, bool):
        return flag
    return " ".join(f"{flag} {value}" for value in values)


def _matches_pattern(identity: str, pattern: str) -> bool:
    if any(char in pattern for char in "*?["):
        return fnmatchcase(identity, pattern) or fnmatchcase(identity.rpartition("/")[2], pattern)
    return pattern in identity
