"""What no edit of CDI gives a container: a network interface, and CPUs to run on.

`python -m tests.cli.runtime_hook interface|cpus VALUE...` is a hook ``createRuntime`` of a CDI
spec: runc calls it on the node once the container's namespaces and control groups are there, with
the container's state as JSON on stdin (OCI runtime spec, "Lifecycle" and "State").
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from pyroute2 import IPRoute

from localkube.node.network import call_in_network


def interface(state: dict[str, Any], name: str, mac: str, address: str) -> None:
    """Put one end of a cable into the pod's network, whose other end stays on the node.

    Another container of the pod, or the same one again, finds it there. As the other end has the
    interface's name, too, no second pod can have the interface at the same time.
    """
    if call_in_network(state["pid"], partial(_indices, name)):
        return
    with IPRoute() as rtnl:
        end = {"ifname": name, "address": mac, "net_ns_pid": state["pid"]}
        rtnl.link("add", ifname=f"{name}-node", kind="veth", peer=end)
    call_in_network(state["pid"], partial(_set_up, name, address))


def _indices(name: str) -> Sequence[int]:
    with IPRoute() as rtnl:
        return tuple(rtnl.link_lookup(ifname=name))


def _set_up(name: str, address: str) -> None:
    ip, _, length = address.partition("/")
    with IPRoute() as rtnl:
        [index] = rtnl.link_lookup(ifname=name)
        rtnl.addr("add", index=index, address=ip, prefixlen=int(length))
        rtnl.link("set", index=index, state="up")


def cpus(state: dict[str, Any], allowed: str) -> None:
    """Keep the container to these CPUs, and to those of its hooks before this one."""
    before = Path(state["bundle"]) / "cpus"
    with before.open("a") as file:
        file.write(f"{allowed},")
    for line in Path(f"/proc/{state['pid']}/cgroup").read_text().splitlines():
        _, controllers, path = line.split(":", 2)
        mount = Path("/sys/fs/cgroup") / controllers  # cgroup v1, and v2 where this is empty
        file_of_kernel = mount / path.lstrip("/") / "cpuset.cpus"
        if file_of_kernel.exists():
            file_of_kernel.write_text(before.read_text().strip(","))
            return
    raise FileNotFoundError(f"no control group of process {state['pid']} has cpuset.cpus")


if __name__ == "__main__":
    commands: dict[str, Callable[..., None]] = {"interface": interface, "cpus": cpus}
    commands[sys.argv[1]](json.load(sys.stdin), *sys.argv[2:])
