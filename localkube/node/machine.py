"""One node: a kubelet and a containerd in namespaces of their own.

The node is what a container engine would make of it, without the engine: one process holds a
network, a mount and a pid namespace, and everything else of the node runs inside. So ending that
one process ends every process of the node, container or not, and with the last of them its mounts
and interfaces are gone: the kernel does the cleaning, also after a crash.

Inside, the few directories whose place is fixed in programs (containerd's shim sockets, the CNI
plugins' results, the kubelet's links to container logs; in drivers /var/lib/kubelet, CDI's and
NRI's) are bound to directories of this node, so that nodes do not meet each other or the machine's
own kubelet, and a driver finds what a DaemonSet's hostPath volumes would give it.
"""

from __future__ import annotations

import shutil
import uuid
from pathlib import Path

from kube.kubelet.plugins import KUBELET_ROOT
from localkube.base import ClusterError
from localkube.layout import Layout, NodeLayout
from localkube.processes import procfs
from localkube.processes.supervision import ProcessSpec, enter_command
from localkube.processes.tools import GO_SETTINGS, SYSTEM_PATH, failure_of, find_tool
from localkube.state import State

KERNEL_SETTINGS = {
    "vm/overcommit_memory": "1",
    "vm/panic_on_oom": "0",
    "kernel/panic": "10",
    "kernel/panic_on_oops": "1",
    "kernel/keys/root_maxkeys": "1000000",
    "kernel/keys/root_maxbytes": "25000000",
}
"""What the kubelet sets on its machine unless it reads these values already
(pkg/kubelet/cm/container_manager_linux.go, setupKernelTunables). Inside the node it reads them from
files, so the machine's own settings stay as they are."""

_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")
_GONE_SECONDS = 20.0


def holder_spec(node: NodeLayout, layout: Layout) -> ProcessSpec:
    """Return the process whose namespaces the node is.

    It ignores SIGCHLD, so that the kernel buries the orphans (container shims) that it inherits as
    the first process of its pid namespace.
    """
    command = (
        find_tool("unshare"),
        *("--net", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc"),
        # The machine's later mounts are seen, the node's own are never seen outside.
        *("--propagation", "slave"),
        *(find_tool("env"), "--ignore-signal=CHLD", find_tool("sleep"), "infinity"),
    )
    return ProcessSpec(node.name, command, layout.log(f"{node.name}/namespaces"))


def own_directories(node: NodeLayout) -> dict[str, Path]:
    """Return the machine's directory -> the node's own, which stands there inside the node.

    Both of CDI's usual places are the one directory that its containerd reads.
    """
    return {
        "/run/containerd": node.private / "run-containerd",
        "/var/lib/cni": node.private / "var-lib-cni",
        "/var/log/containers": node.private / "var-log-containers",
        KUBELET_ROOT: node.kubelet_root,
        "/var/run/cdi": node.cdi,
        "/etc/cdi": node.cdi,
        "/var/run/nri": node.nri,
    }


def prepare_mounts(node: NodeLayout, init: int) -> None:
    """Bind the node's own directories and kernel settings, inside its mount namespace."""
    mounts: list[tuple[Path, Path]] = []
    for target, source in own_directories(node).items():
        source.mkdir(parents=True, exist_ok=True)
        Path(target).mkdir(parents=True, exist_ok=True)
        mounts.append((source, Path(target)))
    for setting, value in KERNEL_SETTINGS.items():
        source = node.private / setting.replace("/", ".")
        source.write_text(value + "\n")
        mounts.append((source, Path("/proc/sys") / setting))
    mount = find_tool("mount")
    inside = enter_command(init, pid_namespace=False)
    # Containers may ask for mounts that propagate (volumeMounts.mountPropagation).
    _run(*inside, mount, "--make-rshared", "/")
    for source, mount_point in mounts:
        _run(*inside, mount, "--bind", str(source), str(mount_point))


def containerd_spec(layout: Layout, state: State, index: int) -> ProcessSpec:
    """containerd; it finds its shim next to itself, through PATH."""
    node = layout.node(index)
    name = f"{node.name}/containerd"
    return ProcessSpec(
        name,
        (str(state.binaries / "containerd"), "--config", str(node.dir / "containerd.toml")),
        layout.log(name),
        env={"PATH": f"{state.binaries}:{SYSTEM_PATH}"},
        inside=node.name,
    )


def kubelet_spec(layout: Layout, state: State, index: int) -> ProcessSpec:
    assert state.network is not None, "a cluster with nodes has a network"
    node = layout.node(index)
    name = f"{node.name}/kubelet"
    command = (
        str((state.kubelet or state.binaries) / "kubelet"),
        f"--config={node.dir / 'kubelet.yaml'}",
        f"--kubeconfig={layout.kubeconfig_for(node.name)}",
        f"--root-dir={node.kubelet_root}",
        f"--cert-dir={node.dir / 'certs'}",
        f"--hostname-override={node.name}",
        f"--node-ip={state.network.node_address(index)}",
        "--v=2",
    )
    env = {"PATH": SYSTEM_PATH, **GO_SETTINGS}
    return ProcessSpec(name, command, layout.log(name), env=env, inside=node.name)


def import_images(state: State, node: NodeLayout, archive: Path) -> None:
    """Load the images into the node's containerd, where its CRI plugin looks for them."""
    ctr = str(state.binaries / "ctr")
    options = ("--address", str(node.containerd_socket), "--namespace", "k8s.io")
    _run(ctr, *options, "images", "import", str(archive))


def lose_memory(node: NodeLayout, init: int) -> None:
    """Switch a node off whose components are stopped: all ends at once, and its memory is lost.

    Really done: what still runs in it is killed; mounts below its directory (tmpfs, containers'
    roots, network namespaces), containerd's state and the CDI specs are removed; the boot id that
    all in the node read is a new one. Simulated: the kernel goes on.

    ``init``: the process that holds its namespaces (`Processes.node_init`).
    Raises ClusterError: something does not end, or cannot be unmounted.
    """
    if surviving := procfs.kill_all(
        lambda: procfs.list_children(init, recursive=True), _GONE_SECONDS
    ):
        raise ClusterError(f"{node.name}: processes {surviving} do not end")
    inside = enter_command(init, pid_namespace=True)  # umount reads the /proc that it finds there
    for point in procfs.mounts_below(node.dir, init):
        # Some go with others, for what is mounted once may be seen in several places.
        failure_of(*inside, find_tool("umount"), "--lazy", str(point))
    if mounted := procfs.mounts_below(node.dir, init):
        raise ClusterError(f"{node.name}: still mounted: {', '.join(map(str, mounted))}")
    memory = (node.containerd / "state", node.cdi, node.nri, node.private / "run-containerd")
    for folder in memory:
        for path in folder.iterdir() if folder.is_dir() else ():
            if path.is_dir() and not path.is_symlink():
                shutil.rmtree(path)
            else:
                path.unlink()
    boot_id = node.private / "boot_id"
    command = (
        () if boot_id.exists() else (find_tool("mount"), "--bind", str(boot_id), str(_BOOT_ID))
    )
    boot_id.write_text(f"{uuid.uuid4()}\n", encoding="ascii")
    if command and (failed := failure_of(*inside, *command)):
        raise ClusterError(f"{node.name}: no new boot id: {failed}")


def _run(*command: str) -> None:
    if failure := failure_of(*command):
        raise ClusterError(f"`{' '.join(command)}` failed: {failure}")
