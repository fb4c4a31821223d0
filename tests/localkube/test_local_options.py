"""What a local cluster has where its user does not say."""

from __future__ import annotations

import pytest

from localkube.options import MOST_SUITABLE, count_suitable_nodes

GIB = 1 << 30


@pytest.mark.parametrize(
    ("processors", "memory", "nodes"),
    [
        (64, 256 * GIB, MOST_SUITABLE),
        (1, 256 * GIB, 2),  # a machine without processors to spare
        (64, 3 * GIB, 2),  # the control plane needs the rest
        (64, GIB // 2, 1),  # it may swap, but it is a cluster
    ],
)
def test_a_machine_gets_as_many_nodes_as_it_has_room_for(
    processors: int, memory: int, nodes: int
) -> None:
    assert count_suitable_nodes(processors, memory) == nodes


def test_this_machine_is_looked_at_where_nothing_is_said() -> None:
    assert count_suitable_nodes(memory=0) == 1
    assert 1 <= count_suitable_nodes(processors=64) <= MOST_SUITABLE
