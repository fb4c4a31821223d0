"""Schedulers that do not answer, are late, mind no claim, fight, or have a defect: a verdict each.

On a real control plane without nodes; each scheduler is one of its own beside the cluster's.
"""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pytest

from localkube import LocalCluster, LocalOptions
from localkube.binaries.versions import cache_key
from localkube.data import local_cluster_modules_dir
from localkube.layout import default_cache
from tests.localkube import local_support as support
from tests.mutants.real.build import mutant_scheduler
from tests.mutants.real.running import Schedulers
from tests.programs import ended

pytestmark = [pytest.mark.needs_go, pytest.mark.slow, pytest.mark.everything]

ROOT = Path(__file__).parents[2]
ALLOCATED = "core/cel-semver-picks-newer-device"
PENDING = "core/cel-semver-unreachable-stays-pending"
SECOND = ROOT / "ci/schedulers/second.sh"


@pytest.fixture(scope="module")
def cluster() -> Iterator[LocalCluster]:
    support.built_binaries()
    found = LocalCluster(LocalOptions(name=f"schedulers-{os.getpid()}", nodes=0))
    try:
        found.up()
        yield found
    finally:
        found.down()


@pytest.fixture
def schedulers(cluster: LocalCluster) -> Schedulers:
    return Schedulers(cluster, Path())


@contextmanager
def started(cluster: LocalCluster, *command: str, **env: str) -> Iterator[None]:
    """A scheduler with the administrator's rights, ended at the end."""
    process = subprocess.Popen(
        command,
        env=os.environ | {"KUBECONFIG": str(cluster.layout.kubeconfig)} | env,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        yield
        assert process.poll() is None, "it has ended by itself"
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def kube_scheduler() -> Path:
    return default_cache() / cache_key(local_cluster_modules_dir())


def test_one_that_never_answers_fails_what_waits_for_it(
    schedulers: Schedulers, tmp_path: Path
) -> None:
    seen = schedulers.meet([ALLOCATED, PENDING], tmp_path, 3, "--scheduler", "silent")
    assert seen.outcomes == dict.fromkeys([ALLOCATED, PENDING], "failed"), seen.told
    assert "silent has reported nothing" in seen.told
    assert seen.verdicts == {ALLOCATED: ["missed"]}


def test_one_that_is_late_passes(
    cluster: LocalCluster, schedulers: Schedulers, tmp_path: Path
) -> None:
    late = f"sleep 20; . {SECOND}"
    env = {"SCHEDULER": "late", "BINARIES": str(kube_scheduler())}
    with started(cluster, "sh", "-c", late, **env):
        seen = schedulers.meet([ALLOCATED, PENDING], tmp_path, 0, "--scheduler", "late")
    assert seen.outcomes == dict.fromkeys([ALLOCATED, PENDING], "passed"), seen.told
    assert seen.verdicts == {}


def test_one_that_binds_without_allocating_fails(
    cluster: LocalCluster, schedulers: Schedulers, tmp_path: Path
) -> None:
    with started(cluster, sys.executable, "-m", "tests.mutants.real.careless", "careless"):
        seen = schedulers.meet([ALLOCATED, PENDING], tmp_path, 3, "--scheduler", "careless")
    assert seen.outcomes == dict.fromkeys([ALLOCATED, PENDING], "failed"), seen.told
    assert "bound to " in seen.told


def test_two_that_fight_for_pods_end_in_a_verdict(
    cluster: LocalCluster, schedulers: Schedulers, tmp_path: Path
) -> None:
    careless = (sys.executable, "-m", "tests.mutants.real.careless", "default-scheduler")
    with started(cluster, *careless):
        seen = schedulers.meet([ALLOCATED, PENDING], tmp_path, 3)
    # Who binds the first pod first is luck; that the second must wait only kube-scheduler knows.
    assert seen.outcomes[PENDING] == "failed", seen.told
    assert not seen.unclear, seen.told


def test_one_with_a_defect_is_noticed_when_it_is_started_beside_the_clusters_own(
    tmp_path: Path,
) -> None:
    program = mutant_scheduler()
    broken = run_beside(program, {"DRA_MUTANT": "only-first-selector"}, tmp_path / "broken")
    assert broken.returncode == 1, broken.stdout
    assert "inadmissible" in broken.stdout
    right = run_beside(program, {}, tmp_path / "right")
    assert right.returncode == 0, right.stdout


def run_beside(
    program: Path, env: Mapping[str, str], out: Path
) -> subprocess.CompletedProcess[str]:
    """A run with ``--scheduler-command``."""
    command = shlex.join(["sh", "-c", f"SCHEDULER=mutant BINARIES={program.parent} . {SECOND}"])
    where = ("--target", "cluster", "--cluster", "local", "--nodes", "0", "--compare")
    return ended(
        [
            *(sys.executable, "-m", "conformance", "run", *where),
            *("--name", f"beside-{os.getpid()}", "-o", str(out)),
            *("--scheduler", "mutant", "--scheduler-command", command),
            "scenarios/core/request-with-two-selectors.yaml",
        ],
        cwd=ROOT,
        env=os.environ | env,
    )
