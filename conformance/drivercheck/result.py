"""The result of a driver check: as a value, as lines for a terminal and as JUnit XML."""

from __future__ import annotations

from collections.abc import Iterator
from enum import StrEnum
from typing import Annotated, Literal
from xml.etree import ElementTree as ET

from pydantic import BaseModel, ConfigDict, Field
from pydantic.alias_generators import to_camel

from conformance.drivercheck.check import Level
from conformance.scenario.base import API_VERSION
from kube.base.errors import ExitCode
from kube.base.text import counted, fold, xml_text


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
    message: str = Field(
        "", description="what was expected and found, why it was skipped, or how sure a pass is"
    )
    seconds: Annotated[float, Field(ge=0)] = 0.0


class Processes(_Document):
    """How often the driver was started and ended, and how long that took in all."""

    starts: Annotated[int, Field(ge=0)] = 0
    start_seconds: Annotated[float, Field(ge=0, description="until it had registered")] = 0.0
    ends: Annotated[int, Field(ge=0)] = 0
    end_seconds: Annotated[float, Field(ge=0)] = 0.0


Verdict = Literal["conformant", "not conformant", "partial", "inconclusive"]


class DriverCheckResult(_Document):
    """A whole run."""

    api_version: Literal["dra-conformance/v1"] = API_VERSION
    kind: Literal["DriverCheck"] = "DriverCheck"
    suite_version: str
    started_at: str = Field(description="RFC 3339")
    driver: str = Field(description="the name under which it registered; empty: it did not")
    supported_versions: tuple[str, ...] = ()
    devices: Annotated[int, Field(ge=0)] = 0
    verdict: Verdict
    checks: tuple[CheckResult, ...]
    processes: Processes = Processes()
    least_cluster_role: str = Field(
        default="",
        description="YAML of a ClusterRole that allows what the driver asked, and no more",
    )
    unused_rights: tuple[str, ...] = Field(
        default=(), description="what the roles of --rbac allow beyond that"
    )

    @property
    def exit_code(self) -> ExitCode:
        return {
            "conformant": ExitCode.CONFORMANT,
            "not conformant": ExitCode.NOT_CONFORMANT,
            "partial": ExitCode.PARTIAL,
            "inconclusive": ExitCode.INCONCLUSIVE,
        }[self.verdict]

    def count(self, outcome: Outcome, level: Level | None = None) -> int:
        """Return how many checks, of a level or all, ended so."""
        return sum(
            check.outcome is outcome and level in (None, check.level) for check in self.checks
        )


def judge_checks(checks: tuple[CheckResult, ...]) -> Verdict:
    """Return the verdict that checks come to together.

    A required check that failed: not conformant. Else one that is a fault of the suite:
    inconclusive. Else one that was not made: partial. Recommended checks change nothing.
    """
    required = {check.outcome for check in checks if check.level is Level.REQUIRED}
    if Outcome.FAILED in required:
        return "not conformant"
    if Outcome.ERROR in required:
        return "inconclusive"
    if required & {Outcome.SKIPPED, Outcome.NOT_RUN} or not required:
        return "partial"
    return "conformant"


_SHOWN = 5  # Of the checks that took longest.
_INDENT = " " * 4


def lines_of(result: CheckResult) -> Iterator[str]:
    """Yield a check in lines of at most `WIDTH` characters, but for words that are longer."""
    if result.outcome is Outcome.NOT_RUN:
        return  # the summary says how many, and why
    advised = result.outcome is Outcome.FAILED and result.level is Level.RECOMMENDED
    word = "advised" if advised else str(result.outcome)
    yield f"{word:<11} {result.seconds:6.2f} s  {result.name}"
    texts = [result.message]
    if result.outcome in (Outcome.FAILED, Outcome.ERROR):
        texts = [result.summary, result.message, f"source: {result.source}"]
    for text in filter(None, texts):
        yield from fold(text, _INDENT, _INDENT)


def describe_access(result: DriverCheckResult) -> Iterator[str]:
    """Yield what the driver asked of the API server, as a role, and which rights it did not use."""
    if result.least_cluster_role:
        yield "what the driver asked of the API server in this run, as a ClusterRole:"
        yield from result.least_cluster_role.splitlines()
    if result.unused_rights:
        yield "not used of the roles of --rbac:"
        yield from (f"  {right}" for right in result.unused_rights)


def summarize_result(result: DriverCheckResult, seconds: float) -> Iterator[str]:
    """Yield what came of the run; the verdict is the last line."""
    named = result.driver or "a driver that did not register"
    yield f"driver {named}, {counted(result.devices, 'device')}"
    if result.supported_versions:
        yield from fold(f"offers {', '.join(result.supported_versions)}")
    if not_run := [check for check in result.checks if check.outcome is Outcome.NOT_RUN]:
        yield from fold(f"{counted(len(not_run), 'check')} not run: {not_run[0].message}")
    yield from _describe_spending(result)
    for level in Level:
        counts = [
            f"{result.count(outcome, level)} {outcome}"
            for outcome in Outcome
            if result.count(outcome, level)
        ]
        yield f"{level}: {', '.join(counts) or 'none'}"
    for check in result.checks:
        if check.outcome is Outcome.FAILED:
            advice = "" if check.level is Level.REQUIRED else " (recommended)"
            yield f"  failed {check.name}{advice}"
    yield f"{result.verdict} in {seconds:.1f} s (exit code {int(result.exit_code)})"


def _describe_spending(result: DriverCheckResult) -> Iterator[str]:
    """Yield where the seconds went; checks that were made beside one another count each."""
    longest = sorted(result.checks, key=lambda check: -check.seconds)[:_SHOWN]
    total = sum(check.seconds for check in result.checks)
    if not total:
        return
    processes = result.processes
    yield (
        f"{total:.0f} s of checks: {counted(processes.starts, 'start')} of the driver"
        f" {processes.start_seconds:.0f} s, {counted(processes.ends, 'end')}"
        f" {processes.end_seconds:.0f} s; longest:"
    )
    yield from (f"  {check.seconds:6.2f} s  {check.name}" for check in longest)


def junit_xml(result: DriverCheckResult) -> bytes:
    """Return the result as one test suite; recommended checks that failed count as skipped."""
    required = [check for check in result.checks if check.level is Level.REQUIRED]
    failed = sum(check.outcome is Outcome.FAILED for check in required)
    wrong = sum(check.outcome in (Outcome.ERROR, Outcome.NOT_RUN) for check in result.checks)
    passed = result.count(Outcome.PASSED)
    totals = {
        "name": "driver-check",
        "tests": str(len(result.checks)),
        "failures": str(failed),
        "errors": str(wrong),
        "skipped": str(len(result.checks) - failed - wrong - passed),
        "time": f"{sum(check.seconds for check in result.checks):.3f}",
    }
    root = ET.Element("testsuites")
    suite = ET.SubElement(root, "testsuite", {**totals, "timestamp": result.started_at})
    for check in result.checks:
        section, _, name = check.name.partition("/")
        case = ET.SubElement(
            suite,
            "testcase",
            {"classname": f"driver-check.{section}", "name": name, "time": f"{check.seconds:.3f}"},
        )
        if check.outcome is Outcome.PASSED:
            continue
        tag = "skipped"
        if check.outcome is Outcome.FAILED and check.level is Level.REQUIRED:
            tag = "failure"
        elif check.outcome in (Outcome.ERROR, Outcome.NOT_RUN):
            tag = "error"
        message = xml_text(check.message)
        element = ET.SubElement(case, tag, {"message": message, "type": str(check.outcome)})
        element.text = xml_text(f"{check.summary}\n{check.message}\nsource: {check.source}")
    ET.indent(root)
    text: bytes = ET.tostring(root, encoding="utf-8", xml_declaration=True)
    return text
