"""Run what a cluster ran on a reference that is like it, for a comparison of what was seen."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from conformance.engine.events import ScenarioFinished
from conformance.engine.scenario_run import Setup
from conformance.engine.suite import run_suite
from conformance.errors import UsageError
from conformance.scenario.loader import LoadedScenario
from conformance.scenario.shape import ShapeNode
from conformance.targets.opening import Opened, open_reference
from reference_allocator.gates import gates_for_version


def on_reference(
    scenarios: Sequence[LoadedScenario], opened: Opened, run_id: str
) -> tuple[ScenarioFinished, ...]:
    """The same scenarios on a reference that behaves like the cluster's version.

    Where the cluster's driver is not the suite's own, the reference has the cluster's nodes and the
    ResourceSlices that the driver has published there.
    """
    options = opened.options
    version = opened.capabilities.kubernetes_version.removeprefix("v")
    try:
        known = gates_for_version(version)
    except ValueError as error:
        raise UsageError(f"--compare: the reference cannot be that cluster's: {error}") from None
    gates = opened.capabilities.feature_gates
    same = replace(
        options,
        target="reference",
        cluster=None,
        driver=options.profile_name,
        image="",
        kubernetes_version=version,
        # A cluster also tells gates that have nothing to do with DRA.
        feature_gates={
            name: gates[name] for name, gate in known.items() if name in gates and not gate.locked
        },
        record=False,
    )
    scope = opened.target.scope("default")
    published = scope.list("resource.k8s.io/v1", "ResourceSlice")
    nodes = [
        ShapeNode(name=node["metadata"]["name"], labels=node["metadata"].get("labels") or {})
        for node in scope.list("v1", "Node")
        if node["metadata"]["name"] in opened.capabilities.nodes
    ]
    scope.close()
    with open_reference(same, published, nodes=nodes) as reference:
        result = run_suite(scenarios, Setup(run_id, reference), ())
    if result.interrupted:
        raise KeyboardInterrupt
    return result.finished
