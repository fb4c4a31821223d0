"""What the commands about conformance reports have in common."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated

import typer

from conformance.certify.model import ConformanceReport
from conformance.certify.profiles import CORE, Profile, load_profiles
from conformance.certify.values import Implementation, implementation
from conformance.engine.events import PlannedScenario
from conformance.engine.setup import planned
from conformance.errors import UsageError
from conformance.options import Given
from conformance.report.folder import RESULTS
from conformance.scenario.selection import select

Results = Annotated[Path, typer.Argument(help="Result file of a run (results.ndjson).")]


@dataclass(frozen=True, slots=True, kw_only=True)
class Certified:
    """What is certified, by whom and for what, as a user says it."""

    organization: Annotated[str, Given("Who submits it.")]
    project: Annotated[str, Given("What is certified: a driver, a distribution.")]
    url: Annotated[str, Given("Where that is found.")]
    version: Annotated[str, Given("Its version.")]
    contact: Annotated[tuple[str, ...], Given("Whom to ask (repeatable).")] = ()
    image: Annotated[str | None, Given("The driver's image: NAME@sha256:HEX.")] = None
    ci_run: Annotated[str | None, Given("URL of the CI job that ran it.")] = None
    profile: Annotated[tuple[str, ...], Given("For what (repeatable); default dra-core.")] = ()

    @property
    def implementation(self) -> Implementation:
        """All of it but for what.

        Raises:
            UsageError: one of the options has not its form.
        """
        return implementation(
            **{name: value for name, value in asdict(self).items() if name != "profile"}
        )

    @property
    def profiles(self) -> tuple[Profile, ...]:
        """The profiles that are asked for, the core's where none is.

        Raises:
            UsageError: one is not known.
        """
        return load_profiles().named(dict.fromkeys(self.profile or (CORE,)))


def summary(made: ConformanceReport) -> Iterator[str]:
    """What each profile came to, and why none of them is a certificate, if so."""
    for item in made.profiles:
        yield f"{item.name}: {item.result}"
    for reason in made.uncertified:
        yield f"certifies nothing: {reason}"


def no_folder(results: Path) -> None:
    """The folder of reports, given instead of the result file in it, is a usage error."""
    if results.is_dir():
        raise UsageError(f"{results}: is a folder; give the result file in it, {RESULTS}")


def catalogue() -> list[PlannedScenario]:
    """Every scenario that the suite ships."""
    return [planned(item) for item in select()]
