"""Every scenario of the node tier on a real cluster, with each simulated node of the driver.

One cluster serves all; its driver is given other GPUs in between, as a user can do. T4 x4 is not
here: `make test` runs all scenarios on it.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from conformance.scenario.selection import Selection, select
from nvml_driver.simulated import shipped

pytestmark = [pytest.mark.needs_root, pytest.mark.slow]

NAME = "profiles"
AT_ONCE = "6"
FULL, MIG = "gpu.nvidia.com", "gpu.nvidia.com-mig"
NOT_THE_GPUS = re.compile(r"feature gate \S+ is not known|needs Kubernetes |API \S+ is not served")
"""Reasons to skip a scenario that hold for this cluster whatever GPUs it has."""
JOB = "core/job-separate-and-shared-claims"
IN_USE = "in-use: another claim has the device already"
TAKES_ALL = "core/cleanup-waiting-pod-gets-freed-device"


class Case(NamedTuple):
    """A node, which of its devices scenarios use, and what cannot run there."""

    simulate: str
    driver: str = FULL
    dynamic_mig: bool = False
    left_out: frozenset[str] = frozenset()

    def __str__(self) -> str:
        mig = {FULL: "", MIG: "-mig"}[self.driver]
        return f"{self.simulate}{mig}{'-dynamic' if self.dynamic_mig else ''}"


CASES = [
    Case("l40sx8"),
    # Nobody can have all partitions of a GPU: they overlap, and are more than a claim may have.
    Case("a30x4", MIG, dynamic_mig=True, left_out=frozenset({TAKES_ALL})),
    Case("a100-40x8"),
    Case("a100-80x8"),
    # Full GPUs beside 200 partitions of them.
    Case("h100-80x8", dynamic_mig=True),
    Case("b200x8"),
    Case("mixed"),
    Case("mixed", MIG),
]


def call(*arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "conformance.cli", *arguments]
    return subprocess.run(
        command, cwd=cwd, capture_output=True, text=True, check=False, timeout=500
    )


@pytest.fixture(scope="module", autouse=True)
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    folder = tmp_path_factory.mktemp("cluster")
    call("cluster", "down", "--name", NAME, cwd=folder)
    done = call("cluster", "up", "--name", NAME, cwd=folder)
    assert done.returncode == 0, done.stderr
    yield
    done = call("cluster", "down", "--name", NAME, cwd=folder)
    assert done.returncode == 0, done.stderr


def records(folder: Path, kind: str) -> list[dict[str, Any]]:
    lines = (folder / "results.ndjson").read_text().splitlines()
    return [record for record in map(json.loads, lines) if record["record"] == kind]


def only_doubly_allocated(folder: Path) -> bool:
    """Whether all that a run found is a known fault of kube-scheduler 1.37.

    Two pods of one Job that share a claim and end at the same moment can make it give a device to
    two claims, which is seen on machines under load. The
    judgement is right then, and says nothing of the simulated GPUs that are tested here.
    """
    judgements = [
        (one["scenario"], judgement)
        for one in records(folder, "compared")
        for judgement in one["judgements"]
        if judgement["verdict"] not in ("identical", "admissible")
    ]
    return bool(judgements) and all(
        scenario == JOB and judgement["reason"] == IN_USE for scenario, judgement in judgements
    )


def test_every_shipped_profile_is_run() -> None:
    assert {case.simulate for case in CASES} | {"t4x4"} == set(shipped())


@pytest.mark.parametrize("case", CASES, ids=str)
def test_scenarios_of_the_node_tier_pass_as_on_the_reference(tmp_path: Path, case: Case) -> None:
    shown = ["--simulate", case.simulate, *(["--dynamic-mig"] if case.dynamic_mig else [])]
    done = call("cluster", "driver", "--name", NAME, *shown, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    chosen = {item.id: item.document.file for item in select((), Selection(tier=("node",)))}
    assert case.left_out <= set(chosen)
    paths = [str(file) for identity, file in chosen.items() if identity not in case.left_out]
    for attempt in range(3):
        folder = tmp_path / f"out-{attempt}"
        done = call(
            *("run", "--target", "cluster", "--cluster", "local", "--name", NAME),
            *("--driver", case.driver, "--compare", "-n", AT_ONCE, "-o", str(folder), *paths),
            cwd=tmp_path,
        )
        if not only_doubly_allocated(folder):
            break
    assert done.returncode == 0, done.stdout + done.stderr
    ran = records(folder, "scenario")
    assert {one["scenario"] for one in ran} == chosen.keys() - case.left_out
    skipped = {one["scenario"]: one["message"] for one in ran if one["outcome"] == "skipped"}
    assert {why for why in skipped.values() if not NOT_THE_GPUS.match(why)} == set()
    assert {one["outcome"] for one in ran if one["scenario"] not in skipped} == {"passed"}
    compared = records(folder, "compared")
    assert {one["scenario"] for one in compared} == {one["scenario"] for one in ran}
    judged = {judgement["verdict"] for one in compared for judgement in one["judgements"]}
    assert judged <= {"identical", "admissible"}


def test_a_run_that_asks_for_other_gpus_than_the_cluster_shows_is_told_what_to_do(
    tmp_path: Path,
) -> None:
    asked = ["--cluster", "local", "--name", NAME, "--simulate", "t4x4"]
    done = call("run", "--target", "cluster", *asked, cwd=tmp_path)
    assert done.returncode == 2
    assert (
        "runs already with --simulate mixed; to change that: "
        f"dra-conformance cluster driver --name {NAME} --simulate t4x4" in done.stderr
    )


def test_gpus_that_are_not_there_are_refused_before_the_driver_is_stopped(tmp_path: Path) -> None:
    done = call("cluster", "driver", "--name", NAME, "--simulate", "nope", cwd=tmp_path)
    assert done.returncode == 2
    assert "'nope' is neither a file" in done.stderr
    status = call("cluster", "status", "--name", NAME, cwd=tmp_path)
    [driver] = [line for line in status.stdout.splitlines() if line.startswith("node-1/driver")]
    assert "runs, pid" in driver
