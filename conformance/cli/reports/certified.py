"""What the commands about conformance reports share."""

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
from conformance.options import given
from conformance.report.folder import RESULTS
from conformance.scenario.selection import select

Results = Annotated[
    Path, typer.Argument(metavar="RESULTS", help="Result file of a run (results.ndjson).")
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Certified:
    """The options that describe a report: the implementation, its owner, the profiles."""

    organization: str = given(..., "Organization that submits the report.", metavar="NAME")
    project: str = given(..., "Driver or distribution under test.", metavar="NAME")
    url: str = given(..., "Home page of the project.", metavar="URL")
    version: str = given(..., "Version of the project.", metavar="VERSION")
    contact: tuple[str, ...] = given((), "Contact for questions (repeatable).", metavar="TEXT")
    image: str | None = given(None, "Image of the driver.", metavar="NAME@sha256:HEX")
    ci_run: str | None = given(None, "URL of the CI job.", metavar="URL")
    profile: tuple[str, ...] = given(
        (), "Conformance profile to report (repeatable). [default: dra-core]", metavar="NAME"
    )

    @property
    def implementation(self) -> Implementation:
        """Everything but the profiles. Raises UsageError: one of the options is malformed."""
        return implementation(
            **{name: value for name, value in asdict(self).items() if name != "profile"}
        )

    @property
    def profiles(self) -> tuple[Profile, ...]:
        """The requested profiles; without a request, the core profile. Raises UsageError."""
        return load_profiles().named(dict.fromkeys(self.profile or (CORE,)))


def summary(made: ConformanceReport) -> Iterator[str]:
    """The result of each profile, and the reasons why the report cannot certify."""
    for item in made.profiles:
        yield f"{item.name}: {item.result}"
    for reason in made.uncertified:
        yield f"certifies nothing: {reason}"


def no_folder(results: Path) -> None:
    """Refuse the folder of reports in place of the result file in it."""
    if results.is_dir():
        raise UsageError(f"{results}: is a folder; give the result file in it, {RESULTS}")


def catalogue() -> list[PlannedScenario]:
    """Every scenario that the suite ships."""
    return [planned(item) for item in select()]
