"""Attaching a DRA driver: it runs as an ordinary process beside each node's kubelet.

The driver gets what upstream's example driver and others read from their environment: NODE_NAME,
KUBECONFIG, CDI_ROOT, KUBELET_REGISTRAR_DIRECTORY_PATH and KUBELET_PLUGINS_DIRECTORY_PATH. A folder
for files of its own, which a profile's `stimulus` speaks of, is DRA_CONFORMANCE_DRIVER_DIRECTORY.
"""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

from conformance.clusters.base import ClusterUsageError
from conformance.clusters.local import owndriver
from conformance.clusters.local.api import LocalApi
from conformance.clusters.local.layout import Layout, NodeLayout
from conformance.clusters.local.options import LocalOptions
from conformance.clusters.local.processes import ProcessSpec
from conformance.clusters.local.tools import python_path, search_path

STOP_SECONDS = 10.0

_RBAC = "/apis/rbac.authorization.k8s.io/v1"
ROLE: dict[str, Any] = {
    "apiVersion": "rbac.authorization.k8s.io/v1",
    "kind": "ClusterRole",
    "metadata": {"name": "dra-conformance:driver"},
    "rules": [
        {
            "apiGroups": ["resource.k8s.io"],
            "resources": ["resourceslices"],
            "verbs": ["get", "list", "watch", "create", "update", "patch", "delete"],
        },
        {"apiGroups": ["resource.k8s.io"], "resources": ["resourceclaims"], "verbs": ["get"]},
        {"apiGroups": [""], "resources": ["nodes"], "verbs": ["get"]},
    ],
}
"""All that a kubelet plugin needs: publish slices, read the claims it prepares, own its slices."""

_BINDING: dict[str, Any] = {
    "apiVersion": "rbac.authorization.k8s.io/v1",
    "kind": "ClusterRoleBinding",
    "metadata": {"name": "dra-conformance:driver"},
    "roleRef": {
        "apiGroup": "rbac.authorization.k8s.io",
        "kind": "ClusterRole",
        "name": "dra-conformance:driver",
    },
    "subjects": [
        {
            "apiGroup": "rbac.authorization.k8s.io",
            "kind": "User",
            "name": "dra-conformance:driver",
        }
    ],
}


def create_role(api: LocalApi) -> None:
    """Let the user `dra-conformance:driver` do what a driver must, and no more.

    Raises:
        ClusterError: the API server refused it.
    """
    api.create(f"{_RBAC}/clusterroles", ROLE)
    api.create(f"{_RBAC}/clusterrolebindings", _BINDING)


def driver_environment(layout: Layout, node: NodeLayout) -> dict[str, str]:
    """The variables that every driver gets."""
    return {
        "NODE_NAME": node.name,
        "KUBECONFIG": str(layout.kubeconfig_for("driver")),
        "CDI_ROOT": str(node.cdi),
        "KUBELET_REGISTRAR_DIRECTORY_PATH": str(node.registrar),
        "KUBELET_PLUGINS_DIRECTORY_PATH": str(node.plugins),
        "DRA_CONFORMANCE_DRIVER_DIRECTORY": str(node.driver),
    }


def check_command(options: LocalOptions) -> None:
    """Find the driver's program, or what our own is to show, before anything is started.

    Raises:
        ClusterUsageError: there is no such program or profile.
    """
    if options.driver and options.driver_command is not None:
        find_program(options.driver_command[0])
    elif options.driver:
        owndriver.check_simulation(options.simulate, options.dynamic_mig)


def find_program(name: str) -> str:
    """Absolute path of the driver's program, given by path or looked up in PATH.

    Raises:
        ClusterUsageError: it is not there or not executable.
    """
    path = shutil.which(name, path=search_path())
    if path is None:
        raise ClusterUsageError(
            f"the driver command's program {name!r} is not there or not executable (looked in "
            f"{Path.cwd()} and {search_path()})"
        )
    return str(Path(path).absolute())


def driver_spec(layout: Layout, options: LocalOptions, index: int) -> ProcessSpec:
    """The driver's process on node `index` (from 1), in the machine's own namespaces."""
    node = layout.node(index)
    name = f"{node.name}/driver"
    env = {**options.driver_env, **driver_environment(layout, node)}
    if options.driver_command is None:
        command = owndriver.command(options, node)
        env["PYTHONPATH"] = python_path()
    else:
        program = find_program(options.driver_command[0])
        command = (program, *options.driver_command[1:])
    return ProcessSpec(
        name,
        command,
        layout.log(name),
        env=env,
        inherit_env=True,
    )


def kubelet_api(layout: Layout, address: str, port: int) -> LocalApi:
    """Requests to a node's kubelet, as the API server makes them."""
    pki: Path = layout.pki
    return LocalApi(
        address,
        port,
        ca=pki / "ca.crt",
        client=(pki / "kubelet-client.crt", pki / "kubelet-client.key"),
    )
