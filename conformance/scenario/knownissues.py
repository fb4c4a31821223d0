"""Known issues of Kubernetes: failures that say nothing about a driver."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Annotated, Literal

from packaging.version import Version
from pydantic import Field

from conformance.data import scenarios_dir
from conformance.scenario.base import Strict, release
from conformance.scenario.validate import load_document

_Release = Annotated[str, Field(pattern=r"^1\.\d{1,3}\.\d{1,3}$")]


class Affected(Strict):
    """Patches of one minor, or of several, that have the issue."""

    first: _Release = Field(alias="from", description="the first version that has it")
    fixed: _Release | None = Field(
        default=None, alias="fixedIn", description="the first after it that has it no more; or none"
    )

    def has(self, version: Version) -> bool:
        return Version(self.first) <= version and (
            self.fixed is None or version < Version(self.fixed)
        )


class ShownBy(Strict):
    """A failure that is the issue: of which scenario, and what it says."""

    scenario: str = Field(description="id, for example regressions/NAME")
    message: str = Field(min_length=10, description="a part of the message of the failure")


class KnownIssue(Strict):
    """One issue, and how it shows."""

    summary: str = Field(min_length=10, description="what goes wrong, in a sentence")
    link: str = Field(
        pattern=r"^(https://|docs/found/)\S+$", description="where it is described or discussed"
    )
    affected: tuple[Affected, ...] = Field(min_length=1, description="versions that have it")
    overlaps: bool = Field(
        default=False, description="it shows as a device in two claims, in whichever scenario"
    )
    shown_by: tuple[ShownBy, ...] = Field(
        default=(), alias="shownBy", description="failures of scenarios that are this issue"
    )

    def has(self, version: str) -> bool:
        """Whether a version like ``v1.37.1-gke.5`` has it; a pre-release counts as its release."""
        found = release(version)
        return found is not None and any(item.has(found) for item in self.affected)


class KnownIssues(Strict):
    """All that are known, by name."""

    api_version: Literal["dra-conformance/v1"] = Field(alias="apiVersion")
    kind: Literal["KnownIssues"]
    issues: dict[str, KnownIssue]

    def of(
        self, version: str, scenario: str, message: str, overlaps_alone: bool
    ) -> Iterator[tuple[str, KnownIssue]]:
        """The issues that a failure is, with their names.

        ``overlaps_alone``: all steps passed, and a device was in two claims.
        """
        for name, issue in self.issues.items():
            shown = any(
                item.scenario == scenario and item.message in message for item in issue.shown_by
            )
            if issue.has(version) and (shown or (overlaps_alone and issue.overlaps)):
                yield name, issue


@cache
def load_known_issues() -> KnownIssues:
    """The list that the suite ships, ``scenarios/known-issues.yaml``."""
    return load_document(KnownIssues, scenarios_dir() / "known-issues.yaml", "list of known issues")
