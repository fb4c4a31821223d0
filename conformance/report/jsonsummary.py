"""A run in one small JSON document, for scripts: the verdict, counts, and what did not pass.

The result file is the evidence and has everything; this is what a job looks at.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any, Literal

from pydantic import TypeAdapter

from conformance.compare.conclude import conclude_run, explain_uncertified
from conformance.report.summary import VERDICTS, by_feature
from conformance.results.events.comparison import recorded
from conformance.results.events.result import ScenarioResult
from conformance.results.read import RecordedRun
from conformance.scenario.base import API_VERSION
from kube.base.redaction import redact
from kube.base.text import shorten, visible

MAX_CHARACTERS = 4_000  # The most that is kept of one message.


@recorded
@dataclass(frozen=True, slots=True)
class NotPassed:
    """A scenario that needs attention, or a known issue.

    Attributes:
        verdict: the worst of its allocations; None where none was judged.
        where: ``file:line`` of the step that decided; empty where nothing ran.
    """

    scenario: str
    level: str
    feature: str
    outcome: str
    verdict: str | None
    message: str
    where: str
    known_issues: tuple[str, ...]


@recorded
@dataclass(frozen=True, slots=True)
class RunSummary:
    """A run in short.

    Attributes:
        verdict: ``conformant``, ``not conformant``, ``inconclusive`` or ``partial``.
        reasons: why it is not conformant; empty where it is.
        certifies_nothing: why no driver can be certified by it; empty where one can.
        scheduler_version: of the scheduler, by whose rules allocations are judged.
        scenarios: outcome -> scenarios; outcomes that did not occur are left out.
        allocations: verdict -> allocations, likewise; empty where nothing was compared.
        latency: how many claims waited for devices and how long, in seconds: p50, p90, p99; None
            where nothing was measured.
        features: feature -> outcome -> scenarios.
        seconds: wall time of the run; None where it was cut off.
        result_file_digest: ``sha256:`` of the result file that this was made from.
        resumed: ids of the runs that were interrupted before this one, oldest first.
    """

    api_version: Literal["dra-conformance/v1"]
    kind: Literal["RunSummary"]
    verdict: str
    exit_code: int
    reasons: tuple[str, ...]
    certifies_nothing: tuple[str, ...]
    run: str
    target: str
    kubernetes_version: str
    scheduler_version: str
    driver: str | None
    simulated: tuple[str, ...]
    suite_version: str
    started_at: str
    seconds: float | None
    scenarios: dict[str, int]
    allocations: dict[str, int]
    latency: dict[str, float] | None
    features: dict[str, dict[str, int]]
    not_passed: tuple[NotPassed, ...]
    result_file_digest: str
    resumed: tuple[str, ...]


ADAPTER: TypeAdapter[Any] = TypeAdapter(RunSummary)


def summary_schema() -> dict[str, Any]:
    schema = ADAPTER.json_schema(by_alias=True, mode="serialization")
    for definition in (schema, *schema["$defs"].values()):
        definition["description"] = definition["description"].split("\n\n")[0]
    return schema


def summarize(result: RecordedRun) -> RunSummary:
    conclusion, run = conclude_run(result), result.run
    return RunSummary(
        api_version=API_VERSION,
        kind="RunSummary",
        verdict=VERDICTS[conclusion.code][0],
        exit_code=int(conclusion.code),
        reasons=conclusion.reasons,
        certifies_nothing=explain_uncertified(result),
        run=run.run,
        target=run.target,
        kubernetes_version=run.kubernetes_version,
        scheduler_version=run.scheduler_version or run.kubernetes_version,
        driver=run.driver,
        simulated=tuple(run.simulated),
        suite_version=run.suite_version,
        started_at=run.started_at,
        seconds=result.footer.seconds if result.footer else None,
        scenarios={str(name): len(ids) for name, ids in result.outcomes.items() if ids},
        latency=None if result.latency is None else result.latency._asdict(),
        allocations={str(name): number for name, number in result.verdicts.items() if number},
        features={
            name: {str(outcome): number for outcome, number in counts.items()}
            for name, counts in by_feature(result).items()
        },
        not_passed=tuple(_not_passed(row) for row in result.scenarios if row.bad),
        result_file_digest=result.digest,
        resumed=tuple(earlier.run for earlier in run.resumed),
    )


def render_json(result: RecordedRun) -> str:
    document = ADAPTER.dump_python(summarize(result), by_alias=True, mode="json")
    return json.dumps(document, indent=2) + "\n"  # ASCII, as the result file is


def _not_passed(row: ScenarioResult) -> NotPassed:
    ended = row.finished
    verdict = row.compared.verdict if row.compared else None
    return NotPassed(
        scenario=row.scenario.id,
        level=row.scenario.level,
        feature=row.scenario.feature,
        outcome=str(row.outcome),
        verdict=None if verdict is None else str(verdict),
        message=shorten(visible(redact(row.reasons)), 40, MAX_CHARACTERS),
        where=ended.where if ended else "",
        known_issues=tuple(issue.name for issue in ended.known_issues) if ended else (),
    )
