"""Events for tests: a small run with one scenario of each outcome."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from conformance.digest import set_digest
from conformance.results.events.comparison import Difference, Judgement, ScenarioCompared, Verdict
from conformance.results.events.dispatch import Event, Reporter
from conformance.results.events.run import RunFinished, RunStarted
from conformance.results.events.scenario import (
    Diagnostics,
    Outcome,
    PlannedScenario,
    ScenarioFinished,
    ScenarioStarted,
    StepFinished,
    StepStarted,
    count,
)
from conformance.results.read import RecordedRun, load_results
from conformance.results.write import ResultFile
from conformance.scenario.registry import RunningVersions

HOSTILE = (
    "[red]markup[/red] <b>&amp;</b> ]]> \x1b[2J\x00\x07\x85 \u202eevil \ud800 \ufffe {{ 7*7 }} "
    "<script>alert(1)</script> \"quoted\" 'single' \r\n second line\ttab \U0001f600"
)


def all_of(version: str) -> RunningVersions:
    """The versions of a cluster of one version."""
    return RunningVersions(frozenset({version}), version)


def planned(name: str = "core/one", *, level: str | None = None, **changes: Any) -> PlannedScenario:
    values: dict[str, Any] = {
        "id": name,
        "name": name.rpartition("/")[2],
        "summary": f"What {name} shows.",
        "level": level or ("core" if name.startswith("core/") else "extended"),
        "feature": "ResourceClaim",
        "tier": "allocation",
        "references": ("https://kubernetes.io/docs/", "KEP-4381"),
        "file": f"/home/somebody/checkout/scenarios/{name}.yaml",
        "line": 3,
        "digest": "sha256:" + name.encode().hex().ljust(64, "0")[:64],
    }
    return PlannedScenario(**{**values, **changes})


def step(scenario: str, index: int = 0, **changes: Any) -> StepFinished:
    values: dict[str, Any] = {
        "scenario": scenario,
        "index": index,
        "title": f"step {index}",
        "outcome": Outcome.PASSED,
        "message": "",
        "seconds": 0.25,
        "observed": (),
    }
    return StepFinished(**{**values, **changes})


def finished(
    scenario: PlannedScenario | str = "core/one",
    outcome: Outcome = Outcome.PASSED,
    message: str = "",
    **changes: Any,
) -> ScenarioFinished:
    if isinstance(scenario, str):
        scenario = planned(scenario)
    bad = outcome in (Outcome.FAILED, Outcome.ERROR)
    values: dict[str, Any] = {
        "scenario": scenario,
        "outcome": outcome,
        "message": message,
        "where": f"{scenario.file}:12" if bad else "",
        "cleanup": Outcome.SKIPPED if outcome is Outcome.SKIPPED else Outcome.PASSED,
        "left": (),
        "seconds": 0.5,
        "steps": (step(scenario.id), step(scenario.id, 1)),
        "started_at": "2026-11-21T10:00:30.000Z",
    }
    return ScenarioFinished(**{**values, **changes})


def started(scenarios: Sequence[PlannedScenario], **changes: Any) -> RunStarted:
    values: dict[str, Any] = {
        "run": "r1",
        "target": "cluster/local",
        "planned": tuple(scenarios),
        "kubernetes_version": "1.37.1",
        "driver": "gpu.nvidia.com",
        "simulated": ("NVML",),
        "versions": {"containerd": "2.2.0", "etcd": "3.6.6"},
        "suite_version": "0.1.0",
        "scenario_set_digest": set_digest(scenarios),
        "started_at": "2026-11-21T10:00:00Z",
        "options": {"cluster": "local", "binaries": "/home/somebody/bin"},
    }
    return RunStarted(**{**values, **changes})


def compared(
    scenario: str = "core/one", *verdicts: str, differs: bool = False, **changes: Any
) -> ScenarioCompared:
    """What a comparison says: a judgement of each verdict, and a difference where one is wanted."""
    judgements = tuple(Judgement(Verdict(text), f"why {text}") for text in verdicts)
    differences = (Difference(0, "step 0", "$[0]", "1", "2"),) if differs else ()
    values = {"judgements": judgements, "differences": differences, **changes}
    return ScenarioCompared(scenario, **values)


def ended(events: Sequence[ScenarioFinished], **changes: Any) -> RunFinished:
    values: dict[str, Any] = {
        "run": "r1",
        "counts": count(events),
        "finished_at": "2026-11-21T10:01:00Z",
        "seconds": 60.0,
        "interrupted": False,
        "left": (),
        "memory": {"suite": 310 << 20, "cluster": 1900 << 20},
    }
    return RunFinished(**{**values, **changes})


def sample() -> tuple[list[PlannedScenario], list[ScenarioFinished], dict[str, dict[str, str]]]:
    """Planned scenarios, how they ended (one is lost), diagnostics of the failed one."""
    names = ["core/broken", "core/failing", "core/lost", "core/passing", "extended/unsupported"]
    scenarios = [planned(name) for name in names]
    by_id = {item.id: item for item in scenarios}
    events = [
        finished(by_id["core/passing"]),
        finished(
            by_id["core/failing"],
            Outcome.FAILED,
            "pod pod0 is Pending after 60 s\nexpected Running",
            steps=(
                step("core/failing"),
                step("core/failing", 1, outcome=Outcome.FAILED, message="pod pod0 is Pending"),
            ),
        ),
        finished(by_id["core/broken"], Outcome.ERROR, "connection refused", left=("Pod pod0",)),
        finished(by_id["extended/unsupported"], Outcome.SKIPPED, "needs gate DRAAdminAccess"),
    ]
    return scenarios, events, {"core/failing": {"events": "FailedScheduling", "claims.yaml": "[]"}}


def stream(
    scenarios: Sequence[PlannedScenario],
    events: Sequence[ScenarioFinished],
    diagnostics: Mapping[str, Mapping[str, str]] | None = None,
    *,
    footer: bool = True,
    start: Mapping[str, Any] | None = None,
    end: Mapping[str, Any] | None = None,
    compared: Sequence[ScenarioCompared] | None = None,
) -> list[Event]:
    """The events of a run in their order."""
    header = {"compared": compared is not None, **(start or {})}
    judged = {item.scenario: item for item in compared or ()}
    run: list[Event] = [started(scenarios, **header)]
    for event in events:
        name = event.scenario.id
        run.append(ScenarioStarted(event.scenario, f"ns-{event.scenario.name}"))
        for item in event.steps:
            run += [StepStarted(name, item.index, item.title), item]
        if name in (diagnostics or {}):
            run.append(Diagnostics(name, (diagnostics or {})[name]))
        if name in judged:
            run.append(judged[name])
        run.append(event)
    if footer:
        run.append(ended(events, **(end or {})))
    return run


def play(reporter: Reporter, events: Sequence[Event]) -> None:
    for event in events:
        reporter.handle(event)


def recorded(folder: Path, *what: Any, **changes: Any) -> RecordedRun:
    """A run as it is read back from the result file that was written of it."""
    play(ResultFile(folder / "r"), stream(*what, **changes))
    return load_results(folder / "r")
