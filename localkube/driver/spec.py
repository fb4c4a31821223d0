"""How DRA drivers are started: as processes beside each node's kubelet.

The driver gets what upstream's example driver and others read from their environment: NODE_NAME,
KUBECONFIG, CDI_ROOT, KUBELET_REGISTRAR_DIRECTORY_PATH and KUBELET_PLUGINS_DIRECTORY_PATH. A folder
for files of its own, which a profile's `stimulus` speaks of, is DRA_CONFORMANCE_DRIVER_DIRECTORY.

A driver may run in its node's namespaces (`DriverProgram.on_node`), so that what it has hard-coded
is the node's as well: /var/lib/kubelet, /var/run/cdi, /etc/cdi, /var/run/nri, the boot id, the
network.
"""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from kube.components import OTHER_DRIVER
from kube.slices import results_of
from localkube.api import LocalApi
from localkube.base import ClusterUsageError
from localkube.driverprogram import DriverProgram
from localkube.layout import Layout, NodeLayout
from localkube.processes.supervision import ProcessSpec


def check_unused(claims: Sequence[dict[str, Any]], driver_name: str) -> None:
    """Refuse to take away devices that are in use. Raises ClusterUsageError."""
    held = [
        f"{claim['metadata']['namespace']}/{claim['metadata']['name']}"
        for claim in claims
        for result in results_of(claim)
        if result["driver"] == driver_name
    ]
    if held:
        raise ClusterUsageError(
            f"devices of {driver_name} are allocated to claims ({', '.join(sorted(set(held))[:5])})"
            "; delete their pods before the driver is given other devices"
        )


_RBAC = "rbac.authorization.k8s.io"
_NAME = "dra-conformance:driver"
RULES: list[dict[str, Any]] = [
    {
        "apiGroups": ["resource.k8s.io"],
        "resources": ["resourceslices"],
        "verbs": ["get", "list", "watch", "create", "update", "patch", "delete"],
    },
    {"apiGroups": ["resource.k8s.io"], "resources": ["resourceclaims"], "verbs": ["get"]},
    {"apiGroups": [""], "resources": ["nodes"], "verbs": ["get"]},
]
"""All that a kubelet plugin needs: publish slices, read the claims it prepares, own its slices."""


def create_role(api: LocalApi) -> None:
    """Let the user `dra-conformance:driver` do what a driver must, and no more. Raises ApiError."""
    role = {"apiGroup": _RBAC, "kind": "ClusterRole", "name": _NAME}
    user = {"apiGroup": _RBAC, "kind": "User", "name": _NAME}
    for kind, body in (
        ("ClusterRole", {"rules": RULES}),
        ("ClusterRoleBinding", {"roleRef": role, "subjects": [user]}),
    ):
        obj = {"apiVersion": f"{_RBAC}/v1", "kind": kind, "metadata": {"name": _NAME}, **body}
        api.create(f"/apis/{_RBAC}/v1/{kind.lower()}s", obj)


def driver_environment(layout: Layout, node: NodeLayout) -> dict[str, str]:
    """Return the variables that every driver of a node gets."""
    return {
        "NODE_NAME": node.name,
        "KUBECONFIG": str(layout.kubeconfig_for("driver")),
        "CDI_ROOT": str(node.cdi),
        "KUBELET_REGISTRAR_DIRECTORY_PATH": str(node.registrar),
        "KUBELET_PLUGINS_DIRECTORY_PATH": str(node.plugins),
        "DRA_CONFORMANCE_DRIVER_DIRECTORY": str(node.driver),
        "NO_PROXY": "*",  # nothing is between a node and its API server
        "no_proxy": "*",
    }


def driver_spec(layout: Layout, driver: DriverProgram, index: int) -> ProcessSpec:
    """Return the driver's process on node ``index`` (from 1)."""
    node = layout.node(index)
    return _spec(layout, node, "driver", driver, node.driver)


def other_spec(layout: Layout, driver: DriverProgram, node: NodeLayout) -> ProcessSpec:
    """Return the process of a node's second driver."""
    return _spec(layout, node, OTHER_DRIVER, driver, node.other)


def _spec(
    layout: Layout, node: NodeLayout, role: str, driver: DriverProgram, folder: Path
) -> ProcessSpec:
    name = f"{node.name}/{role}"
    env = driver_environment(layout, node) | {"DRA_CONFORMANCE_DRIVER_DIRECTORY": str(folder)}
    return ProcessSpec(
        name,
        driver.command(folder),
        layout.log(name),
        env=env | dict(driver.environment),
        inherit_env=True,
        inside=node.name if driver.on_node else "",
    )


def forget(node: NodeLayout, driver: DriverProgram) -> None:
    """Remove what a driver kept on a node, as if its next devices had never been in use."""
    for file_name in driver.kept:
        shutil.rmtree(node.driver / file_name, ignore_errors=True)


def reboot(node: NodeLayout, driver: DriverProgram | None, other: DriverProgram | None) -> None:
    """Remove what the drivers of a node lose when it is rebooted; what they kept on disk stays."""
    for folder, program in ((node.driver, driver), (node.other, other)):
        for path in program.lost_at_reboot if program is not None else ():
            (folder / path).unlink(missing_ok=True)
