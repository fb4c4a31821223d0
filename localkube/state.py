"""The written record of a local cluster: what it is, where it listens, whom it belongs to.

Written before anything is started, so that a cluster whose starter was killed half way can still
be described and removed.
"""

from __future__ import annotations

import contextlib
import dataclasses
import ipaddress
import json
import socket
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from pydantic import TypeAdapter

from kube.base.processes import Identity
from localkube.base import ClusterError
from localkube.layout import Layout

FORMAT = 2

LOOPBACK = "127.0.0.1"

_FIRST_NODE = 10


@dataclass(frozen=True)
class Ports:
    """TCP ports on this machine, one for each server of the control plane."""

    api: int
    etcd: int
    etcd_http: int
    etcd_peer: int
    controller_manager: int
    scheduler: int


def free_ports() -> Ports:
    """Return six ports that nobody listens on now.

    They are let go again before the servers take them; a server that loses such a race says so in
    its log and fails the start.
    """
    with contextlib.ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in dataclasses.fields(Ports)]
        for listener in sockets:
            listener.bind((LOOPBACK, 0))
        return Ports(*(listener.getsockname()[1] for listener in sockets))


@dataclass(frozen=True)
class Network:
    """The subnet that joins a cluster's nodes, for example "10.213.7.0/24"."""

    subnet: str

    @property
    def gateway(self) -> str:
        """The bridge's address: this machine, as the nodes see it."""
        return str(ipaddress.ip_network(self.subnet)[1])

    @property
    def prefix(self) -> int:
        return ipaddress.ip_network(self.subnet).prefixlen

    def node_address(self, index: int) -> str:
        return str(ipaddress.ip_network(self.subnet)[_FIRST_NODE + index])


@dataclass(frozen=True)
class State:
    """One local cluster.

    Attributes:
        ports: where the control plane listens.
        network: how the nodes are joined; None without nodes.
        owner: the program that the cluster belongs to; None: it stays until `down`.
        kubernetes_version: as the API server reported it, "" before.
        kubelet: the directory with the kubelets' binary; None: ``binaries``.
        kubelet_version: for example "v1.34.4"; "" is that of ``binaries``.
        next_binaries: what its components can be upgraded to; None: they cannot.
    """

    name: str
    binaries: Path
    nodes: int
    feature_gates: Mapping[str, bool]
    ports: Ports
    network: Network | None
    owner: Identity | None
    ready: bool = False
    kubernetes_version: str = ""
    kubelet: Path | None = None
    kubelet_version: str = ""
    next_binaries: Path | None = None

    def is_abandoned(self) -> bool:
        """Return whether the program that the cluster belonged to has ended."""
        return self.owner is not None and not self.owner.alive()


_STATE: Final = TypeAdapter(State)


def write_state(layout: Layout, state: State) -> None:
    """Write the record, whole or not at all."""
    layout.dir.mkdir(parents=True, exist_ok=True, mode=0o700)
    document = _STATE.dump_python(state, mode="json") | {"format": FORMAT}
    temporary = layout.state.with_name(f"{layout.state.name}.new")
    temporary.write_text(json.dumps(document, indent=1))
    temporary.replace(layout.state)


def read_state(layout: Layout) -> State | None:
    """Return the record, None where there is no cluster. Raises ClusterError."""
    try:
        document = json.loads(layout.state.read_text())
        if document.pop("format") != FORMAT:
            raise ValueError("written by another version of dra-conformance")
        return _STATE.validate_python(document)
    except FileNotFoundError:
        return None
    except (ValueError, KeyError, TypeError) as error:
        raise ClusterError(
            f"{layout.state} cannot be read ({error}); remove the cluster with "
            f"`dra-conformance cluster down --name {layout.name}`"
        ) from error
