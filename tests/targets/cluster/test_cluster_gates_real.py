"""Feature gates found out by dry run on real API servers, with /metrics out of sight."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from conformance.targets.cluster import capabilities as gates
from kube.api import Api
from kube.connection import Connection
from localkube import LocalCluster, LocalOptions
from reference_allocator.gates import gates_for_version
from tests.localkube import local_support as support
from tests.targets.cluster.test_cluster_gates import PROBED

pytestmark = [pytest.mark.needs_root, pytest.mark.slow, pytest.mark.everything]

VERSION = "1.37.2"
FREE = {name for name, gate in gates_for_version(VERSION).items() if not gate.locked}


@pytest.fixture(params=[False, True], ids=["off", "on"])
def asked(request: pytest.FixtureRequest) -> Iterator[tuple[Api, bool]]:
    """An API server that has every gate off, or on, of those that may be set."""
    binaries, on = support.built_binaries(), bool(request.param)
    with support.short_directory() as directory:
        chosen = dict.fromkeys(sorted(FREE), on)
        options = LocalOptions(
            name="f", state_dir=directory / "f", binaries=binaries, nodes=0, feature_gates=chosen
        )
        cluster = LocalCluster(options)
        try:
            access = cluster.up()
            connection = Connection.open(access.kubeconfig, access.context)
            yield Api(connection), on
            connection.close()
        finally:
            cluster.down()


def test_a_dry_run_shows_what_the_metrics_tell(
    asked: tuple[Api, bool], monkeypatch: pytest.MonkeyPatch
) -> None:
    api, on = asked
    told = gates.feature_gates(api, VERSION)
    monkeypatch.setattr(gates, "_read_enabled_gates", lambda _connection: {})
    found = gates.feature_gates(api, VERSION)
    probed = PROBED & FREE
    assert len(probed) > 3
    assert {name: found.get(name) for name in probed} == dict.fromkeys(probed, on)
    assert {name: told[name] for name in found if name in told} == found
