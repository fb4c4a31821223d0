"""Run what a cluster ran on a reference that is like it, for a comparison of what was seen."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from conformance.engine.setup import Setup
from conformance.engine.suite import run_suite
from conformance.results.events.scenario import ScenarioFinished
from conformance.scenario.loader import LoadedScenario
from conformance.scenario.shape import ShapeNode
from conformance.seam.overlaps import exclusive_devices
from conformance.seam.scope import Scope
from conformance.targets.opening.target import Opened, open_reference
from kube.base.errors import UsageError
from kube.nodes import RUN_LABEL
from kube.values import Obj, Query
from reference_allocator.gates import gates_for_version


def run_on_reference(
    scenarios: Sequence[LoadedScenario], opened: Opened, run_id: str
) -> tuple[ScenarioFinished, ...]:
    """Run the same scenarios on a reference that behaves like the cluster's version.

    Where the cluster's driver is not the suite's own, the reference has the cluster's nodes and the
    ResourceSlices that the driver has published there.
    """
    options = opened.options
    version = opened.capabilities.kubernetes_version.removeprefix("v")
    try:
        version_gates = gates_for_version(version)
    except ValueError as error:
        raise UsageError(f"--compare: the reference cannot be that cluster's: {error}") from None
    gates = opened.capabilities.feature_gates
    like_cluster = replace(
        options,
        target="reference",
        cluster=None,
        driver=options.profile_name,
        other_driver=options.other_name,
        image="",
        kubernetes_version=version,
        scheduler_kubernetes=opened.capabilities.scheduler_version,
        # A cluster also reports gates that have nothing to do with DRA.
        feature_gates={
            name: gates[name]
            for name, gate in version_gates.items()
            if name in gates and not gate.locked
        },
        record=False,
        scheduler_command=(),
    )
    scope = opened.target.scope("default")
    published = scope.find(Query("resource.k8s.io/v1", "ResourceSlice"))
    nodes = _nodes(opened, scope, published)
    scope.close()
    with open_reference(like_cluster, published, nodes=nodes) as reference:
        result = run_suite(scenarios, Setup(run_id, reference), ())
    if result.interrupted:
        raise KeyboardInterrupt
    return result.finished


def _nodes(opened: Opened, scope: Scope, published: Sequence[Obj]) -> list[ShapeNode]:
    """Return the cluster's nodes that pods may use, with the devices that others have there now."""
    spaces = scope.find(Query("v1", "Namespace"))
    ours = {
        namespace["metadata"]["name"] for namespace in spaces if RUN_LABEL in _labels(namespace)
    }
    used = {
        device
        for claim in scope.snapshot()["allocated"]
        if claim["metadata"].get("namespace") not in ours
        for device in exclusive_devices(claim)
    }
    driver = opened.options.profile().driver
    held: dict[str, set[str]] = {}
    for spec in (item["spec"] for item in published):
        if spec["driver"] == driver and spec.get("nodeName"):
            held.setdefault(spec["nodeName"], set()).update(
                device["name"]
                for device in spec.get("devices") or ()
                if (driver, spec["pool"]["name"], device["name"]) in used
            )
    return [
        ShapeNode(name=name, labels=_labels(node), held=tuple(sorted(held.get(name, ()))))
        for node in scope.find(Query("v1", "Node"))
        if (name := node["metadata"]["name"]) in opened.capabilities.nodes
    ]


def _labels(obj: Obj) -> dict[str, str]:
    return dict(obj["metadata"].get("labels") or {})
