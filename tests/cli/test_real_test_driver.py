"""Kubernetes' own test driver: checked on its sockets, then on a real cluster certified.

It is a stranger to the suite: the reference beside it has the devices that it has published.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from conformance.drivercheck.bench import Bench
from conformance.drivercheck.check import Level
from conformance.drivercheck.driver import DriverUnderCheck
from conformance.drivercheck.objects import NODE
from conformance.drivercheck.process import CommandStarter
from conformance.drivercheck.rbac.policy import read_policy
from conformance.drivercheck.result import Outcome
from conformance.drivercheck.run import CHECKS, run
from conformance.scenario.selection import Selection, select
from localkube.binaries.versions import KUBERNETES
from localkube.gocommand import COMPILE, find_go
from tests.cli.simulated_nodes import REGRESSIONS, certified, run_compared, running_cluster

pytestmark = [
    pytest.mark.needs_root,
    pytest.mark.needs_go,
    pytest.mark.slow,
    pytest.mark.everything,
]

NAME = "stranger"
ROOT = Path(__file__).resolve().parents[2]
ROLES = ROOT / "ci" / "deploy" / "base" / "rbac.yaml"
START = ROOT / "ci" / "test-driver" / "start"
DRIVER = "test-driver.cdi.k8s.io"


@pytest.fixture(scope="module")
def built() -> None:
    """The driver's program, built as the cluster's own binaries are."""
    (ROOT / "build").mkdir(exist_ok=True)
    package = "k8s.io/kubernetes/test/e2e/dra/test-driver"
    subprocess.run(
        [
            str(find_go()),
            "build",
            *COMPILE,
            "-ldflags",
            "-s -w",
            "-o",
            str(ROOT / "build"),
            package,
        ],
        cwd=START.parent,
        env={**os.environ, "CGO_ENABLED": "0"},
        check=True,
    )


@pytest.mark.usefixtures("built")
def test_it_keeps_the_contract_with_the_kubelet() -> None:
    with tempfile.TemporaryDirectory(prefix="dra-", dir="/tmp") as folder:
        starter = CommandStarter([str(START)])
        policy = read_policy(ROLES, "", NODE)
        bench = Bench(DriverUnderCheck(Path(folder), starter, next_starter=starter, policy=policy))
        try:
            result = run(bench, CHECKS)
        finally:
            bench.driver.close()
    bad = {one.name: one for one in result.checks if one.outcome is not Outcome.PASSED}
    required = {name for name, one in bad.items() if one.level is Level.REQUIRED}
    # It does not look whether a device is in use, and forgets its claims when it ends.
    assert required == {"refuse/device-in-use"}, bad
    assert "restart/cdi-devices-go-with-another-process" in bad
    killed = [one.message for one in result.checks if one.name.startswith("restart/killed-")]
    assert all(re.match(r"killed before (\d+) of \1 change", one) for one in killed), killed


@pytest.fixture(scope="module")
def cluster(built: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """A cluster with the driver."""
    started = ("--nodes", "2", "--driver", DRIVER, "--driver-command", str(START))
    with running_cluster(NAME, tmp_path_factory.mktemp("cluster"), *started):
        yield


@pytest.mark.usefixtures("cluster")
def test_the_cluster_is_certified_with_it_and_the_driver_is_not() -> None:
    folder = ROOT / "build" / "test-driver-run"
    shutil.rmtree(folder, ignore_errors=True)
    core = {item.id for item in select((), Selection(level=("core",)))}
    run_compared(NAME, core, folder, "--driver", DRIVER, "--level", "core", "-n", "4")
    results = certified(folder, "Kubernetes", "dra-test-driver", KUBERNETES, str(START))
    # It prepares devices that another claim has (refuse/device-in-use).
    assert results == {"dra-core-cluster": "success", "dra-core-driver": "failure"}


@pytest.mark.usefixtures("cluster")
def test_what_more_it_is_asked_for_goes_as_on_the_reference(tmp_path: Path) -> None:
    extended = {item.id for item in select((), Selection(level=("extended",)))}
    folder = tmp_path / "out"
    options = ("--driver", DRIVER, "--level", "extended", "-n", "4")
    compared = [
        one
        for one in run_compared(NAME, extended, folder, *options)
        if not str(one["scenario"]).startswith(REGRESSIONS)
    ]
    free = {one["scenario"] for one in compared if "admissible" in str(one["judgements"])}
    seen = {one["scenario"]: one["differences"] for one in compared if one["differences"]}
    assert {name: found for name, found in seen.items() if name not in free} == {}
