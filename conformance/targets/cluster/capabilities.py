"""What a cluster is and can do, asked of its API server and of nothing else."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from conformance.clusters.kubeconfig import is_ready
from conformance.kubeapi.api import Api
from conformance.kubeapi.connection import Connection
from conformance.targets.base import ApiError, Capabilities, Obj, TargetError, Tier
from conformance.targets.simulation import simulated_devices

_GATE = re.compile(rb'^kubernetes_feature_enabled\{name="([^"]+)"[^}]*\} ([01])', re.MULTILINE)
_VERSION = re.compile(r"v?(\d+\.\d+\.\d+)")


def discover_capabilities(
    api: Api,
    *,
    nodes: Sequence[str],
    driver: str | None,
    abilities: Iterable[str],
    versions: Mapping[str, str],
) -> Capabilities:
    """What scenarios may count on.

    Args:
        api: where to ask.
        nodes: nodes with a kubelet that the suite may use; those that are ready count.
        driver: the driver of the ``node`` tier.
        abilities: what the cluster's source adds to it.
        versions: what the cluster's source knows of its parts and no node tells.

    Raises:
        ApiError: something that is needed may not be read.
        TargetError: no answer.
    """
    git_version = str(api.connection.request("GET", "/version").get("gitVersion", ""))
    ready = [node for node in api.list(api.discovery.find("v1", "Node")) if is_ready(node)]
    usable = [node for node in ready if node["metadata"]["name"] in nodes]
    slices, claims = _devices(api, driver)
    simulated = simulated_devices(driver, slices)
    tiers: set[Tier] = {"allocation"}
    can = set(abilities)
    if usable:
        can.add("image")
        if driver is not None:
            tiers.add("node")
            if not simulated:
                tiers.add("device")
    matched = _VERSION.match(git_version)
    return Capabilities(
        kubernetes_version=matched[1] if matched else git_version,
        served_apis=api.discovery.served(),
        tiers=frozenset(tiers),
        driver=driver,
        devices=(
            free_devices(driver, slices, claims, [node["metadata"]["name"] for node in ready])
            if driver
            else 0
        ),
        nodes=tuple(sorted(node["metadata"]["name"] for node in usable)),
        abilities=frozenset(can),
        feature_gates=_gates(api.connection),
        simulated=tuple(simulated),
        versions={"kubernetes": git_version, **_node_versions(usable), **versions},
    )


def _gates(connection: Connection) -> dict[str, bool]:
    """The API server's feature gates; empty where its metrics may not be read."""
    try:
        text = connection.text("GET", "/metrics", accept="text/plain", patience=5.0)
    except (ApiError, TargetError):
        return {}
    return {name.decode(): value == b"1" for name, value in _GATE.findall(text)}


def _devices(api: Api, driver: str | None) -> tuple[list[Obj], list[Obj]]:
    """All ResourceSlices and ResourceClaims; nothing where no driver is asked about."""
    if driver is None:
        return [], []
    find, version = api.discovery.find, api.discovery.dra_version()
    return api.list(find(version, "ResourceSlice")), api.list(find(version, "ResourceClaim"))


def free_devices(
    driver: str, slices: Iterable[Obj], claims: Iterable[Obj], nodes: Iterable[str]
) -> int:
    """How many of a driver's devices a pod could get now.

    Counts devices of each pool's newest generation, on the given nodes or bound to none, without a
    taint that keeps pods away, and not allocated to a claim.
    """
    ready = set(nodes)
    specs = [s["spec"] for s in slices if s["spec"].get("driver") == driver]
    newest: dict[str, int] = {}
    for spec in specs:
        pool = spec["pool"]
        newest[pool["name"]] = max(newest.get(pool["name"], 0), pool.get("generation", 0))
    free: set[tuple[str, str]] = set()
    for spec in specs:
        pool = spec["pool"]
        node = spec.get("nodeName")
        if pool.get("generation", 0) < newest[pool["name"]] or (node and node not in ready):
            continue
        free |= {(pool["name"], d["name"]) for d in spec.get("devices") or [] if not _tainted(d)}
    for claim in claims:
        allocation: dict[str, Any] = (claim.get("status") or {}).get("allocation") or {}
        for result in (allocation.get("devices") or {}).get("results") or []:
            if result.get("driver") == driver and not result.get("adminAccess"):
                free.discard((result["pool"], result["device"]))
    return len(free)


def _tainted(device: Obj) -> bool:
    body = device.get("basic") or device  # v1beta1 nests
    return any(
        taint.get("effect") in ("NoSchedule", "NoExecute") for taint in body.get("taints") or []
    )


def _node_versions(nodes: Iterable[Obj]) -> dict[str, str]:
    found: dict[str, set[str]] = {}
    for node in nodes:
        info = (node.get("status") or {}).get("nodeInfo") or {}
        runtime, _, version = info.get("containerRuntimeVersion", "").partition("://")
        for name, value in (
            ("kubelet", info.get("kubeletVersion")),
            (runtime, version),
            ("kernel", info.get("kernelVersion")),
            ("os", info.get("osImage")),
        ):
            if name and value:
                found.setdefault(name, set()).add(value)
    return {name: ", ".join(sorted(values)) for name, values in found.items()}
