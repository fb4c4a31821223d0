"""What CI systems read: JUnit XML, and annotations of a GitHub job.

JUnit XML has no standard; this is the part that Jenkins, GitLab and actions of GitHub share:
``testsuites/testsuite/testcase`` with ``failure``, ``error`` or ``skipped``, and properties. Beyond
the schema of the xunit plugin of Jenkins a ``testcase`` has ``file`` and ``line``, which GitLab and
what annotates pull requests read. Long diagnostics are named as ``[[ATTACHMENT|path]]``, the way of
the junit-attachments plugin of Jenkins, which GitLab took over.

Annotations are workflow commands on standard output (GitHub documentation, "Workflow commands"),
where ``GITHUB_ACTIONS`` is ``true``. GitHub shows ten errors of a step.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from xml.etree import ElementTree as ET

from rich.console import Console

from conformance.results.events.dispatch import Event
from conformance.results.events.result import RunCollector, RunResult, ScenarioResult
from conformance.results.events.run import RunFinished, RunStarted
from conformance.results.events.scenario import Outcome
from kube.base.files import write_whole
from kube.base.redaction import redact
from kube.base.text import public_path, public_text, shorten, visible, xml_text

MAX_CHARACTERS = 100_000
"""The most that is kept of one message or diagnostic; CI systems refuse very large files."""

MAX_INLINE = 2_000
"""The most characters of a diagnostic in the file itself; longer ones are attached."""

_TAGS = {
    Outcome.FAILED: "failure",
    **dict.fromkeys((Outcome.ERROR, Outcome.LOST, Outcome.FLAKY), "error"),
    **dict.fromkeys((Outcome.SKIPPED, Outcome.KNOWN), "skipped"),
}
"""What is flaky is inconclusive, and CI reads nothing else; known is as pytest writes what is
expected to fail."""

Place = Callable[[str], Path | None]


class JUnitFile:
    """A reporter that writes one XML file when the run is over (also when it was interrupted).

    A scenario that passed, and in which an allocation is against the rules, is a failure in it: CI
    reads nothing else. Diagnostics are attached from where ``place`` finds them as files.
    """

    def __init__(self, path: Path, place: Place = lambda _: None) -> None:
        self.path = path
        self._place = place
        self._collector = RunCollector()

    def __str__(self) -> str:
        return f"the JUnit file {self.path}"

    def handle(self, event: Event) -> None:
        self._collector.handle(event)
        if isinstance(event, RunFinished) and self._collector.run is not None:
            root = junit_xml(self._collector.result(), self._place)
            self.path.parent.mkdir(parents=True, exist_ok=True)
            write_whole(self.path, ET.tostring(root, encoding="utf-8", xml_declaration=True))


def junit_xml(result: RunResult, place: Place = lambda _: None) -> ET.Element:
    """Return the ``testsuites`` element of a run that is over."""
    started, ids, rows = result.run, result.outcomes, result.scenarios
    against = [row for row in rows if row.outcome is Outcome.PASSED and row.against_rules]
    totals = {
        "tests": str(len(rows)),
        "failures": str(len(ids[Outcome.FAILED]) + len(against)),
        "errors": str(
            sum(len(ids[outcome]) for outcome in (Outcome.ERROR, Outcome.LOST, Outcome.FLAKY))
        ),
        "time": f"{result.footer.seconds if result.footer else 0.0:.3f}",
    }
    root = ET.Element("testsuites", {"name": "dra-conformance", **totals})
    suite = ET.SubElement(
        root,
        "testsuite",
        {
            "name": xml_text(f"dra-conformance.{started.target}"),
            **totals,
            "skipped": str(len(ids[Outcome.SKIPPED]) + len(ids[Outcome.KNOWN])),
            "timestamp": xml_text(started.started_at),
            "hostname": xml_text(socket.gethostname()),
        },
    )
    _properties(suite, _run_properties(started))
    for row in rows:
        case = _case(suite, row, place(row.scenario.id))
        _result(case, row)
        case[:] = sorted(case, key=lambda element: element.tag.startswith("system-"))
    ET.indent(root)
    return root


def _case(suite: ET.Element, row: ScenarioResult, folder: Path | None) -> ET.Element:
    scenario = row.scenario
    parents, _, name = scenario.id.rpartition("/")
    case = ET.SubElement(
        suite,
        "testcase",
        {
            "classname": xml_text(".".join(["scenarios", *parents.split("/")]).rstrip(".")),
            "name": xml_text(name),
            "time": f"{row.finished.seconds if row.finished else 0.0:.3f}",
            "file": xml_text(f"scenarios/{public_path(scenario.file, scenario.id)}"),
            "line": str(scenario.line),
        },
    )
    facts = {
        "summary": scenario.summary,
        "level": scenario.level,
        "feature": scenario.feature,
        "tier": scenario.tier,
    }
    if row.compared is not None and row.compared.verdict is not None:
        facts["verdict"] = str(row.compared.verdict)
    lines = [f"{key}: {value}" for key, value in facts.items()]
    attached = sorted(folder.iterdir()) if folder is not None else []
    lines += [f"[[ATTACHMENT|{_from_project(file)}]]" for file in attached]
    ET.SubElement(case, "system-out").text = _fit("\n".join(lines))
    texts = [
        f"== {key} ==\n{value}"
        for key, value in sorted(row.diagnostics.items())
        if not attached or len(value) <= MAX_INLINE
    ]
    if texts:
        ET.SubElement(case, "system-err").text = _fit("\n\n".join(texts))
    return case


def _from_project(file: Path) -> str:
    """Return a path as GitLab reads it, from the project's folder; absolute anywhere else."""
    project, path = os.environ.get("CI_PROJECT_DIR"), file.resolve()
    if project and path.is_relative_to(Path(project).resolve()):
        return str(path.relative_to(Path(project).resolve()))
    return str(path)


def _run_properties(started: RunStarted) -> dict[str, str]:
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


def _result(case: ET.Element, row: ScenarioResult) -> None:
    scenario, finished, compared = row.scenario, row.finished, row.compared
    if row.outcome is Outcome.PASSED and compared is not None and row.against_rules:
        about = {"message": f"an allocation is {compared.verdict}", "type": str(compared.verdict)}
        ET.SubElement(case, "failure", about).text = _fit("\n".join(compared.notes))
        return
    tag = _TAGS.get(row.outcome)
    if tag is None:
        return
    kind = str(row.outcome)
    details = [*map(str, finished.known_issues if finished else ()), row.message]
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


MAX_ANNOTATIONS = 10
"""GitHub's limit for one level in one step; the last one counts those that are left out."""


def in_github(env: Mapping[str, str]) -> bool:
    return env.get("GITHUB_ACTIONS") == "true"


class GithubAnnotations:
    """Annotates when the run is over; only files below ``workspace`` are named."""

    def __init__(self, console: Console, workspace: Path | None = None) -> None:
        self._console = console
        self._workspace = (workspace or Path.cwd()).resolve()
        self._collector = RunCollector()

    def __str__(self) -> str:
        return "the annotations"

    def handle(self, event: Event) -> None:
        self._collector.handle(event)
        if isinstance(event, RunFinished) and self._collector.run is not None:
            for line in workflow_commands(self._collector.result(), self._workspace):
                self._console.print(line, soft_wrap=True, markup=False, highlight=False)


def workflow_commands(result: RunResult, workspace: Path) -> Iterator[str]:
    """Yield a workflow command for each scenario that did not pass, known issues as notices."""
    for level, rows in (
        ("error", [row for row in result.scenarios if row.bad and not row.known]),
        ("notice", [row for row in result.scenarios if row.known]),
    ):
        annotated = rows if len(rows) <= MAX_ANNOTATIONS else rows[: MAX_ANNOTATIONS - 1]
        for row in annotated:
            yield _command(level, row, workspace)
        if rows[len(annotated) :]:
            remainder = f"{len(rows) - len(annotated)} more; the reports name them all"
            yield f"::{level} title=dra-conformance::{remainder}"


def _command(level: str, row: ScenarioResult, workspace: Path) -> str:
    scenario, finished = row.scenario, row.finished
    message = row.reasons
    if finished is not None:
        message = "\n".join([*map(str, finished.known_issues), message])
    properties = {"title": f"{row.outcome}: {scenario.id}"}
    where, _, line = (finished.where if finished else "").rpartition(":")
    try:
        file = Path(where or scenario.file).resolve()
    except (OSError, ValueError):  # somebody else's result file may name what is no path
        file = Path()
    if file.is_relative_to(workspace):
        number = line if line.isdecimal() else str(scenario.line)
        properties |= {"file": str(file.relative_to(workspace)), "line": number}
    listed = ",".join(
        f"{key}={_escape_data(value).replace(':', '%3A').replace(',', '%2C')}"
        for key, value in properties.items()
    )
    return f"::{level} {listed}::{_escape_data(shorten(message or str(row.outcome), 20, 2_000))}"


def _escape_data(text: str) -> str:
    """Return a message as one line in which nothing is a command."""
    escaped = visible(redact(text)).replace("%", "%25")
    return escaped.replace("\r", "%0D").replace("\n", "%0A")
