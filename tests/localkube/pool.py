"""Real local clusters that test files share: started once for a worker, handed out clean.

A file asks for `control_plane` or `two_nodes`. What it made is deleted at its end, and what it
stopped is started, so that the next one finds the cluster as it was. A file that takes a cluster
apart, or needs other options, starts one of its own.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import pytest

from conformance.targets.opening.own_driver import Simulation, own_driver
from kube.components import OTHER_DRIVER
from localkube import LocalCluster, LocalOptions
from localkube.base import ClusterAccess
from tests.cli.plain_client import Api, RefusedError, eventually
from tests.localkube import local_support as support

_MADE_BY_KUBERNETES = {
    *("clustertrustbundles", "controllerrevisions", "endpoints", "endpointslices", "events"),
    *("leases", "configmaps/kube-root-ca.crt", "serviceaccounts/default"),
}
"""A moment after the start, or by itself; nothing that a test makes is called so."""


class Shared(NamedTuple):
    """A running cluster.

    Attributes:
        progress: what its start said.
    """

    cluster: LocalCluster
    access: ClusterAccess
    progress: list[str]
    admin: Api

    @property
    def name(self) -> str:
        """The cluster's, for the command line."""
        return self.cluster.layout.name


@contextmanager
def _running(name: str, **options: Any) -> Iterator[Shared]:
    lines: list[str] = []
    made = LocalOptions(
        name=f"{name}{os.getpid()}",
        binaries=support.built_binaries(),
        driver=own_driver(Simulation()) if options["nodes"] else None,
        **options,
    )
    cluster = LocalCluster(made)
    try:
        access = cluster.up(lines.append)
        admin = Api.admin(cluster)
        where = {"name": "default", "namespace": "default"}  # no pod can be made before it is there
        account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": where}
        eventually(lambda: admin.get(account), "the service account of the namespace")
        yield Shared(cluster, access, lines, admin)
        admin.close()
    finally:
        cluster.down()
    assert support.remains(cluster.layout) == []


@pytest.fixture(scope="session")
def _one_control_plane() -> Iterator[Shared]:
    with _running("cp", nodes=0) as found:
        yield found


@pytest.fixture(scope="session")
def _one_of_two_nodes() -> Iterator[Shared]:
    support.require_node_machine()
    with _running("n", nodes=2) as found:  # a unix socket's path is short
        yield found


@pytest.fixture(scope="module")
def control_plane(_one_control_plane: Shared) -> Iterator[Shared]:
    """A control plane without nodes; needs no root."""
    yield from _handed_out(_one_control_plane)


@pytest.fixture(scope="module")
def two_nodes(_one_of_two_nodes: Shared) -> Iterator[Shared]:
    """A cluster of two nodes, each with our own driver on four simulated T4."""
    yield from _handed_out(_one_of_two_nodes)


def _handed_out(shared: Shared) -> Iterator[Shared]:
    before = _objects(shared)
    yield shared
    for name in shared.cluster.components():
        if not name.endswith(OTHER_DRIVER):
            shared.cluster.disturb(name, "start")
    for path in _objects(shared) - before:
        with contextlib.suppress(RefusedError):  # it went with another one
            shared.admin.ask("DELETE", f"{path}?propagationPolicy=Background")
    eventually(
        lambda: _objects(shared) <= before,
        lambda: f"nothing is left: {_objects(shared) - before}",
        60,
    )


def _objects(shared: Shared) -> set[str]:
    """Paths of what can be deleted: cluster-scoped, or in the namespace `default`."""
    admin, found = shared.admin, set()
    groups = [
        one["preferredVersion"]["groupVersion"] for one in admin.ask("GET", "/apis")["groups"]
    ]
    for root in ("/api/v1", *(f"/apis/{group}" for group in groups)):
        for resource in admin.ask("GET", root)["resources"]:
            name = resource["name"]
            if not {"list", "delete"} <= {*resource["verbs"]} or name in _MADE_BY_KUBERNETES:
                continue
            for one in admin.list(f"{root}/{name}"):
                space = one["metadata"].get("namespace")
                published = (one.get("spec") or {}).get("nodeName") in shared.access.nodes
                if space in (None, "default") and not (name == "resourceslices" and published):
                    inside = f"{root}/namespaces/{space}" if space else root
                    place = f"{name}/{one['metadata']['name']}"
                    if place not in _MADE_BY_KUBERNETES:
                        found.add(f"{inside}/{place}")
    return found
