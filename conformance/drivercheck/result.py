"""What came of a driver check: an outcome for each check, and one verdict."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field
from pydantic.alias_generators import to_camel

from conformance.drivercheck.check import Level
from conformance.errors import ExitCode
from conformance.scenario.base import API_VERSION


class Outcome(StrEnum):
    """How a check ended."""

    PASSED = "passed"
    FAILED = "failed"
    SKIPPED = "skipped"
    NOT_OFFERED = "not offered"
    NOT_RUN = "not run"
    ERROR = "error"


class _Document(BaseModel):
    model_config = ConfigDict(
        extra="forbid", frozen=True, alias_generator=to_camel, populate_by_name=True
    )


class CheckResult(_Document):
    """One check."""

    name: str
    level: Level
    outcome: Outcome
    summary: str = Field(description="the rule")
    source: str = Field(description="where the rule is from")
    message: str = Field("", description="what was expected and found, or why it was skipped")
    seconds: Annotated[float, Field(ge=0)] = 0.0


class DriverCheckResult(_Document):
    """A whole run."""

    api_version: Literal["dra-conformance/v1"] = API_VERSION
    kind: Literal["DriverCheck"] = "DriverCheck"
    suite_version: str
    started_at: str = Field(description="RFC 3339")
    driver: str = Field(description="the name under which it registered; empty: it did not")
    supported_versions: tuple[str, ...] = ()
    devices: Annotated[int, Field(ge=0)] = 0
    verdict: Literal["conformant", "not conformant", "partial", "inconclusive"]
    checks: tuple[CheckResult, ...]

    @property
    def exit_code(self) -> ExitCode:
        return {
            "conformant": ExitCode.CONFORMANT,
            "not conformant": ExitCode.NOT_CONFORMANT,
            "partial": ExitCode.PARTIAL,
            "inconclusive": ExitCode.INCONCLUSIVE,
        }[self.verdict]

    def count(self, outcome: Outcome, level: Level | None = None) -> int:
        """How many checks, of a level or all, ended so."""
        return sum(one.outcome is outcome and level in (None, one.level) for one in self.checks)


def verdict(
    checks: tuple[CheckResult, ...],
) -> Literal["conformant", "not conformant", "partial", "inconclusive"]:
    """What checks say together.

    A required check that failed: not conformant. Else one that is a fault of the suite:
    inconclusive. Else one that was not made: partial. Recommended checks change nothing.
    """
    required = {one.outcome for one in checks if one.level is Level.REQUIRED}
    if Outcome.FAILED in required:
        return "not conformant"
    if Outcome.ERROR in required:
        return "inconclusive"
    if required & {Outcome.SKIPPED, Outcome.NOT_RUN} or not required:
        return "partial"
    return "conformant"
