from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from conformance.engine.run.steps import hollow_node
from conformance.targets.reference.scope import ReferenceScope
from conformance.targets.reference.target import ReferenceTarget
from kube.values import Obj, Query, Ref
from kubesim.world import KUBERNETES
from reference_allocator.allocator import Allocator
from reference_allocator.snapshot import Snapshot
from tests.kubesim import kit
from tests.kubesim.conftest import Open, new_scope

DRIVER = "d.example.com"
PREEMPTION = "preemption: 0/{0} nodes are available: {0} Preemption is not helpful for scheduling."


def hollow(scope: ReferenceScope, *devices: str, name: str = "node-a", **labels: str) -> None:
    """A node without a kubelet, with devices of a driver that does not run."""
    scope.create(kit.node(name, **labels))
    published = [{"name": device} for device in devices]
    scope.create(kit.resource_slice(name, name, DRIVER, *published))
    expression = f"device.driver == '{DRIVER}'"
    if scope.get(Ref(kit.DRA, "DeviceClass", "synthetic")) is None:
        selectors = [{"cel": {"expression": expression}}]
        scope.create({**kit.device_class("synthetic"), "spec": {"selectors": selectors}})


def synthetic(name: str, **exactly: Any) -> Obj:
    return kit.claim(name, kit.request("r", "synthetic", **exactly))


@pytest.fixture
def bare(open_target: Open) -> ReferenceScope:
    """A cluster without nodes."""
    return new_scope(open_target(nodes=()))


def test_without_nodes_the_pod_says_so_in_a_condition_with_the_fields_of_a_real_one(
    bare: ReferenceScope,
) -> None:
    bare.create(kit.pod("p"))
    assert kit.events(bare, "FailedScheduling") == ["no nodes available to schedule pods"]
    [condition] = kit.get(bare, kit.pod_ref("p"))["status"]["conditions"]
    assert condition == {
        "type": "PodScheduled",
        "observedGeneration": 1,
        "status": "False",
        "reason": "Unschedulable",
        "message": "no nodes available to schedule pods",
        "lastProbeTime": None,
        "lastTransitionTime": "2026-01-01T00:00:00Z",
    }


def test_missing_class_of_an_alternative_names_the_subrequest(bare: ReferenceScope) -> None:
    bare.create(kit.node("node-a"))
    wanted = {"name": "r", "firstAvailable": [{"name": "s", "deviceClassName": "nope"}]}
    bare.create(kit.claim("c", wanted))
    bare.create(kit.pod("p", claims={"g": "c"}))
    assert "request r/s: device class nope does not exist" in kit.why_pending(bare, "p")


def test_reasons_of_nodes_are_counted(bare: ReferenceScope) -> None:
    hollow(bare, "d0", pool="a")
    hollow(bare, "d0", name="node-b", pool="b")
    bare.create(synthetic("c", count=2))
    bare.create(kit.pod("p", claims={"g": "c"}, nodeSelector={"pool": "b"}))
    assert kit.why_pending(bare, "p") == (
        "0/2 nodes are available: 1 cannot allocate all claims, 1 node(s) didn't match Pod's "
        "node affinity/selector. " + PREEMPTION.format(2)
    )


def test_expression_that_fails_is_an_error_of_the_scheduler(bare: ReferenceScope) -> None:
    hollow(bare, "d0")
    selector = {"cel": {"expression": f"device.attributes['{DRIVER}'].nope == 1"}}
    bare.create(synthetic("c", selectors=[selector]))
    bare.create(kit.pod("p", claims={"g": "c"}))
    [condition] = kit.get(bare, kit.pod_ref("p"))["status"]["conditions"]
    assert condition["reason"] == "SchedulerError"
    assert condition["message"] == (
        'running "DynamicResources" filter plugin: claim ns/c: selector #0 on device '
        f"{DRIVER}/node-a/d0: CEL runtime error: no such key: nope. consider using CEL optional "
        "chaining (.? followed by orValue()) or guarding the check with has() for optional fields"
    )


@pytest.mark.parametrize(
    ("deleted", "conditions"),
    [
        (kit.claim_ref("c"), []),
        # A class on its way out is a class (validateDeviceClass looks whether there is one).
        (Ref(kit.DRA, "DeviceClass", "synthetic"), ["PodScheduled"]),
    ],
    ids=["claim", "class"],
)
def test_a_pod_whose_claim_is_being_deleted_is_not_looked_at(
    bare: ReferenceScope, deleted: Ref, conditions: list[str]
) -> None:
    hollow(bare, "d0")
    bare.create(synthetic("c"))
    bare.patch(deleted, {"metadata": {"finalizers": ["example.com/stays"]}})
    bare.delete(deleted)
    bare.create(kit.pod("p", claims={"g": "c"}))
    status = kit.get(bare, kit.pod_ref("p"))["status"]
    assert [condition["type"] for condition in status.get("conditions") or ()] == conditions
    assert len(bare.find(Query("v1", "Event"))) == len(conditions)


def fill(scope: ReferenceScope, claim: str) -> None:
    """Let consumers of a kind that nobody knows have a claim as often as it may be had."""
    results = [{"request": "r", "driver": DRIVER, "pool": "node-a", "device": "d0"}]
    users = [
        {"apiGroup": "x.example.com", "resource": "workers", "name": f"w{n}", "uid": f"u{n}"}
        for n in range(256)
    ]
    status = {"allocation": {"devices": {"results": results}}, "reservedFor": users}
    scope.patch(kit.claim_ref(claim), {"status": status}, "status")


def test_the_257th_consumer_is_an_error_of_the_scheduler_that_is_tried_again(
    bare: ReferenceScope,
) -> None:
    hollow(bare, "d0", "d1")
    bare.create(synthetic("full"))
    bare.create(synthetic("new"))
    fill(bare, "full")
    bare.create(kit.pod("p", claims={"g": "new", "h": "full"}))
    [condition] = kit.get(bare, kit.pod_ref("p"))["status"]["conditions"]
    assert condition["reason"] == "SchedulerError"
    assert condition["message"] == (
        'running PreBind plugin "DynamicResources": add reservation to claim ns/full: '
        'ResourceClaim.resource.k8s.io "full" is invalid: status.reservedFor: Too many: 257: '
        "must have at most 256 items"
    )
    new = kit.get(bare, kit.claim_ref("new"))["status"]
    assert "allocation" in new  # as it was written before the refusal
    assert "reservedFor" not in new
    attempts = []
    for _ in range(30):
        attempts.append(sum(event["count"] for event in bare.find(Query("v1", "Event"))))
        bare.pause(1)
    assert attempts == [1, 2, 2, *[3] * 4, *[4] * 8, *[5] * 10, *[6] * 5]


NODE_CASES: dict[str, tuple[Obj, Obj, str]] = {
    "cordoned": ({"spec": {"unschedulable": True}}, {}, "1 node(s) were unschedulable"),
    "tainted": (
        {"spec": {"taints": [{"key": "a", "effect": "NoSchedule"}]}},
        {},
        "1 node(s) had untolerated taint(s)",
    ),
    "not ready": (
        {"status": {"conditions": [], "allocatable": {"pods": "10"}}},
        {},
        "1 node(s) had untolerated taint(s)",
    ),
    "without the label of the affinity": (
        {},
        {
            "affinity": {
                "nodeAffinity": {
                    "requiredDuringSchedulingIgnoredDuringExecution": {
                        "nodeSelectorTerms": [
                            {"matchExpressions": [{"key": "x", "operator": "Exists"}]}
                        ]
                    }
                }
            }
        },
        "1 node(s) didn't match Pod's node affinity/selector",
    ),
    "too small": (
        {},
        {"containers": [kit.container(resources={"requests": {"cpu": "100"}})]},
        "1 Insufficient cpu",
    ),
    "without room for pods": (
        {"status": {"allocatable": {}, "conditions": [{"type": "Ready", "status": "True"}]}},
        {},
        "1 Too many pods",
    ),
    "without the extended resource": (
        {},
        {"containers": [kit.container(resources={"limits": {"example.com/x": 1}})]},
        "1 Insufficient example.com/x",
    ),
}


@pytest.mark.parametrize("case", NODE_CASES)
def test_node_is_not_used_when(bare: ReferenceScope, case: str) -> None:
    of_node, of_pod, reason = NODE_CASES[case]
    bare.create({**kit.node("node-a"), **of_node})
    pod = kit.pod("p")
    pod["spec"].update(of_pod)
    bare.create(pod)
    assert kit.why_pending(bare, "p").startswith(f"0/1 nodes are available: {reason}. ")


def test_pod_without_tolerations_keeps_off_nodes_that_scenarios_bring(
    scope: ReferenceScope,
) -> None:
    scope.create(hollow_node("a-comes-first", "a"))
    scope.create(kit.pod("p"))
    kit.runs(scope, "p")
    assert kit.get(scope, kit.pod_ref("p"))["spec"]["nodeName"] == kit.NODE
    scope.create(kit.pod("q", tolerations=[{"operator": "Exists"}]))
    assert kit.get(scope, kit.pod_ref("q"))["spec"]["nodeName"] == "a-comes-first"


def test_pod_on_a_hollow_node_never_runs_and_goes_only_by_force(bare: ReferenceScope) -> None:
    hollow(bare, "d0")
    bare.create(synthetic("c"))
    bare.create(kit.pod("p", claims={"g": "c"}))
    bare.pause(120)
    assert kit.phase(bare, "p") == "Pending"
    bare.delete(kit.pod_ref("p"))
    bare.pause(120)
    assert "deletionTimestamp" in kit.get(bare, kit.pod_ref("p"))["metadata"]
    assert kit.devices(kit.get(bare, kit.claim_ref("c"))) == ["d0"]
    bare.delete(kit.pod_ref("p"), grace_seconds=0)
    assert bare.get(kit.pod_ref("p")) is None
    assert kit.devices(kit.get(bare, kit.claim_ref("c"))) == []


def test_node_takes_its_slices_along(open_target: Open) -> None:
    scope = new_scope(open_target())
    assert len(scope.find(Query(kit.DRA, "ResourceSlice"))) == 1
    scope.delete(Ref("v1", "Node", kit.NODE))
    assert scope.find(Query(kit.DRA, "ResourceSlice")) == []


def test_binding_does_not_count_as_a_change_of_the_spec(bare: ReferenceScope) -> None:
    bare.create(kit.node("node-a"))
    bare.create(kit.pod("p"))
    assert kit.get(bare, kit.pod_ref("p"))["metadata"]["generation"] == 1
    bare.delete(kit.pod_ref("p"))
    assert kit.get(bare, kit.pod_ref("p"))["metadata"]["generation"] == 2


def test_decision_can_be_taken_again_from_its_snapshot(scope: ReferenceScope) -> None:
    scope.create(kit.claim("first"))
    scope.create(kit.pod("first", claims={"g": "first"}))
    scope.create(kit.claim("second", kit.request(count=2)))
    scope.create(kit.pod("second", claims={"g": "second"}))
    kit.runs(scope, "first", "second")
    decisions = scope.decisions()
    assert [(item.pod, item.node) for item in decisions] == [
        ("first", kit.NODE),
        ("second", kit.NODE),
    ]
    for decision in decisions:
        snapshot = Snapshot.from_dict(json.loads(json.dumps(decision.snapshot)))
        assert [c["metadata"]["name"] for c in snapshot.claims] == [decision.pod]
        [node] = snapshot.nodes
        outcome = Allocator.from_snapshot(snapshot).allocate(node, snapshot.claims)
        [written] = decision.allocations
        # The time is the binder's, not the allocator's.
        decided = {key: item for key, item in written.items() if key != "allocationTimestamp"}
        assert outcome.allocations == (decided,)
        assert "allocation" not in decision.claims[0]["status"]


@pytest.mark.parametrize("fault", [None, "no-node-selector"], ids=["sound", "defective"])
def test_decision_tells_what_was_written_to_the_claim(
    scope: ReferenceScope, faulty: Callable[[str], ReferenceScope], fault: str | None
) -> None:
    seen = scope if fault is None else faulty(fault)
    seen.create(kit.claim("c"))
    seen.create(kit.pod("p", claims={"g": "c"}))
    [decision] = seen.decisions()
    written = kit.get(seen, kit.claim_ref("c"))["status"]["allocation"]
    assert decision.allocations == (written,)
    assert ("nodeSelector" in written) is (fault is None)


def test_snapshot_has_the_unallocated_claims_of_the_namespace(
    target: ReferenceTarget, scope: ReferenceScope
) -> None:
    scope.create(kit.claim("used"))
    scope.create(kit.pod("p", claims={"g": "used"}))
    kit.runs(scope, "p")
    scope.create(kit.claim("free"))
    other = new_scope(target, "other")
    other.create(kit.claim("elsewhere"))
    snapshot = Snapshot.from_dict(scope.snapshot())
    assert [c["metadata"]["name"] for c in snapshot.claims] == ["free"]
    assert [c["metadata"]["name"] for c in snapshot.allocated] == ["used"]
    assert snapshot.kubernetes == KUBERNETES
