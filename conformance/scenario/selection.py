"""Which scenarios a user asks for: the same filters on the command line and in pytest."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from conformance.errors import UsageError
from conformance.options import Given

if TYPE_CHECKING:
    from conformance.scenario.loader import LoadedScenario
    from conformance.scenario.model import Spec

Tier = Literal["allocation", "node", "device"]
Level = Literal["core", "extended"]


@dataclass(frozen=True, slots=True)
class Selection:
    """Filters; a scenario must fit one value of each that is given.

    Attributes:
        only: parts of ids; or globs, over the whole id or its last part.
    """

    tier: Annotated[tuple[Tier, ...], Given("Only this tier (repeatable).")] = ()
    level: Annotated[tuple[Level, ...], Given("Only this level (repeatable).")] = ()
    feature: Annotated[
        tuple[str, ...],
        Given("Only this feature (repeatable); `list --features` names them."),
    ] = ()
    only: Annotated[
        tuple[str, ...],
        Given(
            "Only ids that contain this; a pattern with * or ? must fit the whole id or its last "
            "part (repeatable).",
            flag="-k",
        ),
    ] = ()

    def wants(self, identity: str) -> bool:
        """Whether a scenario of this id is wanted; its file need not be read otherwise."""
        return not self.only or any(_like(identity, pattern) for pattern in self.only)

    def fits(self, loaded: LoadedScenario) -> bool:
        """Whether a scenario fits every filter."""
        return self.wants(loaded.id) and all(
            fits(loaded.scenario.spec) for _, fits in self._filters()
        )

    def left(self, scenarios: Sequence[LoadedScenario]) -> list[LoadedScenario]:
        """The scenarios that fit.

        Raises:
            UsageError: none does; the message says which filter leaves none.
        """
        found = list(scenarios)
        said = [f"{len(found)} in all"]
        for name, fits in self._filters():
            found = [item for item in found if fits(item.scenario.spec)]
            said.append(f"{len(found)} with {name}")
            if not found:
                raise UsageError(
                    f"no scenario fits what was asked for: {', '.join(said)}; "
                    "`dra-conformance list` shows them all"
                )
        return found

    def _filters(self) -> list[tuple[str, Callable[[Spec], bool]]]:
        """Each filter that is given, as it was written, and what it lets through."""
        features = {name.lower() for name in self.feature}
        filters: list[tuple[str, Sequence[str], Callable[[Spec], bool]]] = [
            ("--tier", self.tier, lambda spec: spec.tier in self.tier),
            ("--level", self.level, lambda spec: spec.level in self.level),
            ("--feature", self.feature, lambda spec: spec.feature.lower() in features),
        ]
        return [(_said(flag, values), fits) for flag, values, fits in filters if values]


def select(paths: Sequence[Path] = (), selection: Selection | None = None) -> list[LoadedScenario]:
    """The scenarios below ``paths`` (all shipped ones if empty) that fit every filter.

    Raises:
        UsageError: a file is wrong, a feature is unknown, or nothing fits.
    """
    from conformance.data import scenarios_dir
    from conformance.scenario.loader import load_scenarios
    from conformance.scenario.near import hint
    from conformance.scenario.registry import load_registry

    selection = selection or Selection()
    known = {name.lower(): name for name in load_registry().features}
    for name in selection.feature:
        if name.lower() not in known:
            alike = [known[key] for key in known if name.lower() in key]
            meant = f"did you mean {' or '.join(alike)}?" if alike else hint(name, known.values())
            raise UsageError(
                f"unknown feature {name}; {meant} (`dra-conformance list --features` names all)"
            )
    scenarios = load_scenarios(paths, selection.wants)
    if not scenarios:
        where = ", ".join(map(str, paths)) or str(scenarios_dir())
        what = f"whose id fits {_said('-k', selection.only)}" if selection.only else "(YAML)"
        raise UsageError(f"no scenario {what} below {where}; see `dra-conformance list`")
    return selection.left(scenarios)


def _said(flag: str, values: Sequence[str]) -> str:
    return " ".join(f"{flag} {value}" for value in values)


def _like(identity: str, pattern: str) -> bool:
    if any(char in pattern for char in "*?["):
        return fnmatchcase(identity, pattern) or fnmatchcase(identity.rpartition("/")[2], pattern)
    return pattern in identity
