"""Each situation is made, explained and changed as the explanation says: then the pod gets devices.

On the reference; and, by the same code, on a real control plane with nodes that have no kubelet.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from conformance.seam.scope import Scope
from conformance.targets.cluster import ClusterTarget
from conformance.targets.reference.device_source import NoDriver
from conformance.targets.reference.target import ReferenceOptions, ReferenceTarget
from tests.compare.pending.situation import SITUATIONS, Situation
from tests.localkube.pool import Shared

SILENT = ("a driver that is not there", "a class whose selector has no device")
"""Situations in which the driver of a class has no devices on the node."""


def each(rows: list[dict[str, Any]]) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("row", rows, ids=[row["name"] for row in rows])


def done(scope: Scope, row: dict[str, Any]) -> None:
    situation = Situation(scope, row)
    try:
        situation.make()
        told = situation.explain()
        text = " ".join(told.text.split()).replace(f"{scope.namespace}/", "ns/")
        assert row["says"] in text, text
        if row["change"]:
            assert f"would fit if {row['change']} (on " in text, text
        else:
            assert not told.changes, text
        assert ("is it registered there" in text) is (row["name"] in SILENT)
        assert all(len(line) <= 80 for line in told.text.splitlines()), told.text
        situation.change()
    finally:
        situation.remove()


@each(SITUATIONS)
def test_what_is_said_of_a_situation_is_so(row: dict[str, Any]) -> None:
    with ReferenceTarget(ReferenceOptions(nodes=(), devices=NoDriver("none"))) as target:
        done(target.scope("ns"), row)


@pytest.fixture(scope="module")
def real(control_plane: Shared) -> Iterator[ClusterTarget]:
    target = ClusterTarget(control_plane.access)
    yield target
    target.close()


@pytest.mark.everything
@pytest.mark.needs_root
@each([row for row in SITUATIONS if "only" not in row])
def test_what_is_said_of_a_situation_is_so_on_a_real_control_plane(
    real: ClusterTarget, row: dict[str, Any]
) -> None:
    name = "pending-" + "-".join(row["name"].replace(",", "").replace("'", "").split())[:40]
    scope = real.scope(name)
    done(scope, row)
    scope.close()
