"""Scenarios of the node tier with each simulated node of the driver: what the test files share.

One cluster serves all cases of a file; its driver is given other GPUs in between, as a user can do.
T4 x4 is not here: `make test` runs all scenarios on it.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from conformance.engine.schedule.needs import disrupted_roles
from conformance.scenario.selection import Selection, select
from tests import programs

AT_ONCE = "6"
FULL, MIG = "nvml-dra-driver", "gpu.nvidia.com-mig"
NOT_THE_GPUS = re.compile(
    r"feature gate \S+ is off|needs Kubernetes |API \S+ is not served"
    r"|not supported by this target: distinct-devices: no attribute tells "
    r"|not supported by this target: (another-scheduler|partitions|shared-devices|upgrade): "
    r"|driver profile test-driver\.cdi\.k8s\.io "
    r"(does not (declare|define)|has no (command|stimulus)|names no attribute)"
    r"|driver profile gpu\.nvidia\.com-mig does not (declare|define) "
    r"(how containers show claims|device files in containers|.*deviceMetadata|.*rollingUpdate)"
    r"|driver profile gpu\.nvidia\.com-mig has no stimulus"
    r"|not supported by this target: device-health: .* that its profile names \(stimulus\)"
)
"""Reasons to skip a scenario that hold for this cluster, or upstream's driver, with any GPUs."""


REGRESSIONS = "regressions/"
"""How ids of scenarios begin that show a fault of Kubernetes each time, if a version has it."""

MOST_BY_CHANCE = 2
"""Other scenarios that may meet a known fault. On machines under load kube-scheduler 1.37.1 gives a
device to two claims where two pods of a Job that share one end at the same moment
(docs/found/double-allocation.md), which says nothing of the simulated GPUs."""


class Case(NamedTuple):
    """A node, and which of its devices scenarios use."""

    simulate: str
    driver: str = FULL
    dynamic_mig: bool = False
    faults: bool = False
    """With scenarios that disturb nodes: one after the other, they take minutes."""

    def __str__(self) -> str:
        mig = {FULL: "", MIG: "-mig"}[self.driver]
        return f"{self.simulate}{mig}{'-dynamic' if self.dynamic_mig else ''}"


def call(*arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "conformance", *arguments]
    return programs.ended(command, cwd=cwd, timeout=1800)


def but_the_passed(done: subprocess.CompletedProcess[str]) -> str:
    """What a run printed, less its many lines of what passed, so that what did not is seen."""
    lines = (done.stdout + done.stderr).splitlines()
    return "\n".join(line for line in lines if not re.match(r"\[ *\d+/\d+\] passed ", line))


@contextmanager
def running_cluster(name: str, folder: Path, *options: str) -> Iterator[None]:
    """A cluster of that name, removed at the end."""
    call("cluster", "down", "--name", name, cwd=folder)
    done = call("cluster", "up", "--name", name, *options, cwd=folder)
    assert done.returncode == 0, done.stderr
    try:
        yield
    finally:
        done = call("cluster", "down", "--name", name, cwd=folder)
    assert done.returncode == 0, done.stderr


def records(folder: Path, kind: str) -> list[dict[str, Any]]:
    lines = (folder / "results.ndjson").read_text().splitlines()
    return [record for record in map(json.loads, lines) if record["record"] == kind]


def pass_as_on_the_reference(name: str, case: Case, tmp_path: Path) -> None:
    """Run the node tier's scenarios on the cluster of that name, with the case's devices."""
    shown = ["--simulate", case.simulate, *(["--dynamic-mig"] if case.dynamic_mig else [])]
    done = call("cluster", "driver", "--name", name, *shown, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    chosen = {
        item.id: item.document.file
        for item in select((), Selection(tier=("node",)))
        if case.faults or not disrupted_roles(item.scenario.spec)
    }
    options = ("--driver", case.driver, "-n", AT_ONCE, *map(str, chosen.values()))
    run_compared(name, chosen.keys(), tmp_path / "out", *options)
    if case.driver == FULL:  # its profile has a stimulus
        ran = records(tmp_path / "out", "scenario")
        assert not [one for one in ran if "device-health:" in (one["message"] or "")]


def run_compared(
    name: str, wanted: Collection[str], folder: Path, *options: str
) -> list[dict[str, Any]]:
    """Run scenarios on the cluster of that name; each must go as on the reference.

    Returns: how each compares with the reference, without known failures.

    Args:
        wanted: the ids of those that run.
        folder: where the reports go.
    """
    done = call(
        *("run", "--target", "cluster", "--cluster", "local", "--name", name, "--compare"),
        *("-o", str(folder), *options),
        cwd=folder.parent,
    )
    assert done.returncode == 0, but_the_passed(done)
    ran = records(folder, "scenario")
    assert {one["scenario"] for one in ran} == wanted
    skipped = {one["scenario"]: one["message"] for one in ran if one["outcome"] == "skipped"}
    assert {why for why in skipped.values() if not NOT_THE_GPUS.match(why)} == set()
    ended = [one for one in ran if one["scenario"] not in skipped]
    assert {one["outcome"] for one in ended} <= {"passed", "known"}
    known = {one["scenario"] for one in ended if one["outcome"] == "known"}
    by_chance = {name for name in known if not name.startswith(REGRESSIONS)}
    assert len(by_chance) <= MOST_BY_CHANCE, by_chance
    compared = records(folder, "compared")
    assert {one["scenario"] for one in compared} == {one["scenario"] for one in ran}
    compared = [one for one in compared if one["scenario"] not in known]
    judged = {judgement["verdict"] for one in compared for judgement in one["judgements"]}
    assert judged <= {"identical", "admissible"}
    return compared


def certified(
    folder: Path, organization: str, project: str, version: str, command: str = ""
) -> dict[str, str]:
    """What a run comes to for the core, in a report that is beside it then and verifies.

    ``command``: of the driver, which is checked alone, too.
    """
    report, checks = folder / "report.yaml", folder / "driver-check.json"
    given: tuple[str, ...] = ()
    if command:
        alone = ("--driver-command", command, "--output", str(checks))
        done = call("driver-check", *alone, cwd=folder)
        assert done.returncode in {0, 1, 4}, done.stdout + done.stderr
        given = ("--driver-check", str(checks))
    who = ("--organization", organization, "--project", project, "--version", version)
    made = call(
        *("report", str(folder / "results.ndjson"), "--output", str(report), *who),
        *("--url", f"https://example.com/{project}", *given),
        cwd=folder,
    )
    checked = call("verify", str(report), str(folder / "results.ndjson"), *given, cwd=folder)
    assert checked.returncode == 0, made.stderr + checked.stdout + checked.stderr
    document = yaml.safe_load(report.read_text())
    assert document["hardware"] == "simulated"
    return {one["name"]: one["result"] for one in document["profiles"]}
