"""Some of the driver's defects on a real cluster; all of them: docs/real-mutants-driver.md."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.clusters import local_support as support
from tests.mutants.real_driver.measure import ANYBODYS, OURS, FaultyCluster, faulty_cluster

pytestmark = [pytest.mark.needs_root, pytest.mark.slow]


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
