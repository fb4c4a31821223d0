"""The configuration files of one node: containerd's, CNI's and the kubelet's.

Each setting that is not obvious says why it is there. None of them makes the kubelet or the runtime
less real for a scenario; they fit them to a machine that is shared with other things.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from localkube.binaries.images import SANDBOX_IMAGE
from localkube.binaries.versions import RUNTIME
from localkube.layout import Layout, NodeLayout
from localkube.node.network import pod_subnet
from localkube.processes import procfs
from localkube.state import State
from reference_allocator.gates import dra_gates, known_to_binaries

KUBELET_PORT = 10250  # On the node's own address, so every node has the usual one.


def write_node_config(layout: Layout, state: State, index: int) -> None:
    """Write containerd's, CNI's and the kubelet's configuration of node `index` (from 1)."""
    node = layout.node(index)
    for directory in (
        node.kubelet_root,
        node.containerd,
        node.cdi,
        node.nri,
        node.registrar,
        node.plugins,
        node.driver,
    ):
        directory.mkdir(parents=True, exist_ok=True)
    snapshotter = "native" if filesystem_type(node.dir) == "overlay" else "overlayfs"
    (node.dir / "containerd.toml").write_text(containerd_config(node, state.binaries, snapshotter))
    cni = node.dir / "cni"
    cni.mkdir(exist_ok=True)
    (cni / "10-bridge.conflist").write_text(json.dumps(cni_config(node, index), indent=1))
    (node.dir / "kubelet.yaml").write_text(
        yaml.safe_dump(kubelet_config(layout, state, index), sort_keys=False)
    )


def containerd_config(node: NodeLayout, binaries: Path, snapshotter: str) -> str:
    """Containerd's configuration, version 3 (containerd 2.x).

    `binaries` is the directory with runc and the CNI plugins.
    """

    def quoted(value: object) -> str:
        return json.dumps(str(value))  # a JSON string is a TOML basic string

    runtime = 'plugins."io.containerd.cri.v1.runtime"'
    return f"""\
version = 3
root = {quoted(node.containerd / "root")}
state = {quoted(node.containerd / "state")}
# It would make /opt/containerd, which is not used.
disabled_plugins = ["io.containerd.internal.v1.opt"]

[grpc]
address = {quoted(node.containerd_socket)}

[plugins."io.containerd.nri.v1.nri"]
socket_path = {quoted(node.nri / "nri.sock")}
# Of plugins that are installed on the machine none is started.
plugin_path = {quoted(node.nri / "plugins")}
plugin_config_path = {quoted(node.nri / "conf.d")}

[plugins."io.containerd.cri.v1.images"]
snapshotter = {quoted(snapshotter)}

[plugins."io.containerd.cri.v1.images".pinned_images]
sandbox = {quoted(SANDBOX_IMAGE)}

[{runtime}]
# The kubelet asks for low OOM scores, which takes CAP_SYS_RESOURCE.
restrict_oom_score_adj = true
# Its profile would stay loaded on the machine.
disable_apparmor = true
disable_hugetlb_controller = true
# Pods' network namespaces are then mounted inside this node's directory.
netns_mounts_under_state_dir = true
cdi_spec_dirs = [{quoted(node.cdi)}]

[{runtime}.cni]
bin_dirs = [{quoted(binaries)}]
conf_dir = {quoted(node.dir / "cni")}

[{runtime}.containerd.runtimes.runc]
runtime_type = "io.containerd.runc.v2"

[{runtime}.containerd.runtimes.runc.options]
BinaryName = {quoted(binaries / RUNTIME)}
SystemdCgroup = false
"""


def cni_config(node: NodeLayout, index: int) -> dict[str, Any]:
    """Return a bridge inside the node; no masquerading, so no firewall rule anywhere."""
    return {
        "cniVersion": "1.0.0",
        "name": "dra-conformance",
        "plugins": [
            {
                "type": "bridge",
                "bridge": "cni0",
                "isGateway": True,
                "ipam": {
                    "type": "host-local",
                    "dataDir": str(node.private / "ipam"),
                    "ranges": [[{"subnet": pod_subnet(index)}]],
                    "routes": [{"dst": "0.0.0.0/0"}],
                },
            }
        ],
    }


def kubelet_config(layout: Layout, state: State, index: int) -> dict[str, Any]:
    assert state.network is not None, "a cluster with nodes has a network"
    node, pki = layout.node(index), layout.pki
    config: dict[str, Any] = {
        "apiVersion": "kubelet.config.k8s.io/v1beta1",
        "kind": "KubeletConfiguration",
        "address": state.network.node_address(index),
        "port": KUBELET_PORT,
        "tlsCertFile": f"{pki}/{node.name}.crt",
        "tlsPrivateKeyFile": f"{pki}/{node.name}.key",
        "authentication": {
            "anonymous": {"enabled": False},
            "webhook": {"enabled": False},
            "x509": {"clientCAFile": f"{pki}/ca.crt"},
        },
        "authorization": {"mode": "AlwaysAllow"},
        "containerRuntimeEndpoint": f"unix://{node.containerd_socket}",
        "podLogsDir": str(node.dir / "l"),
        "volumePluginDir": str(node.kubelet_root / "volumeplugins"),
        "resolvConf": "",
        # Default true since 1.35, and many a build machine still has cgroup v1.
        "failCgroupV1": False,
        "failSwapOn": False,
        "cgroupDriver": "cgroupfs",
        # One subtree per node: a kubelet removes pod cgroups below its root that it does not know.
        "cgroupRoot": node_cgroup(layout, node),
        "cgroupsPerQOS": True,
        "enforceNodeAllocatable": [],
        "makeIPTablesUtilChains": False,
        # A build machine's full disk is no reason to evict a scenario's pods or its only image.
        "imageGCHighThresholdPercent": 100,
        "evictionHard": {
            "memory.available": "1Mi",
            "nodefs.available": "0%",
            "nodefs.inodesFree": "0%",
            "imagefs.available": "0%",
            "imagefs.inodesFree": "0%",
        },
        # As for the control plane: throttling must not set the length of a run.
        "kubeAPIQPS": 500,
        "kubeAPIBurst": 1000,
        "eventRecordQPS": 0,
        "nodeStatusUpdateFrequency": "2s",
        # Only what changed: else each node writes its whole status as often, to every watcher.
        "nodeStatusReportFrequency": "5m",
        # How soon a pod whose devices could not be prepared is tried again (default 1m): its claim
        # has no device yet, or has that of a pod that still ends, or on a slow machine the API
        # server does not know yet that it is for this node, and refuses.
        "syncFrequency": "2s",
    }
    if gates := gates_of_kubelet(state.feature_gates, state.kubelet_version):
        config["featureGates"] = gates
    return config


def gates_of_kubelet(gates: Mapping[str, bool], version: str) -> dict[str, bool]:
    """Those of the cluster's gates that a kubelet knows; ``version``: "" is the cluster's.

    It refuses the others. Gates that do not concern DRA are left to it.
    """
    if not version:
        return dict(gates)
    unknown = dra_gates() - known_to_binaries(version)
    return {name: on for name, on in gates.items() if name not in unknown}


def node_cgroup(layout: Layout, node: NodeLayout) -> str:
    """Cgroup that the node's pods live below; the kubelet wants it to exist."""
    return f"{layout.cgroup}/{node.name}"


def filesystem_type(path: Path) -> str:
    """Type of the filesystem that `path` lies on, for example "ext4"."""
    resolved = path.resolve()
    around = [
        (point, kind) for point, kind in procfs.list_mounts() if resolved.is_relative_to(point)
    ]
    # A later mount at the same place covers an earlier one.
    deepest = max(len(point.parts) for point, _ in around)
    return [kind for point, kind in around if len(point.parts) == deepest][-1]
