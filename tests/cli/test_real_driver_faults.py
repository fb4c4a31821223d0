"""Some of the driver's defects on a real cluster; all of them: tests/mutants/real_driver."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from tests.cli.simulated_nodes import call
from tests.localkube import local_support as support
from tests.mutants.real_driver.measure import ANYBODYS, OURS, FaultyCluster, faulty_cluster

pytestmark = [pytest.mark.needs_root, pytest.mark.slow, pytest.mark.everything]


@pytest.fixture(scope="module")
def cluster() -> Iterator[FaultyCluster]:
    support.built_binaries()
    support.require_node_machine()
    with support.short_directory() as folder, faulty_cluster("faults", Path(folder)) as found:
        found.timeouts = "{eventually: 6s, podRunning: 90s}"
        yield found


@pytest.mark.parametrize(
    ("fault", "whose", "scenario", "why"),
    [
        ("leaves-cdi-specs", OURS, "cleanup-cdi-spec-removed", "no CDI spec for claim gpu"),
        (
            "never-unprepares-nor-looks",
            ANYBODYS,
            "device-in-use-is-refused",
            "found pod pod1: phase Running",
        ),
    ],
)
def test_it_is_noticed(
    cluster: FaultyCluster, fault: str, whose: str, scenario: str, why: str
) -> None:
    found = cluster.run(fault, whose, [scenario])
    assert [one.rpartition("/")[2] for one in found] == [scenario]
    assert why in next(iter(found.values()))


def test_a_broken_drivers_submission_verifies_and_says_failure(
    cluster: FaultyCluster, tmp_path: Path
) -> None:
    """What is submitted must be true, not good: the scenario is the shipped one."""
    cluster.give("leaves-cdi-specs")
    chosen = ("--cluster", "local", "--name", cluster.name, "-k", "cleanup-cdi-spec-removed")
    ran = call("run", "--target", "cluster", *chosen, "-o", "out", cwd=tmp_path)
    assert ran.returncode == 1, ran.stdout + ran.stderr
    cluster.give("none")
    who = ("--organization", "Tests", "--project", "broken", "--version", "1")
    where = ("--url", "https://example.com/broken", "--into", "reports")
    profiles = ("--profile", "dra-core-driver", "--profile", "dra-extended")
    made = call("submit", "out/results.ndjson", *who, *where, *profiles, cwd=tmp_path)
    assert made.returncode == 1, made.stdout + made.stderr
    checked = call("verify", "reports", cwd=tmp_path)
    assert "the report matches the result file" in checked.stdout
    refused = call("verify", "reports", "--require", "success", cwd=tmp_path)
    assert refused.returncode == 1, refused.stdout + refused.stderr
    [report] = (tmp_path / "reports").rglob("report.yaml")
    results = {one["name"]: one["result"] for one in yaml.safe_load(report.read_text())["profiles"]}
    assert results["dra-extended"] == "failure"
    assert results["dra-core-driver"] != "success"
