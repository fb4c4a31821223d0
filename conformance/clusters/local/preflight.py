"""What a node needs from this machine, checked before anything is started.

Everything that is missing is said at once, with the Debian packages that bring it, because being
told one thing per attempt is what makes such a set-up tedious.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from conformance.clusters.base import ClusterUsageError
from conformance.clusters.local.images import find_busybox
from conformance.clusters.local.tools import locate_tool

CNI_PLUGINS = ("bridge", "host-local", "loopback")
CNI_PLACES = (Path("/usr/lib/cni"), Path("/opt/cni/bin"), Path("/usr/libexec/cni"))

_TOOLS = {
    "runc": "runc",
    "ip": "iproute2",
    "mount": "mount",
    "nsenter": "util-linux",
    "unshare": "util-linux",
    "env": "coreutils",
    "sleep": "coreutils",
}
"""Program -> Debian package."""


@dataclass(frozen=True)
class Machine:
    """How to ask this machine; a test asks another one."""

    platform: str
    effective_uid: Callable[[], int]
    locate: Callable[[str], str | None]
    cni_directory: Callable[[], Path | None]
    busybox: Callable[[], Path | None]
    namespaces: Callable[[], str]
    """Empty where namespaces can be made, else why not."""


def find_cni_plugins() -> Path | None:
    """The first directory that has all the CNI plugins that a node uses."""
    for place in CNI_PLACES:
        if all((place / name).is_file() for name in CNI_PLUGINS):
            return place
    return None


def _namespace_problem() -> str:
    unshare = locate_tool("unshare")
    if unshare is None:
        return ""  # already said as a missing program
    command = [unshare, "--net", "--mount", "--pid", "--fork", "--mount-proc", "true"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=30)
    return "" if done.returncode == 0 else done.stderr.strip()


THIS_MACHINE = Machine(
    platform=sys.platform,
    effective_uid=os.geteuid,
    locate=locate_tool,
    cni_directory=find_cni_plugins,
    busybox=find_busybox,
    namespaces=_namespace_problem,
)


def check_platform(machine: Machine = THIS_MACHINE) -> None:
    """Refuse an operating system that has none of what is used here.

    Raises:
        ClusterUsageError: this is not Linux.
    """
    if machine.platform != "linux":
        raise ClusterUsageError(
            f"a local cluster needs Linux, this is {machine.platform}; use --cluster kubeconfig "
            "or --cluster kind"
        )


def missing_for_nodes(machine: Machine = THIS_MACHINE) -> list[str]:
    """One line for each thing that a node needs and this machine lacks; empty where it can."""
    lines = []
    packages = set()
    root = machine.effective_uid() == 0
    if not root:
        lines.append("root: namespaces, mounts and containers need it (run with sudo)")
    for tool, package in _TOOLS.items():
        if machine.locate(tool) is None:
            lines.append(f"the program {tool}")
            packages.add(package)
    if machine.cni_directory() is None:
        places = ", ".join(str(place) for place in CNI_PLACES)
        lines.append(f"the CNI plugins {', '.join(CNI_PLUGINS)} (looked in {places})")
        packages.add("containernetworking-plugins")
    if machine.busybox() is None:
        lines.append("a statically linked busybox, which the pods' image is made of")
        packages.add("busybox-static")
    if root:
        problem = machine.namespaces()
        if problem:
            lines.append(
                f"the right to make namespaces ({problem}); a container needs --privileged"
            )
    if packages:
        lines.append(f"on Debian or Ubuntu: apt-get install {' '.join(sorted(packages))}")
    return lines


def check_nodes(machine: Machine = THIS_MACHINE) -> None:
    """Refuse to start nodes where something is missing.

    Raises:
        ClusterUsageError: names everything that is missing, in one message.
    """
    missing = missing_for_nodes(machine)
    if missing:
        raise ClusterUsageError(
            "a node of a local cluster cannot run here; missing:\n"
            + "\n".join(f"  - {line}" for line in missing)
            + "\nThe control plane alone (0 nodes) needs none of these."
        )
