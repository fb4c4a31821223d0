"""When a driver that was started is attached to a node's kubelet, and its devices can be had.

It counts as attached when both of these hold, whatever language it is written in:
- the kubelet has a registered plugin (a node gets one driver, and leftovers of an earlier one are
  removed first), and the driver calls itself by the name that its slices shall have. A registration
  socket that exists says little, because the kubelet may have refused the driver; the kubelet's
  own metric `plugin_manager_total_plugins{state="actual_state_of_world"}` counts those that it
  accepted (pkg/kubelet/pluginmanager/metrics, 1.12 and later).
- the API server has a ResourceSlice of the driver's name and this node, and as many slices of its
  pool's newest generation as `spec.pool.resourceSliceCount` says.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Collection
from pathlib import Path
from typing import Any

from conformance.clusters.base import ClusterError
from conformance.clusters.local import registration
from conformance.clusters.local.api import LocalApi
from conformance.clusters.local.layout import NodeLayout
from conformance.clusters.local.logs import describe_log
from conformance.clusters.local.processes import Processes

READY_SECONDS = 60.0
NAMED_SECONDS = 10.0
"""From the first plugin that is registered; one command may start several drivers."""

SLICES_PATH = "/apis/resource.k8s.io/v1/resourceslices"

_REGISTERED = re.compile(
    r'^plugin_manager_total_plugins\{(?=[^}]*state="actual_state_of_world")'
    r'[^}]*socket_path="(?P<path>[^"]*)"[^}]*\} (?P<count>\S+)$',
    re.MULTILINE,
)


def wait_attached(
    processes: Processes,
    component: str,
    driver_name: str,
    node: NodeLayout,
    api: LocalApi,
    kubelet: LocalApi,
    known: Collection[str] = (),
) -> None:
    """Wait until the kubelet accepted the driver and the driver's slices are complete.

    Args:
        known: sockets of other drivers that the kubelet has registered.

    Raises:
        ClusterError: the driver exited, registers in a way that never leads there, or took more
            than `READY_SECONDS` for either; the message has the end of its log.
    """

    def registered() -> bool:
        if set(registered_plugins(kubelet)) - set(known):
            return True
        if why := registration.refusal(registration.offers(node.registrar)):
            log = processes.records()[component].spec.log
            raise ClusterError(f"{component}: {why} {describe_log(log)}")
        return False

    processes.wait_ready(
        component,
        registered,
        READY_SECONDS,
        f"waiting for the kubelet of {node.name} to register the driver",
    )
    wait_named(processes, component, driver_name, node.registrar)
    wait_published(processes, component, driver_name, node.name, api)


def wait_named(processes: Processes, component: str, driver_name: str, registrar: Path) -> None:
    """Wait until a driver of that name offers itself in a directory for registration sockets.

    Raises:
        ClusterError: the driver exited, or none does for `NAMED_SECONDS`.
    """

    def names() -> set[str]:
        return {offer.name for offer in registration.offers(registrar)}

    processes.wait_ready(
        component,
        lambda: driver_name in names(),
        NAMED_SECONDS,
        f"waiting for a driver {driver_name}, the name in its profile (--driver), to register; "
        f"what registers calls itself {', '.join(sorted(names())) or 'nothing'}",
    )


def wait_published(
    processes: Processes, component: str, driver_name: str, node_name: str, api: LocalApi
) -> None:
    """Wait until the driver's slices for a node are complete.

    Raises:
        ClusterError: the driver exited, or they are not for `READY_SECONDS`.
    """
    processes.wait_ready(
        component,
        lambda: published(api, driver_name, node_name),
        READY_SECONDS,
        f"waiting for complete ResourceSlices of driver {driver_name} for {node_name}",
    )


def registered_plugins(kubelet: LocalApi) -> dict[str, int]:
    """Registration socket -> how often its plugin is registered, as the kubelet counts."""
    text = kubelet.text("/metrics") or ""
    return {
        match["path"]: int(float(match["count"]))
        for match in _REGISTERED.finditer(text)
        if float(match["count"]) > 0
    }


def published(api: LocalApi, driver_name: str, node_name: str) -> bool:
    """Whether each of the driver's pools for this node is complete, and there is one."""
    document = api.get(SLICES_PATH)
    items = [] if document is None else document["items"]
    specs = [item["spec"] for item in items]
    return pools_complete(
        [one for one in specs if one["driver"] == driver_name and one.get("nodeName") == node_name]
    )


def pools_complete(specs: list[dict[str, Any]]) -> bool:
    """Whether these ResourceSlice specs are whole pools, and at least one.

    A pool is whole when all slices of its newest generation are there (resource.k8s.io/v1
    ResourcePool: generation, resourceSliceCount).
    """
    pools: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for spec in specs:
        pools[spec["pool"]["name"]].append(spec["pool"])
    for slices in pools.values():
        newest = max(pool["generation"] for pool in slices)
        current = [pool for pool in slices if pool["generation"] == newest]
        if len(current) < current[0]["resourceSliceCount"]:
            return False
    return bool(pools)
