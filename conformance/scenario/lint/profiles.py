"""Does any driver profile that we know define the names that a scenario takes from the profile?

Somebody may have a profile of their own, with names that the shipped ones lack, so this is only
for ``lint``: ``run`` compares with the very profile that it uses, before anything runs.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from conformance.scenario.lint.variables import PROFILE_GROUPS, texts
from conformance.scenario.model import Scenario
from conformance.scenario.near import nearest
from conformance.scenario.profile import DriverProfile
from conformance.scenario.variables import VARIABLE
from conformance.scenario.yamlfile import PathTuple, Problem


def check_profile_names(
    scenario: Scenario, data: Any, profiles: Sequence[DriverProfile]
) -> Iterator[Problem]:
    """Names that no profile has: an error if one has a name like it, otherwise a warning.

    Args:
        scenario: one that is not of the allocation tier, where no profile is used.
        data: its document.
        profiles: those that are known.
    """
    specs = [profile.spec for profile in profiles]
    known = {
        "attribute": {name for spec in specs for name in spec.attributes},
        "class": {name for spec in specs for name in spec.classes},
        "config": {name for spec in specs for name in spec.config},
        "selector": {name for spec in specs for name in spec.selectors},
    }
    for index, name in enumerate(scenario.spec.requires.config):
        place: PathTuple = ("spec", "requires", "config", index)
        yield from _unknown(f"config {name}", name, known["config"], place)
    for path, text in texts(data, ()):
        for match in VARIABLE.finditer(text):
            group, _, name = match[1].partition(".")
            if group in PROFILE_GROUPS:
                yield from _unknown(f"variable {match[0]}", name, known[group], path)


def _unknown(what: str, name: str, known: set[str], path: PathTuple) -> Iterator[Problem]:
    if name in known:
        return
    near = nearest(name, known)
    if near is not None:
        yield Problem(path, f"unknown {what}: did you mean {near}?")
    else:
        yield Problem(
            path,
            f"{what} is in no shipped driver profile ({', '.join(sorted(known)) or 'none'}); the"
            " scenario only runs with --driver FILE that defines it",
            "warning",
        )
