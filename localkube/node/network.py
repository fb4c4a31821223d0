"""How nodes are joined: one bridge on this machine and one virtual cable to each node.

A node lives in a network namespace of its own, so the bridge and the cables' ends are all that the
machine itself gets: no firewall rule, no route beyond the bridge's own, no forwarding. Nodes reach
the API server at the bridge's address; they do not reach the internet.
"""

from __future__ import annotations

import contextlib
import ipaddress
import socket
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from localkube.base import ClusterError
from localkube.layout import Layout
from localkube.state import Network

if TYPE_CHECKING:
    from pyroute2 import IPRoute

Result = TypeVar("Result")

NODE_INTERFACE = "eth0"

_CANDIDATES = ipaddress.IPv4Network("10.213.0.0/16")

_RTN_UNICAST, _RTN_LOCAL = 1, 2  # rtnetlink(7), rtm_type


def pod_subnet(index: int) -> str:
    """Addresses of the pods of node `index`. They exist in that node's namespace only."""
    return f"10.214.{index}.0/24"


def choose_network(token: str, taken: Iterable[str]) -> Network:
    """Return a /24 that overlaps nothing in `taken` (this machine's addresses and routes).

    The search starts at a place that the cluster's token gives, so that clusters started at the
    same moment do not pick the same one.
    Raises ClusterError: all candidates are taken.
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
    with _rtnetlink() as rtnl:
        return [
            f"{route.get_attr('RTA_DST')}/{route['dst_len']}"
            for route in rtnl.get_routes(family=socket.AF_INET)
            if route["type"] in (_RTN_UNICAST, _RTN_LOCAL) and route["dst_len"]
        ]


def create_bridge(layout: Layout, network: Network) -> None:
    """Make the bridge and give it its address. Raises ClusterError: the kernel refused it."""
    with _rtnetlink() as rtnl:
        rtnl.link("add", ifname=layout.bridge, kind="bridge")
        (bridge,) = rtnl.link_lookup(ifname=layout.bridge)
        rtnl.addr("add", index=bridge, address=network.gateway, prefixlen=network.prefix)
        rtnl.link("set", index=bridge, state="up")


def attach_node(layout: Layout, network: Network, index: int, init: int) -> None:
    """Join node `index`, whose namespaces the process `init` holds, to the bridge.

    Raises ClusterError: the kernel refused it.
    """
    outer = layout.name_veth(index)
    with _rtnetlink() as rtnl:
        peer = {"ifname": NODE_INTERFACE, "net_ns_pid": init}
        rtnl.link("add", ifname=outer, kind="veth", peer=peer)
        (bridge,) = rtnl.link_lookup(ifname=layout.bridge)
        (cable,) = rtnl.link_lookup(ifname=outer)
        rtnl.link("set", index=cable, master=bridge, state="up")
    call_in_network(init, partial(_configure_node, network, index))


def _configure_node(network: Network, index: int) -> None:
    with _rtnetlink() as rtnl:
        (inner,) = rtnl.link_lookup(ifname=NODE_INTERFACE)
        (loopback,) = rtnl.link_lookup(ifname="lo")
        address = network.node_address(index)
        rtnl.addr("add", index=inner, address=address, prefixlen=network.prefix)
        rtnl.link("set", index=inner, state="up")
        rtnl.link("set", index=loopback, state="up")
        rtnl.route("add", dst="default", gateway=network.gateway)


def call_in_network(pid: int, function: Callable[[], Result]) -> Result:
    """Call a function in the network namespace of a process.

    A namespace belongs to a thread: one of its own makes the call, and nothing has to be restored.
    Raises ClusterError: the namespace cannot be entered.
    """
    from pyroute2.netns import setns  # Python 3.12 has os.setns

    def inside() -> Result:
        try:
            with Path(f"/proc/{pid}/ns/net").open() as namespace:
                setns(namespace.fileno())
        except OSError as error:
            raise ClusterError(f"cannot enter the network of process {pid}: {error}") from error
        return function()

    with ThreadPoolExecutor(1) as thread:
        return thread.submit(inside).result()


def remove_interfaces(layout: Layout) -> None:
    """Remove the bridge and what is left of the cables (they go with a node's namespace)."""
    for name in list_interfaces(layout):
        # It may vanish by itself at this very moment; whoever asks for `interfaces` then sees.
        with contextlib.suppress(ClusterError), _rtnetlink() as rtnl:
            for index in rtnl.link_lookup(ifname=name):
                rtnl.link("del", index=index)


@contextlib.contextmanager
def _rtnetlink() -> Iterator[IPRoute]:
    """Requests to the kernel's rtnetlink(7), in the calling thread's network namespace.

    Raises ClusterError: the kernel refused one.
    """
    from pyroute2 import IPRoute  # takes half a second
    from pyroute2.netlink.exceptions import NetlinkError

    try:
        with IPRoute() as rtnl:
            yield rtnl
    except NetlinkError as error:
        raise ClusterError(f"setting up the nodes' network failed: {error}") from error


def list_interfaces(layout: Layout) -> list[str]:
    return sorted(path.name for path in Path("/sys/class/net").glob(f"{layout.bridge}*"))
