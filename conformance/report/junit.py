"""JUnit XML: what CI systems read.

The format has no standard; this is the part that Jenkins, GitLab and GitHub's actions share:
``testsuites/testsuite/testcase`` with ``failure``, ``error`` or ``skipped``, and properties.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from xml.etree import ElementTree as ET

from conformance.compare.judging import Verdict
from conformance.engine.events import (
    Diagnostics,
    Event,
    Outcome,
    PlannedScenario,
    RunFinished,
    RunStarted,
    ScenarioFinished,
)
from conformance.redaction import redact
from conformance.resultfile.read import by_outcome
from conformance.text import public_path, public_text, shorten, xml_text

MAX_CHARACTERS = 100_000
"""Of one message or diagnostic; CI systems refuse files of many megabytes."""


class JUnitFile:
    """A reporter that writes one XML file when the run is over (also when it was interrupted).

    Args:
        path: the file; its folder is made.
        verdicts: scenario id -> worst verdict of the comparison; read when the file is written.
            One against a rule makes a failure of a scenario that passed: CI reads nothing else.
        notes: scenario id -> what the comparison found (``Comparer.notes``).
    """

    def __init__(
        self,
        path: Path,
        verdicts: Mapping[str, str] | None = None,
        notes: Callable[[str], Sequence[str]] | None = None,
    ) -> None:
        self.path = path
        self._notes = notes or (lambda _: ())
        self._verdicts = verdicts if verdicts is not None else {}
        self._started: RunStarted | None = None
        self._finished: dict[str, ScenarioFinished] = {}
        self._diagnostics: dict[str, dict[str, str]] = {}

    def __str__(self) -> str:
        return f"the JUnit file {self.path}"

    def handle(self, event: Event) -> None:
        """Collect, and write at the end."""
        match event:
            case RunStarted():
                self._started = event
            case Diagnostics():
                self._diagnostics.setdefault(event.scenario, {}).update(event.items)
            case ScenarioFinished():
                self._finished[event.scenario.id] = event
            case RunFinished() if self._started is not None:
                self._write(self._started, event)
            case _:
                pass

    def _write(self, started: RunStarted, ended: RunFinished) -> None:
        ids = by_outcome(started.planned, tuple(self._finished.values()))
        outcomes = {key: outcome for outcome, keys in ids.items() for key in keys}
        judged = [name for name in ids[Outcome.PASSED] if self._is_bad(name)]
        totals = {
            "tests": str(len(outcomes)),
            "failures": str(len(ids[Outcome.FAILED]) + len(judged)),
            "errors": str(len(ids[Outcome.ERROR]) + len(ids[Outcome.LOST])),
            "skipped": str(len(ids[Outcome.SKIPPED])),
            "time": f"{ended.seconds:.3f}",
        }
        root = ET.Element("testsuites", {"name": "dra-conformance", **totals})
        suite = ET.SubElement(
            root,
            "testsuite",
            {
                "name": xml_text(f"dra-conformance.{started.target}"),
                **totals,
                "timestamp": xml_text(started.started_at),
            },
        )
        _properties(suite, _of_run(started))
        for scenario in sorted(started.planned, key=lambda item: item.id):
            self._case(suite, scenario, outcomes[scenario.id])
        ET.indent(root)
        self.path.parent.mkdir(parents=True, exist_ok=True)
        scratch = self.path.with_name(f"{self.path.name}.tmp")
        ET.ElementTree(root).write(scratch, encoding="utf-8", xml_declaration=True)
        scratch.replace(self.path)

    def _is_bad(self, scenario_id: str) -> bool:
        return Verdict.is_bad(self._verdicts.get(scenario_id))

    def _case(self, suite: ET.Element, scenario: PlannedScenario, outcome: Outcome) -> None:
        finished = self._finished.get(scenario.id)
        folder, _, name = scenario.id.rpartition("/")
        case = ET.SubElement(
            suite,
            "testcase",
            {
                "classname": xml_text(".".join(["scenarios", *folder.split("/")]).rstrip(".")),
                "name": xml_text(name),
                "time": f"{finished.seconds if finished else 0.0:.3f}",
            },
        )
        facts = {
            "summary": scenario.summary,
            "level": scenario.level,
            "feature": scenario.feature,
            "tier": scenario.tier,
            "file": f"{public_path(scenario.file, scenario.id)}:{scenario.line}",
        }
        if scenario.id in self._verdicts:
            facts["verdict"] = str(self._verdicts[scenario.id])
        _properties(case, facts)
        _result(case, scenario, outcome, finished)
        if outcome is Outcome.PASSED and self._is_bad(scenario.id):
            verdict = self._verdicts[scenario.id]
            notes = _fit("\n".join(self._notes(scenario.id)))
            message = {"message": f"an allocation is {verdict}", "type": verdict}
            ET.SubElement(case, "failure", message).text = notes
        items = self._diagnostics.get(scenario.id, {})
        if items:
            text = "\n\n".join(f"== {key} ==\n{value}" for key, value in sorted(items.items()))
            ET.SubElement(case, "system-err").text = _fit(text)


def _of_run(started: RunStarted) -> dict[str, str]:
    return {
        "run": started.run,
        "target": started.target,
        "kubernetes": started.kubernetes_version,
        "driver": started.driver or "none",
        "simulated": "; ".join(started.simulated) or "nothing",
        "suite": started.suite_version,
        "scenarioSetDigest": started.scenario_set_digest,
        **{f"version.{name}": version for name, version in sorted(started.versions.items())},
    }


def _properties(parent: ET.Element, items: Mapping[str, str]) -> None:
    properties = ET.SubElement(parent, "properties")
    for name, value in items.items():
        ET.SubElement(properties, "property", {"name": xml_text(name), "value": _fit(value)})


def _result(
    case: ET.Element,
    scenario: PlannedScenario,
    outcome: Outcome,
    finished: ScenarioFinished | None,
) -> None:
    message = finished.message if finished else ""
    match outcome:
        case Outcome.FAILED:
            tag, kind = "failure", "failed"
        case Outcome.ERROR:
            tag, kind = "error", "error"
        case Outcome.LOST:
            tag, kind = "error", "lost"
            message = message or "planned, and never reported"
        case Outcome.SKIPPED:
            tag, kind = "skipped", "skipped"
        case _:
            return
    details = [message]
    if finished and finished.where:
        details.append(f"at {finished.where}")
    if finished and finished.left:
        details.append("left behind: " + ", ".join(finished.left))
    texts = [_fit(public_text(text, scenario.file, scenario.id)) for text in details]
    first = texts[0].split("\n", 1)[0] or kind
    element = ET.SubElement(case, tag, {"message": shorten(first, 1, 500), "type": kind})
    element.text = "\n".join(texts)


def _fit(text: str) -> str:
    return xml_text(shorten(redact(text), 2_000, MAX_CHARACTERS))
