"""The node tier on a real cluster, with each simulated node of MIG devices."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.simulated_nodes import MIG, Case, pass_as_on_the_reference, running_cluster

pytestmark = [pytest.mark.needs_root, pytest.mark.slow, pytest.mark.everything]

NAME = "profiles-mig"
CASES = [
    Case("a30x4", MIG, dynamic_mig=True),
    # Full GPUs beside 200 partitions of them, which a driver that is restarted takes up again.
    Case("h100-80x8", dynamic_mig=True, faults=True),
    Case("mixed", MIG),
]


@pytest.fixture(scope="module", autouse=True)
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    with running_cluster(NAME, tmp_path_factory.mktemp("cluster")):
        yield


@pytest.mark.parametrize("case", CASES, ids=str)
def test_scenarios_of_the_node_tier_pass_as_on_the_reference(tmp_path: Path, case: Case) -> None:
    pass_as_on_the_reference(NAME, case, tmp_path)
