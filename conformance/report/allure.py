"""Allure results: one for each scenario, the same from the command line and from pytest.

Allure 3 knows a test over time by its ``testCaseId``; it is made of the scenario's public id alone,
so that the history survives other versions, targets and namespaces. Allure is presentation: the
verdict on conformance comes from the result file.

allure-pytest writes the result of every item itself; for a custom item it knows a name and an
outcome only. :func:`apply_to_current_test` adds the rest.
"""

from __future__ import annotations

import hashlib
import time
import uuid
from collections.abc import Callable, Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

import allure_commons
from allure_commons.logger import AllureFileLogger
from allure_commons.model2 import (
    ATTACHMENT_PATTERN,
    Attachment,
    Label,
    Link,
    Status,
    StatusDetails,
    TestResult,
    TestStepResult,
)
from allure_commons.types import AttachmentType, LabelType, LinkType, Severity

from conformance.report.allure_run import write_run
from conformance.report.folder import ALLURE_PREFIX
from conformance.results.events.comparison import ScenarioCompared
from conformance.results.events.dispatch import Event
from conformance.results.events.result import RunCollector, RunResult
from conformance.results.events.run import RunFinished, RunStarted
from conformance.results.events.scenario import Outcome, PlannedScenario, ScenarioFinished
from kube.base.redaction import redact, redacted_text
from kube.base.strictjson import loads
from kube.base.text import is_address, public_text, visible

STATUS: Mapping[Outcome, str] = {
    Outcome.PASSED: Status.PASSED,
    Outcome.FAILED: Status.FAILED,
    Outcome.KNOWN: Status.SKIPPED,
    Outcome.FLAKY: Status.BROKEN,
    Outcome.ERROR: Status.BROKEN,
    Outcome.SKIPPED: Status.SKIPPED,
    Outcome.LOST: Status.BROKEN,
}
"""Failed: the target is wrong. Broken: the suite or what is under it. Skipped, as pytest has what
is expected to fail: ``known``, too, which is then marked so."""


class AllureResults:
    """A reporter that writes Allure result files for runs of the command line.

    A scenario that passed, and in which an allocation is against the rules, is a failed test. The
    folder is never emptied: a crashed worker's replacement would delete what others wrote.
    ``clock``: seconds since the epoch.
    """

    def __init__(self, folder: Path, clock: Callable[[], float] = time.time) -> None:
        self.folder = folder
        self._clock = clock
        self._logger = AllureFileLogger(str(folder))
        self._collector = RunCollector()

    def __str__(self) -> str:
        return f"the Allure results in {self.folder}"

    def handle(self, event: Event) -> None:
        self._collector.handle(event)
        match event:
            case RunStarted():
                write_run(self.folder, event)
            case ScenarioFinished():
                self._write(event)
            case RunFinished() if self._collector.run is not None:
                self._write_lost(self._collector.result())
            case _:
                pass

    def _now(self) -> int:
        return round(self._clock() * 1000)

    def _write(self, event: ScenarioFinished) -> None:
        length = round(event.seconds * 1000)
        start = parse_milliseconds(event.started_at) or self._now() - length
        result = _result(event.scenario, start, start + length)
        compared = self._collector.compared.get(event.scenario.id)
        result.status = STATUS[event.outcome]
        result.statusDetails = _status_details(event)
        complete(result, event, compared)
        if event.outcome is Outcome.PASSED and compared is not None and not compared.conformant:
            result.status = Status.FAILED
            result.statusDetails = StatusDetails(message=f"an allocation is {compared.verdict}")
        items = self._collector.diagnostics.pop(event.scenario.id, {})
        for name, body, kind in attachments_of(event, items, compared):
            prefix = f"{ALLURE_PREFIX}{uuid.uuid4()}"
            file = ATTACHMENT_PATTERN.format(prefix=prefix, ext=kind.extension)
            self._logger.report_attached_data(body, file)
            result.attachments.append(Attachment(name=name, source=file, type=kind.mime_type))
        self._logger.report_result(result)

    def _write_lost(self, run: RunResult) -> None:
        """Write the scenarios without a result; those reported as lost are written already."""
        for scenario in sorted(run.unreported, key=lambda item: item.id):
            result = _result(scenario, self._now(), self._now())
            result.status = STATUS[Outcome.LOST]
            result.statusDetails = StatusDetails(message="lost: planned, and never reported")
            self._logger.report_result(result)


def describe(result: TestResult, scenario: PlannedScenario) -> None:
    """Set the identity of a result, and all that is known of its scenario before it runs.

    Its full name is what allure-pytest makes of ``scenarios/core/name.yaml::name``, where the item
    is called by its ``metadata.name``; so a run of the command line and one of pytest continue each
    other's history.
    """
    folders = scenario.id.split("/")[:-1]
    suite = folders[0] if folders else "scenarios"
    result.name = visible(scenario.name)
    result.fullName = visible(f"scenarios.{scenario.id.replace('/', '.')}#{scenario.name}")
    identity = hashlib.md5(result.fullName.encode(), usedforsecurity=False)
    result.testCaseId = identity.hexdigest()
    result.titlePath = [visible(suite), visible(scenario.feature)]  # Allure adds the name.
    result.description = visible(scenario.summary)
    core = scenario.level == "core"
    labels = {
        LabelType.EPIC: "dra-core" if core else "dra-extended",
        LabelType.FEATURE: scenario.feature,
        LabelType.STORY: scenario.summary,
        LabelType.SEVERITY: (Severity.CRITICAL if core else Severity.NORMAL).value,
        LabelType.TAG: scenario.tier,
        LabelType.PARENT_SUITE: "dra-conformance",
        LabelType.SUITE: suite,
        LabelType.SUB_SUITE: scenario.feature,
    }
    result.labels += [Label(name, visible(value)) for name, value in labels.items()]
    urls = [visible(item) for item in scenario.references if is_address(item)]
    result.links += [Link(LinkType.LINK, url, url) for url in urls]


def complete(
    result: TestResult, finished: ScenarioFinished, compared: ScenarioCompared | None
) -> None:
    """Add what is known of a scenario once it has run to a described result."""
    result.steps.extend(_steps_of(finished, result.start))
    if compared is not None and compared.verdict is not None:
        result.labels.append(Label("verdict", str(compared.verdict)))
    for issue in finished.known_issues:
        if is_address(issue.link):
            result.links.append(Link(LinkType.ISSUE, visible(issue.link), visible(issue.name)))


def parse_milliseconds(time: str) -> int:
    """Return RFC 3339 as Allure counts, since the epoch; 0 where it is no such time."""
    try:
        return round(datetime.fromisoformat(time).timestamp() * 1000)
    except (ValueError, OverflowError):
        return 0


def _status_details(event: ScenarioFinished) -> StatusDetails | None:
    """Return the message, and as trace where it happened and what was left behind."""
    if event.outcome is Outcome.PASSED:
        return None
    lines = [f"at {event.where}"] if event.where else []
    lines += [f"left behind: {item}" for item in event.left]
    return StatusDetails(
        known=True if event.known_issues else None,
        flaky=True if event.attempts else None,
        message=_public("\n".join([*map(str, event.known_issues), event.message]), event.scenario)
        or None,
        trace=_public("\n".join(lines), event.scenario) or None,
    )


def _steps_of(event: ScenarioFinished, start: int) -> list[TestStepResult]:
    """Return the scenario's steps one after the other, from ``start`` (ms since the epoch)."""
    steps = []
    for step in event.steps:
        stop = start + round(step.seconds * 1000)
        message = _public(step.message, event.scenario)
        steps.append(
            TestStepResult(
                name=_public(event.real(step.title), event.scenario),
                status=STATUS[step.outcome],
                statusDetails=StatusDetails(message=message) if message else None,
                stage="finished",
                start=start,
                stop=stop,
            )
        )
        start = stop
    return steps


def attachments_of(
    event: ScenarioFinished, diagnostics: Mapping[str, str], compared: ScenarioCompared | None
) -> list[tuple[str, str, AttachmentType]]:
    """Return name, text and type of each attachment of a result, redacted, in a stable order."""
    attachments = [
        (visible(redact(name)), redact(text), _type_of(name, text))
        for name, text in sorted(diagnostics.items())
    ]
    observed = {step.title: list(step.observed) for step in event.steps if step.observed}
    evidence = [
        ("observed", observed),
        ("decisions", list(event.decisions)),
        ("undecided", list(event.undecided)),
    ]
    attachments += [
        (name, redacted_text(value, 2), AttachmentType.JSON) for name, value in evidence if value
    ]
    if compared is not None and compared.notes:
        attachments.append(("comparison", redact("\n".join(compared.notes)), AttachmentType.TEXT))
    return attachments


def _result(scenario: PlannedScenario, start: int, stop: int) -> TestResult:
    result = TestResult(uuid=str(uuid.uuid4()), stage="finished", start=start, stop=stop)
    describe(result, scenario)
    result.historyId = result.testCaseId
    result.file_pattern = f"{ALLURE_PREFIX}{TestResult.file_pattern}"
    return result


def _public(text: str, scenario: PlannedScenario) -> str:
    return visible(redact(public_text(text, scenario.file, scenario.id)))


def _type_of(name: str, text: str) -> AttachmentType:
    if name.endswith((".yaml", ".yml")):
        return AttachmentType.YAML
    if name.endswith(".json") or text.lstrip()[:1] in ("{", "["):
        try:
            loads(text.encode())
        except (ValueError, RecursionError):
            return AttachmentType.TEXT
        return AttachmentType.JSON
    return AttachmentType.TEXT


def apply_to_current_test(
    finished: ScenarioFinished,
    diagnostics: Mapping[str, str] | None = None,
    compared: ScenarioCompared | None = None,
) -> None:
    """Add labels, links, steps and attachments to the Allure result of the running item.

    Call it inside the item's ``runtest``, after the scenario has ended and before its failure is
    raised, in the thread that pytest runs in; without ``--alluredir`` it does nothing. The status
    is left to allure-pytest: an ``AssertionError`` is ``failed``, any other exception ``broken``.
    """
    result = _current_result()
    if result is None:
        return
    # The listener computes historyId from fullName when the item is torn down.
    describe(result, finished.scenario)
    complete(result, finished, compared)
    attach = allure_commons.plugin_manager.hook.attach_data
    for name, body, kind in attachments_of(finished, diagnostics or {}, compared):
        attach(body=body, name=name, attachment_type=kind, extension=kind.extension)


def _current_result() -> Any:
    """Return the result that allure-pytest's listener fills in, None without ``--alluredir``."""
    for plugin in allure_commons.plugin_manager.get_plugins():
        reporter = getattr(plugin, "allure_logger", None)
        if reporter is not None:
            result = reporter.get_test(None)
            return result if isinstance(result, TestResult) else None
    return None
