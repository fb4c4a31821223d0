"""Profiles: the named sets of scenarios that an implementation is certified for.

They are data (``scenarios/profiles.yaml``), so that a new one needs no Python.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from pathlib import Path
from typing import Literal

from pydantic import Field, model_validator

from conformance.certify.values import find_repeated
from conformance.data import scenarios_dir
from conformance.results.events.scenario import PlannedScenario
from conformance.scenario.base import Strict
from conformance.scenario.documents.validate import load_document
from conformance.scenario.documents.yamlfile import Problem
from kube.base.errors import UsageError

CORE = ("dra-core-cluster", "dra-core-driver")
"""What is reported where nothing else is asked for."""


class Profile(Strict):
    """A named set of scenarios.

    Attributes:
        tiers: only scenarios of these tiers; empty: of all.
        features: only scenarios of these features; empty: of all.
        scenarios: only these, by id; empty: all.
        scheduled: only scenarios with pods for a scheduler.
        references: what the profile is made after, for example the document whose examples it has.
        skips: ``partial``: a scenario that was skipped makes the result partial; ``allowed``: it
            does not.
        driver_check: ``required``: a result of ``driver-check`` belongs to it, and counts as a
            scenario does.
    """

    name: str = Field(pattern=r"^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$")
    summary: str = Field(min_length=10)
    levels: tuple[Literal["core", "extended"], ...] = Field(min_length=1)
    tiers: tuple[Literal["allocation", "node", "device"], ...] = ()
    features: tuple[str, ...] = ()
    scenarios: tuple[str, ...] = ()
    scheduled: bool = False
    references: tuple[str, ...] = ()
    skips: Literal["partial", "allowed"] = "partial"
    driver_check: Literal["required"] | None = Field(default=None, alias="driverCheck")

    def includes(self, scenario: PlannedScenario) -> bool:
        """Return whether the scenario belongs to the profile; a provisional one belongs to none."""
        return (
            not scenario.provisional
            and scenario.level in self.levels
            and (not self.tiers or scenario.tier in self.tiers)
            and (not self.features or scenario.feature in self.features)
            and (not self.scenarios or scenario.id in self.scenarios)
            and (not self.scheduled or scenario.scheduled)
        )


class ProfileSet(Strict):
    """A document of kind ProfileSet."""

    api_version: Literal["dra-conformance/v1"]
    kind: Literal["ProfileSet"]
    profiles: tuple[Profile, ...] = Field(min_length=1)

    @model_validator(mode="after")
    def _unique(self) -> ProfileSet:
        if twice := find_repeated(profile.name for profile in self.profiles):
            raise ValueError(f"profiles with the same name: {', '.join(twice)}")
        return self

    def select(self, names: Iterable[str]) -> tuple[Profile, ...]:
        """Return the profiles with these names, in the order of the file. Raises UsageError."""
        wanted_names = set(names)
        unknown = sorted(wanted_names - {profile.name for profile in self.profiles})
        if unknown:
            known_names = ", ".join(profile.name for profile in self.profiles)
            raise UsageError(f"unknown profile {', '.join(unknown)}; known are {known_names}")
        return tuple(profile for profile in self.profiles if profile.name in wanted_names)


def find_foundations(profile: Profile, catalogue: Collection[PlannedScenario]) -> tuple[str, ...]:
    """Return the core profiles that a profile stands on: what it shows is beside or within theirs.

    The profiles of whole parts of the core stand alone. All others stand on what a cluster owes,
    and where containers see devices in them, on what a driver owes as well.
    """
    if profile.levels == ("core",) and not profile.features and not profile.scenarios:
        return ()
    tiers = {item.tier for item in catalogue if profile.includes(item)}
    return CORE if tiers - {"allocation"} else CORE[:1]


def empty_parts(profiles: ProfileSet, catalogue: Collection[PlannedScenario]) -> Iterator[Problem]:
    """Yield each part of a profile that no scenario belongs to: it could promise nothing."""
    for index, profile in enumerate(profiles.profiles):
        where = ("profiles", index)
        if not any(map(profile.includes, catalogue)):
            yield Problem(where, "no scenario belongs to it, so that it could promise nothing")
            continue
        ids = {item.id for item in catalogue if profile.includes(item)}
        features = {item.feature for item in catalogue if item.id in ids}
        for number, name in enumerate(profile.features):
            if name not in features:
                yield Problem((*where, "features", number), f"no scenario of {name} belongs to it")
        for number, name in enumerate(profile.scenarios):
            if name not in ids:
                text = f"{name} is not a scenario of the levels and features of this profile"
                yield Problem((*where, "scenarios", number), text)


def load_profiles(file: Path | None = None) -> ProfileSet:
    """Read a profile file; None is the one that the suite ships. Raises UsageError."""
    path = file or scenarios_dir() / "profiles.yaml"
    return load_document(ProfileSet, path, "profile set")
