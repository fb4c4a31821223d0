"""Where a local cluster keeps its files, and whether the paths are short enough.

One directory per cluster holds everything: certificates, data, sockets, logs, process records. So
removing a cluster means removing what refers to that directory and then the directory.
"""

from __future__ import annotations

import hashlib
import os
import re
from dataclasses import dataclass
from pathlib import Path

from kube.base.folders import cache_folder, state_folder
from localkube.base import ClusterUsageError

SOCKET_PATH_BYTES = 107
"""Longest path of a unix socket: sun_path is 108 bytes with its final NUL (unix(7))."""

SECOND_POD_UID = "2"
"""POD_UID of every other instance of a driver in rolling updates; short, for sockets have it."""


STATE_FILE = "dra-conformance-cluster.json"
"""Its presence says that a directory is a local cluster's; no other program writes that name."""

_NAME = re.compile(r"[a-z0-9]([a-z0-9-]{0,30}[a-z0-9])?")


def default_root() -> Path:
    """Directory of all local clusters' state directories."""
    return state_folder() / "local"


def default_cache() -> Path:
    return cache_folder() / "binaries"


_ENTRIES = {
    STATE_FILE,
    f"{STATE_FILE}.new",
    "logs",
    "processes",
    "pki",
    "kubeconfig",
    "etcd",
    "images.tar",
    *(f"n{index}" for index in range(1, 10)),
}


@dataclass(frozen=True)
class NodeLayout:
    """Files of one node. Names are short because the kubelet's sockets lie deep below them."""

    index: int
    dir: Path

    @property
    def name(self) -> str:
        """As the API server knows it."""
        return f"node-{self.index}"

    @property
    def kubelet_root(self) -> Path:
        """The kubelet's --root-dir; `plugins` and `plugins_registry` follow it."""
        return self.dir / "k"

    @property
    def registrar(self) -> Path:
        """KUBELET_REGISTRAR_DIRECTORY_PATH of a driver."""
        return self.kubelet_root / "plugins_registry"

    @property
    def plugins(self) -> Path:
        """KUBELET_PLUGINS_DIRECTORY_PATH of a driver."""
        return self.kubelet_root / "plugins"

    @property
    def pod_resources(self) -> Path:
        """The kubelet's socket of the PodResources API (pkg/kubelet/kubelet_getters.go)."""
        return self.kubelet_root / "pod-resources" / "kubelet.sock"

    @property
    def cdi(self) -> Path:
        """CDI_ROOT of a driver, and the one directory where containerd looks for CDI specs."""
        return self.dir / "cdi"

    @property
    def containerd(self) -> Path:
        """Containerd's root, state and socket."""
        return self.dir / "c"

    @property
    def containerd_socket(self) -> Path:
        """Where the kubelet and ctr reach containerd."""
        return self.containerd / "containerd.sock"

    @property
    def nri(self) -> Path:
        """Where containerd's socket for NRI plugins is; some drivers are such plugins."""
        return self.dir / "nri"

    @property
    def private(self) -> Path:
        """What the node sees in place of the machine's own fixed directories (node/machine.py)."""
        return self.dir / "p"

    @property
    def driver(self) -> Path:
        """State and device files of the driver that runs beside this node's kubelet."""
        return self.dir / "d"

    @property
    def other(self) -> Path:
        """The same of a second driver, while there is one."""
        return self.dir / "o"


@dataclass(frozen=True)
class Layout:
    """Files of one local cluster. ``dir``: its state directory, absolute."""

    name: str
    dir: Path

    @property
    def state(self) -> Path:
        """The record of what this cluster is (state.py)."""
        return self.dir / STATE_FILE

    @property
    def lock(self) -> Path:
        """Lock file. Beside the directory, because `down` removes the directory."""
        return self.dir.parent / f".{self.dir.name}.lock"

    @property
    def logs(self) -> Path:
        return self.dir / "logs"

    @property
    def processes(self) -> Path:
        return self.dir / "processes"

    @property
    def pki(self) -> Path:
        return self.dir / "pki"

    @property
    def kubeconfig(self) -> Path:
        """The administrator's kubeconfig: the one that users get."""
        return self.dir / "kubeconfig"

    @property
    def token(self) -> str:
        """Six hexadecimal digits that name this cluster's interfaces and cgroups."""
        return hashlib.sha256(str(self.dir).encode()).hexdigest()[:6]

    @property
    def bridge(self) -> str:
        """Network interface that joins the nodes; 15 characters is the kernel's limit."""
        return f"dra{self.token}"

    @property
    def cgroup(self) -> str:
        """Cgroup that all of this cluster's pods live below."""
        return f"/dra-{self.token}"

    def name_veth(self, index: int) -> str:
        """This machine's end of the cable to node `index` (from 1)."""
        return f"dra{self.token}v{index}"

    def foreign_entries(self) -> list[str]:
        """Return names in the state directory that no local cluster makes: it is not ours then.

        A directory without the state file is ours only when nothing but logs is in it: those that
        a failed start has left.
        """
        if not self.dir.exists():
            return []
        names = {path.name for path in self.dir.iterdir()}
        own_names = _ENTRIES if STATE_FILE in names else {self.logs.name}
        return sorted(name for name in names if name not in own_names)

    def kubeconfig_for(self, user: str) -> Path:
        """Kubeconfig of a component ("scheduler", "node-1", "driver")."""
        return self.pki / f"{user}.kubeconfig"

    def node(self, index: int) -> NodeLayout:
        return NodeLayout(index, self.dir / f"n{index}")

    def log(self, component: str) -> Path:
        """Log file of `component` ("etcd", "node-1/kubelet")."""
        return self.logs / f"{component}.log"


def make_layout(name: str, state_dir: Path | None) -> Layout:
    """Return the layout of cluster `name`, in `state_dir` or else under the default root.

    Raises ClusterUsageError: the name is none that can be a file name and a context name.
    """
    if not _NAME.fullmatch(name):
        raise ClusterUsageError(
            f"cluster name {name!r}: use 1 to 32 lower-case letters, digits and hyphens"
        )
    directory = state_dir if state_dir is not None else default_root() / name
    return Layout(name, Path(os.path.abspath(directory)))  # noqa: PTH100 (keeps links as given)


def check_socket_paths(layout: Layout, nodes: int, driver_name: str) -> None:
    """Refuse a state directory under which the node's unix sockets cannot be made.

    The deepest known sockets are a driver's registration socket and its service socket; their
    names are those of upstream's helper (k8s.io/dynamic-resource-allocation/kubeletplugin).
    Raises ClusterUsageError: a path would be longer than 107 bytes.
    """
    if nodes == 0:
        return
    node = layout.node(nodes)
    sockets = (
        node.registrar / f"{driver_name}-{SECOND_POD_UID}-reg.sock",
        node.plugins / driver_name / f"dra-{SECOND_POD_UID}.sock",
        node.containerd_socket.with_suffix(".sock.ttrpc"),
    )
    longest = max(sockets, key=lambda path: len(os.fsencode(path)))
    excess = len(os.fsencode(longest)) - SOCKET_PATH_BYTES
    if excess > 0:
        raise ClusterUsageError(
            f"state directory {layout.dir} is {excess} bytes too long: the socket {longest} would "
            f"be over the {SOCKET_PATH_BYTES} bytes that the kernel allows. Choose a shorter "
            "--name, or a shorter state directory, for example with XDG_STATE_HOME=/run"
        )
