"""How nodes are joined: one bridge on this machine and one virtual cable to each node.

A node lives in a network namespace of its own, so the bridge and the cables' ends are all that the
machine itself gets: no firewall rule, no route beyond the bridge's own, no forwarding. Nodes reach
the API server at the bridge's address; they do not reach the internet.
"""

from __future__ import annotations

import ipaddress
import json
import subprocess
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from conformance.clusters.base import ClusterError
from conformance.clusters.local.layout import Layout
from conformance.clusters.local.processes import enter_command
from conformance.clusters.local.tools import find_tool

LOOPBACK = "127.0.0.1"
NODE_INTERFACE = "eth0"

_CANDIDATES = ipaddress.IPv4Network("10.213.0.0/16")
_FIRST_NODE = 10


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
        """Length of the subnet's prefix."""
        return ipaddress.ip_network(self.subnet).prefixlen

    def node_address(self, index: int) -> str:
        """Address of node `index` (from 1)."""
        return str(ipaddress.ip_network(self.subnet)[_FIRST_NODE + index])


def pod_subnet(index: int) -> str:
    """Addresses of the pods of node `index`. They exist in that node's namespace only."""
    return f"10.214.{index}.0/24"


def choose_network(token: str, taken: Iterable[str]) -> Network:
    """A /24 that overlaps nothing in `taken` (addresses and routes of this machine, as CIDR).

    The search starts at a place that the cluster's token gives, so that clusters started at the
    same moment do not pick the same one.

    Raises:
        ClusterError: all candidates are taken.
    """
    used = [ipaddress.IPv4Network(text, strict=False) for text in taken]
    candidates = list(_CANDIDATES.subnets(new_prefix=24))
    start = int(token, 16) % len(candidates)
    for candidate in candidates[start:] + candidates[:start]:
        if not any(candidate.overlaps(other) for other in used):
            return Network(str(candidate))
    raise ClusterError(f"no free /24 network in {_CANDIDATES} for the nodes of a local cluster")


def taken_networks() -> list[str]:
    """IPv4 networks that this machine has an address in or a route to, the default route aside."""
    routes = json.loads(_run(find_tool("ip"), "-json", "-4", "route", "show", "table", "all"))
    return [
        route["dst"]
        for route in routes
        if route["dst"] != "default" and route.get("type", "unicast") in ("unicast", "local")
    ]


def create_bridge(layout: Layout, network: Network) -> None:
    """Make the bridge and give it its address."""
    ip = find_tool("ip")
    _run(ip, "link", "add", layout.bridge, "type", "bridge")
    _run(ip, "addr", "add", f"{network.gateway}/{network.prefix}", "dev", layout.bridge)
    _run(ip, "link", "set", layout.bridge, "up")


def attach_node(layout: Layout, network: Network, index: int, init: int) -> None:
    """Join node `index`, whose namespaces the process `init` holds, to the bridge."""
    ip = find_tool("ip")
    outer = layout.veth(index)
    peer = ("peer", "name", NODE_INTERFACE, "netns", str(init))
    _run(ip, "link", "add", outer, "type", "veth", *peer)
    _run(ip, "link", "set", outer, "master", layout.bridge, "up")
    inside = (*enter_command(init, pid_namespace=False), ip)
    address = f"{network.node_address(index)}/{network.prefix}"
    _run(*inside, "addr", "add", address, "dev", NODE_INTERFACE)
    _run(*inside, "link", "set", NODE_INTERFACE, "up")
    _run(*inside, "link", "set", "lo", "up")
    _run(*inside, "route", "add", "default", "via", network.gateway)


def remove_interfaces(layout: Layout) -> None:
    """Remove the bridge and what is left of the cables (they go with a node's namespace)."""
    for name in interfaces(layout):
        # It may vanish by itself at this very moment; the check below is what counts.
        subprocess.run(
            [find_tool("ip"), "link", "del", name], capture_output=True, check=False, timeout=30
        )


def interfaces(layout: Layout) -> list[str]:
    """This cluster's interfaces on this machine."""
    prefix = layout.bridge
    return sorted(path.name for path in Path("/sys/class/net").glob(f"{prefix}*"))


def _run(*command: str) -> str:
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=30)
    if done.returncode != 0:
        raise ClusterError(f"`{' '.join(command)}` failed: {done.stderr.strip()}")
    return done.stdout
