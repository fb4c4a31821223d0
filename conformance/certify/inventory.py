"""What a cluster consists of, as the snapshots in a result file show it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

from conformance.certify.contradictions import snapshots
from conformance.certify.model import Devices, Inventory
from conformance.clusters.base import RUN_LABEL
from conformance.engine.events.result import RunResult
from conformance.engine.events.run import RunStarted
from conformance.text import cut

UNKNOWN = "unknown"


def inventory(result: RunResult) -> Inventory | None:
    """Nodes and devices in all snapshots together; None where there is no snapshot.

    A snapshot of another form than the suite's adds nothing: it is reported where it is judged.
    """
    nodes: set[str] = set()
    holding: set[str] = set()
    devices: dict[tuple[str, str], str] = {}
    some = False
    for snapshot in (item for event in result.finished for item in snapshots(event)):
        some = True
        try:
            names = list(_nodes(snapshot))
            published = list(_devices(result.run, snapshot))
        except (AttributeError, KeyError, TypeError):
            continue
        nodes.update(names)
        for node, pool, device, product in published:
            holding.add(node)
            devices[pool, device] = product
    if not some:
        return None
    counts = Counter(devices.values())
    return Inventory(
        nodes=len(nodes),
        nodes_with_devices=len(holding & nodes),
        devices=tuple(Devices(product=name, count=counts[name]) for name in sorted(counts)),
    )


def _nodes(snapshot: Mapping[str, Any]) -> Iterator[str]:
    for node in snapshot["nodes"]:
        if RUN_LABEL not in (node["metadata"].get("labels") or {}):
            yield str(node["metadata"]["name"])


def _devices(run: RunStarted, snapshot: Mapping[str, Any]) -> Iterator[tuple[str, str, str, str]]:
    """Node, pool, name and product of each device of the run's driver."""
    attribute = _product_attribute(run)
    for item in snapshot["slices"]:
        spec = item["spec"]
        if spec["driver"] != run.driver:
            continue
        for device in spec.get("devices") or ():
            # v1beta1 has the attributes one level deeper.
            attributes = (device.get("basic") or device).get("attributes") or {}
            value = attributes.get(attribute) or attributes.get(f"{run.driver}/{attribute}") or {}
            product = cut(str(value.get("string", UNKNOWN)), 100)
            yield str(spec.get("nodeName", "")), str(spec["pool"]["name"]), device["name"], product


def _product_attribute(run: RunStarted) -> str:
    try:
        return str((run.driver_profile or {})["spec"]["attributes"]["model"])
    except (KeyError, TypeError):
        return "productName"
