"""What the tests with real local clusters share: binaries, short directories, proof of absence."""

from __future__ import annotations

import os
import shutil
import ssl
import subprocess
import tempfile
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import psutil
import pytest

from localkube import preflight
from localkube.binaries.build import missing_binaries
from localkube.binaries.versions import CONTROL_PLANE_BINARIES, NODE_BINARIES, cache_key
from localkube.data import local_cluster_modules_dir
from localkube.layout import Layout, default_cache
from localkube.node import cgroups
from localkube.node.network import list_interfaces
from localkube.processes import procfs


def built_binaries() -> Path:
    """The cache's binaries; a test that would have to build them is skipped."""
    directory = default_cache() / cache_key(local_cluster_modules_dir())
    if missing_binaries(directory, CONTROL_PLANE_BINARIES + NODE_BINARIES):
        pytest.skip(
            f"the local cluster's binaries are not in {directory}: `cluster up` builds them"
        )
    return directory


def require_node_machine() -> None:
    """Skip where this machine cannot run a node."""
    missing = preflight.missing_for_nodes()
    if missing:
        pytest.skip("a local cluster's node cannot run here: " + "; ".join(missing))


@contextmanager
def short_directory() -> Iterator[Path]:
    """A directory whose path leaves room for unix sockets; pytest's own are too long."""
    path = Path(tempfile.mkdtemp(prefix="dra", dir="/tmp"))
    try:
        yield path
    finally:
        shutil.rmtree(path)


@dataclass(frozen=True)
class Machine:
    """What a cluster could change on this machine, compared before and after."""

    mounts: tuple[str, ...]
    firewall: str
    settings: tuple[str, ...]
    named_namespaces: tuple[str, ...]


def look_at_machine() -> Machine:
    """The machine as it is. Other clusters on it do not show here: their mounts are their own."""
    mounts = Path("/proc/mounts").read_text().splitlines()
    settings = (
        "vm/overcommit_memory",
        "kernel/panic",
        "kernel/panic_on_oops",
        "kernel/keys/root_maxkeys",
        "net/ipv4/ip_forward",
    )
    return Machine(
        mounts=tuple(sorted(mounts)),
        firewall=output("iptables-save") if shutil.which("iptables-save") else "",
        settings=tuple((Path("/proc/sys") / name).read_text() for name in settings),
        named_namespaces=tuple(sorted(path.name for path in Path("/run/netns").glob("*"))),
    )


def output(*command: str) -> str:
    """Standard output of a command; firewall counters and comments with a time are left out."""
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)
    lines = done.stdout.splitlines()
    return "\n".join(line.partition("[")[0] for line in lines if not line.startswith("#"))


def namespaces(pid: int) -> set[str]:
    """The network, mount and pid namespaces of a process, as the kernel names them."""
    return {str(Path(f"/proc/{pid}/ns/{kind}").readlink()) for kind in ("net", "mnt", "pid")}


def processes_in(wanted: set[str]) -> list[psutil.Process]:
    """Processes in any of these namespaces.

    Ask while the namespaces are there: the kernel gives their numbers to the next ones at once.
    """
    found = []
    for process in psutil.process_iter():
        try:
            inside = namespaces(process.pid)
        except OSError:
            continue
        if inside & wanted:
            found.append(process)
    return found


def remains(layout: Layout) -> list[str]:
    """Everything of this cluster that is still on the machine; empty when it is gone."""
    directory = str(layout.dir)
    mounts = Path("/proc/mounts").read_text().splitlines()
    groups = [root / layout.cgroup.strip("/") for root in cgroups.mount_points()]
    return [
        *(f"process {pid}" for pid in procfs.find_marked(layout.dir)),
        *(f"contained process {pid}" for pid in procfs.in_cgroup(layout.cgroup)),
        *(f"process {pid} by command line" for pid in mentioning(directory)),
        *(f"mount {line}" for line in mounts if directory in line),
        *(f"interface {name}" for name in list_interfaces(layout)),
        *(f"cgroup {path}" for path in groups if path.exists()),
        *([f"directory {directory}"] if layout.dir.exists() else []),
    ]


def mentioning(text: str) -> list[int]:
    """Processes, this one aside, whose command line has `text`."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and int(entry.name) != os.getpid():
            try:
                command = (entry / "cmdline").read_bytes()
            except OSError:
                continue
            if text.encode() in command:
                found.append(int(entry.name))
    return found


def answers(url: str, ca: Path) -> bool:
    """Whether an HTTPS server of the cluster answers anything at all."""
    context = ssl.create_default_context(cafile=str(ca))
    opener = urllib.request.build_opener(
        urllib.request.ProxyHandler({}), urllib.request.HTTPSHandler(context=context)
    )
    try:
        opener.open(url, timeout=30).close()
    except urllib.error.HTTPError as error:
        error.close()
        return True
    except OSError:
        return False
    return True
