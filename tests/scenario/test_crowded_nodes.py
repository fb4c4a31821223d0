"""Scenarios of the node tier pass where not all is theirs, and what is wrong is seen there."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest

from conformance.engine.setup import Setup
from conformance.engine.suite import run_suite
from conformance.results.events.scenario import Outcome
from conformance.scenario.shape import ShapeNode
from conformance.targets.opening.options import TargetOptions
from conformance.targets.opening.target import Opened
from conformance.targets.reference.device_source import DescribedDevices
from conformance.targets.reference.scope import ReferenceScope
from conformance.targets.reference.target import ReferenceTarget
from kube.values import Obj
from tests.mutants import mutant
from tests.scenario.shipped import shipped
from tests.targets.devices import (
    PARTITIONS,
    PROFILE,
    TAINT,
    TWO_NODES,
    change_node,
    gpus,
    not_ready,
    used_by_somebody,
)

FREED = "core/cleanup-waiting-pod-gets-freed-device"
ISOLATION = "core/isolation-pod-without-claim"
SHARED = "core/shared-claim-released-after-last-pod"
SPEC = PROFILE.spec.model_copy(update={"tolerations": ({"key": "k", "operator": "Exists"},)})
TOLERANT = PROFILE.model_copy(update={"spec": SPEC})
Do = Callable[[ReferenceScope], object]


def on(
    target: ReferenceTarget, name: str, do: Do = lambda scope: None
) -> tuple[Outcome, str, set[str]]:
    """What became of a scenario after something was done to the cluster; nodes of its pods."""
    scope = target.scope("others")
    scope.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "others"}})
    do(scope)
    [loaded] = [item for item in shipped() if item.id == name]
    options = TargetOptions(record=True)
    opened = Opened.of(target, TOLERANT.for_reference(), "image", options)
    [finished] = run_suite([loaded], Setup("crowded", opened), ()).finished
    return finished.outcome, finished.message, {str(one["node"]) for one in finished.decisions}


def cluster(slices: Sequence[Obj], *faults: str) -> ReferenceTarget:
    nodes = (ShapeNode(name="n0"), ShapeNode(name="n1"))
    return mutant(*faults, nodes=nodes, devices=DescribedDevices(TOLERANT, slices))


@pytest.mark.parametrize("name", [FREED, ISOLATION, SHARED])
@pytest.mark.parametrize(
    ("slices", "do"),
    [
        pytest.param(TWO_NODES, used_by_somebody, id="somebody has a device"),
        pytest.param(TWO_NODES, change_node(taints=[TAINT]), id="tainted node"),
        pytest.param(TWO_NODES, change_node(unschedulable=True), id="cordoned node"),
        pytest.param(TWO_NODES, not_ready, id="node that is not ready"),
        pytest.param([gpus("n0", "a"), gpus("n1", "b", taints=[TAINT])], None, id="tainted device"),
        pytest.param([gpus("n0", *(f"gpu-{n}" for n in range(70)))], None, id="many devices"),
        pytest.param(PARTITIONS, None, id="partitions"),
    ],
)
def test_what_is_not_theirs_is_no_failure(name: str, slices: list[Obj], do: Do | None) -> None:
    with cluster(slices) as target:
        outcome, message, _ = on(target, name, do or (lambda scope: None))
    assert outcome is Outcome.PASSED, message


@pytest.mark.parametrize("do", [change_node(unschedulable=True), not_ready])
def test_pods_do_not_go_to_nodes_where_nothing_may_run(do: Do) -> None:
    with cluster(TWO_NODES) as target:
        outcome, message, nodes = on(target, SHARED, do)
    assert (outcome, nodes) == (Outcome.PASSED, {"n1"}), message


def test_a_pod_without_a_claim_is_looked_at_on_the_node_with_devices() -> None:
    with cluster([gpus("n1", "a")], "leaks-to-other-pods") as target:
        outcome, message, _ = on(target, ISOLATION)
    assert outcome is Outcome.FAILED, message


@pytest.mark.parametrize("fault", ["claims-outlive-pods", "double-allocation"])
def test_a_device_that_is_not_freed_or_not_waited_for_is_seen_on_two_nodes(fault: str) -> None:
    with cluster(TWO_NODES, fault) as target:
        outcome, message, _ = on(target, FREED)
    assert outcome is Outcome.FAILED, message
