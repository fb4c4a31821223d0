"""The node tier on two real nodes with each simulated node of full GPUs, components undisturbed."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from nvml_driver.simulated import list_shipped_profiles
from tests.cli import test_real_profiles_mig as mig
from tests.cli.simulated_nodes import Case, call, pass_as_on_the_reference, running_cluster
from tests.programs import ended

pytestmark = [pytest.mark.needs_root, pytest.mark.slow, pytest.mark.everything]

REPOSITORY = Path(__file__).resolve().parents[2]
NAME = "profiles"
CASES = [Case("l40sx8"), Case("a100-40x8"), Case("a100-80x8"), Case("b200x8"), Case("mixed")]


@pytest.fixture(scope="module", autouse=True)
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    with running_cluster(NAME, tmp_path_factory.mktemp("cluster"), "--nodes", "2"):
        yield


def test_every_shipped_profile_is_run() -> None:
    elsewhere = {"t4x4", "h200x1"}  # the latter by the last test: too few GPUs for most scenarios
    assert {case.simulate for case in (*CASES, *mig.CASES)} | elsewhere == set(
        list_shipped_profiles()
    )


@pytest.mark.parametrize("case", CASES, ids=str)
def test_scenarios_of_the_node_tier_pass_as_on_the_reference(tmp_path: Path, case: Case) -> None:
    pass_as_on_the_reference(NAME, case, tmp_path)


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
    assert "running, pid" in driver


def test_what_is_run_where_there_is_a_gpu_runs(tmp_path: Path) -> None:
    done = ended(
        [REPOSITORY / "ci/gpu/cluster", tmp_path, "-k", "hardware"],
        env={**os.environ, "SIMULATE": "h200x1"},
        timeout=600,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    verdict = json.loads((tmp_path / "driver-check.json").read_text())["verdict"]
    assert verdict == "conformant"
    counts = json.loads((tmp_path / "results/summary.json").read_text())["scenarios"]
    assert counts["passed"] == 2  # the third needs two GPUs
