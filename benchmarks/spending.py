"""Where the seconds of a run's scenarios went: for whom they waited, and what they did.

Run with ``python -m benchmarks.spending FOLDER``, the output folder of a run, with the scenarios as
they were for that run. The seconds of scenarios that ran beside each other are added up, so that
the sum is longer than the run. How long a step waited is known of the step as a whole: one that
expects several things counts for the first that it does not only see stay.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from pathlib import Path

from rich.console import Console
from rich.table import Table

from conformance.results.events.scenario import ScenarioFinished
from conformance.results.read import load_results, result_file
from conformance.scenario.expectations.base import Expectation, Timed
from conformance.scenario.expectations.pod import PodExpectation
from conformance.scenario.model import Spec
from conformance.scenario.selection import Selection, select
from conformance.scenario.steps import Step

STAYS = "the suite: it sees that something stays, or lets time pass"
REQUESTS = "the API server: requests"
CLEANUP = "the suite and Kubernetes: cleanup, until the namespace is empty"
START = "kubelet, runtime and driver: a pod starts or ends"

AWAITED = {
    "claim": "scheduler and controllers: a claim's state",
    "devices": START,
    "environment": START,
    "hardware": START,
    "metadata": START,
    "deviceNodes": START,
    "cdi": "driver: CDI files",
    "podResources": "kubelet: PodResources",
    "prepared": "driver: claims prepared or unprepared",
    "event": "Kubernetes: events",
    "watched": "Kubernetes: what a watch says",
    "metrics": "Kubernetes: metrics",
    "object": "controllers: an object's state",
    "objects": "controllers: objects of a kind",
    "none": "controllers: that nothing is left",
    "together": "controllers: what several objects say together",
}
"""First key of an expectation -> for whom a scenario waits until it holds."""


def name_awaited(expectation: Expectation) -> str:
    """Return for whom a scenario waits until an expectation holds, and for what."""
    if isinstance(expectation, PodExpectation) and expectation.phase is None:
        return "scheduler: it binds a pod, or says why not"
    return AWAITED.get(expectation.leading_key(), START)


def split_step(step: Step, spec: Spec, seconds: float) -> dict[str, float]:
    """Return what a step spent its seconds on: name -> seconds."""
    if step.wait is not None:
        return {STAYS: seconds}
    if step.fault is not None:
        return {f"restarts: {step.fault.component}": seconds}
    if step.churn is not None:
        return {"churn": seconds}
    if step.expect is None:
        return {REQUESTS: seconds}
    timed = [item for item in step.expect if isinstance(item, Timed)]
    stays = sum(
        item.consistently or (spec.timeouts.consistently if item.must_stay else 0.0)
        for item in timed
    )
    awaited = [item for item in timed if item.consistently is None]
    if not awaited:
        return {STAYS: seconds}
    stays = min(stays, seconds)
    return {STAYS: stays, name_awaited(awaited[0]): seconds - stays}


def count_seconds(finished: ScenarioFinished, spec: Spec) -> dict[str, float]:
    """Return what a scenario spent its seconds on; its steps' indexes are those of the document."""
    in_cleanup = finished.seconds - sum(ended.seconds for ended in finished.steps)
    spent: dict[str, float] = {CLEANUP: max(0.0, in_cleanup)}
    for ended in finished.steps:
        add_seconds(spent, split_step(spec.steps[ended.index], spec, ended.seconds))
    return spent


def add_seconds(spent: dict[str, float], more: Mapping[str, float]) -> None:
    for name, seconds in more.items():
        spent[name] = spent.get(name, 0.0) + seconds


def main() -> None:
    """Print the table, and the steps that took longest."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--steps", type=int, default=15, help="how many of the longest steps")
    arguments = parser.parse_args()
    result = load_results(result_file(arguments.folder))
    specs = {item.id: item.scenario.spec for item in select((), Selection())}
    spent: dict[str, float] = {}
    steps: list[tuple[float, str, str]] = []
    for finished in result.finished:
        if finished.scenario.id in specs and finished.steps:
            add_seconds(spent, count_seconds(finished, specs[finished.scenario.id]))
            steps += [(one.seconds, finished.scenario.id, one.title) for one in finished.steps]
    total = sum(spent.values())
    table = Table("seconds", "%", "for whom and for what")
    for name, seconds in sorted(spent.items(), key=lambda item: -item[1]):
        table.add_row(f"{seconds:.0f}", f"{100 * seconds / total:.0f}", name)
    longest = Table("seconds", "scenario", "step", title="the longest steps")
    for seconds, scenario, title in sorted(steps, reverse=True)[: arguments.steps]:
        longest.add_row(f"{seconds:.1f}", scenario, title)
    console = Console()
    console.print(f"{result.footer.seconds if result.footer else 0:.0f} s, {total:.0f} in all")
    console.print(table)
    console.print(longest)


if __name__ == "__main__":
    main()
