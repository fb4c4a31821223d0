"""How DRA drivers are started, our own among them: as processes beside each node's kubelet.

The driver gets what upstream's example driver and others read from their environment: NODE_NAME,
KUBECONFIG, CDI_ROOT, KUBELET_REGISTRAR_DIRECTORY_PATH and KUBELET_PLUGINS_DIRECTORY_PATH. A folder
for files of its own, which a profile's `stimulus` speaks of, is DRA_CONFORMANCE_DRIVER_DIRECTORY.

A driver that is not our own runs in its node's namespaces, so that what it has hard-coded is the
node's as well: /var/lib/kubelet, /var/run/cdi, /etc/cdi, /var/run/nri, the boot id, the network.
"""

from __future__ import annotations

import shutil
import sys
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

from conformance.clusters.base import OTHER_DRIVER, ClusterUsageError
from conformance.clusters.local.api import LocalApi
from conformance.clusters.local.layout import Layout, NodeLayout
from conformance.clusters.local.options import DYNAMIC_MIG, SIMULATE, LocalOptions, Simulation
from conformance.clusters.local.processes.supervision import ProcessSpec
from conformance.clusters.local.processes.tools import find_program, find_tool, python_path
from conformance.kubeapi.slices import results_of
from nvml_driver.errors import ProfileError
from nvml_driver.simulated import list_shipped_profiles
from nvml_driver.simulated.profile import load_profile

PROGRAM = ("-m", "nvml_driver", "run")
DRIVER_NAME, PREFIX = "--driver-name", "--container-prefix"


def command(shown: Simulation, folder: Path) -> tuple[str, ...]:
    """Our own driver on simulated GPUs; what it keeps lies in the folder."""
    return (
        *(sys.executable, *PROGRAM),
        *(DRIVER_NAME, shown.driver_name),
        *(SIMULATE, name_or_file(shown.simulate)),
        *("--device-root", str(folder / "devices")),
        *("--state-dir", str(folder / "state")),
        *((PREFIX, shown.prefix) if shown.prefix else ()),
        *((DYNAMIC_MIG,) if shown.dynamic_mig else ()),
    )


def name_or_file(simulate: str) -> str:
    """A shipped profile's name as it is; a file by a path that holds in every directory."""
    own = simulate not in list_shipped_profiles() and Path(simulate).is_file()
    return str(Path(simulate).absolute()) if own else simulate


def read_simulation(started: Sequence[str]) -> Simulation | None:
    """What a driver that was started with this command shows; None where it is not our own."""
    if tuple(started[1 : 1 + len(PROGRAM)]) != PROGRAM or SIMULATE not in started:
        return None
    after = dict(pairwise(started))
    return Simulation(
        after[SIMULATE], DYNAMIC_MIG in started, after[DRIVER_NAME], after.get(PREFIX, "")
    )


def check_simulation(simulate: str, dynamic_mig: bool) -> None:
    """Refuse simulated GPUs of which our driver would publish nothing. Raises ClusterUsageError."""
    try:
        profile = load_profile(simulate)
    except ProfileError as error:
        raise ClusterUsageError(f"{SIMULATE} {simulate}: {error}") from None
    if not dynamic_mig and all(
        gpu.mig_mode == "enabled" and not gpu.mig_instances for gpu in profile.shown
    ):
        raise ClusterUsageError(
            f"{SIMULATE} {simulate}: no GPU of it can be used as it is (they are in MIG mode and "
            f"have no MIG device), so there would be nothing to publish; add {DYNAMIC_MIG}"
        )


def forget(node: NodeLayout) -> None:
    """Remove what our driver kept on a node: the next one shows GPUs that never were in use."""
    for kept in ("state", "devices"):
        shutil.rmtree(node.driver / kept, ignore_errors=True)


def reboot(node: NodeLayout) -> None:
    """Let our drivers on a node find another boot id, and no MIG device that they made.

    What they kept stays (simulated/node.py, nvml/library.py).
    """
    for folder in (node.driver, node.other):
        for name in ("boot_id", "nvml-state"):
            (folder / "state" / name).unlink(missing_ok=True)


def shown(simulate: str) -> int:
    return len(load_profile(simulate).shown)


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


def check_command(options: LocalOptions) -> None:
    """Find the driver's program, or what our own is to show, before anything is started.

    Raises ClusterUsageError: there is no such program or profile.
    """
    if options.driver and options.driver_command is not None:
        find_program(options.driver_command[0])
    elif options.driver:
        check_simulation(options.simulate, options.dynamic_mig)


def driver_spec(layout: Layout, options: LocalOptions, index: int) -> ProcessSpec:
    """The driver's process on node `index` (from 1); our own one needs nothing of the node."""
    node = layout.node(index)
    if options.driver_command is None:
        return _own_spec(layout, node, "driver", options.simulation, node.driver)
    program = find_program(options.driver_command[0])
    here = f"--chdir={Path.cwd()}"  # who enters a mount namespace stands in its root
    command = (find_tool("env"), here, program, *options.driver_command[1:])
    return _spec(layout, node, "driver", command, {}, inside=node.name)


def other_spec(layout: Layout, shown: Simulation, node: NodeLayout) -> ProcessSpec:
    """The process of a node's second driver, which is our own."""
    return _own_spec(layout, node, OTHER_DRIVER, shown, node.other)


def _own_spec(
    layout: Layout, node: NodeLayout, role: str, shown: Simulation, folder: Path
) -> ProcessSpec:
    env = {"DRA_CONFORMANCE_DRIVER_DIRECTORY": str(folder), "PYTHONPATH": python_path()}
    return _spec(layout, node, role, command(shown, folder), env)


def _spec(
    layout: Layout,
    node: NodeLayout,
    role: str,
    command: tuple[str, ...],
    env: dict[str, str],
    inside: str = "",
) -> ProcessSpec:
    name = f"{node.name}/{role}"
    env = driver_environment(layout, node) | env
    return ProcessSpec(name, command, layout.log(name), env=env, inherit_env=True, inside=inside)
