"""PodGroups and the claims that their pods share (KEP-4671, KEP-5729; gates of 1.37)."""

from __future__ import annotations

from typing import Any

import pytest

from conformance.scenario.shape import ShapeNode
from conformance.targets.reference import ReferenceTarget
from conformance.targets.reference.scope import ReferenceScope
from kube.errors import ApiError
from kube.values import FieldManager, Obj, Query, Ref, Request
from tests.kubesim import kit
from tests.kubesim.conftest import Open, new_scope

GROUPS = "scheduling.k8s.io/v1beta1"
GATES = {"GenericWorkload": True, "DRAWorkloadResourceClaims": True}
PROTECTION = "scheduling.k8s.io/podgroup-protection"
GPUS = 4
"""How many GPUs the reference's node has."""


def group(name: str, *, least: int = 0, **spec: Any) -> Obj:
    """A PodGroup; ``least``: of a gang; keywords: more of its spec."""
    policy: Obj = {"gang": {"minCount": least}} if least else {"basic": {}}
    return {
        "apiVersion": GROUPS,
        "kind": "PodGroup",
        "metadata": {"name": name},
        "spec": {"schedulingPolicy": policy, **spec},
    }


def member(name: str, of: str, **more: Any) -> Obj:
    return kit.pod(name, schedulingGroup={"podGroupName": of}, **more)


def shared(template: str = "t") -> Obj:
    return {"resourceClaims": [{"name": "gpu", "resourceClaimTemplateName": template}]}


def find_claims(scope: ReferenceScope) -> list[Obj]:
    return scope.find(Query(kit.DRA, "ResourceClaim"))


def find_group(scope: ReferenceScope, name: str = "g") -> Obj:
    return kit.get(scope, Ref(GROUPS, "PodGroup", name))


def node_of(scope: ReferenceScope, name: str) -> str | None:
    node: str | None = kit.get(scope, kit.pod_ref(name))["spec"].get("nodeName")
    return node


def users_of(claim: Obj) -> list[tuple[str, str]]:
    return [(one["resource"], one["name"]) for one in claim["status"].get("reservedFor") or []]


def prepare(target: ReferenceTarget) -> ReferenceScope:
    scope = new_scope(target)
    scope.create(kit.device_class())
    scope.create(kit.template("t"))
    return scope


@pytest.fixture
def scope(open_target: Open) -> ReferenceScope:
    """A cluster with the gates, a class, and a template of one GPU."""
    return prepare(open_target(feature_gates=GATES))


def test_without_its_gate_no_group_is_served_and_a_pod_loses_its_group(open_target: Open) -> None:
    scope = new_scope(open_target())
    with pytest.raises(ApiError, match="could not find the requested resource"):
        scope.create(group("g"))
    scope.create(member("p", "g"))
    assert "schedulingGroup" not in kit.get(scope, kit.pod_ref("p"))["spec"]
    assert node_of(scope, "p")


def test_without_the_gate_of_its_claims_a_group_has_none_and_each_pod_its_own(
    open_target: Open,
) -> None:
    scope = prepare(open_target(feature_gates={"GenericWorkload": True}))
    scope.create(group("g", **shared()))
    assert "resourceClaims" not in find_group(scope)["spec"]
    for name in ("p0", "p1"):
        scope.create(member(name, "g", templates={"gpu": "t"}))
    assert [users_of(claim) for claim in find_claims(scope)] == [
        [("pods", "p0")],
        [("pods", "p1")],
    ]


def test_before_1_37_no_pod_waits_for_a_group_that_nobody_can_make(open_target: Open) -> None:
    scope = prepare(open_target(kubernetes_version="1.36.0", feature_gates=GATES))
    with pytest.raises(ApiError, match="could not find the requested resource"):
        scope.create(group("g"))
    scope.create(member("p", "g", templates={"gpu": "t"}))
    assert node_of(scope, "p")
    [claim] = find_claims(scope)
    assert users_of(claim) == [("pods", "p")]


def test_one_claim_is_made_for_the_group_and_reserved_for_it(scope: ReferenceScope) -> None:
    scope.create(group("g", **shared()))
    [claim] = find_claims(scope)
    assert claim["metadata"]["ownerReferences"][0]["kind"] == "PodGroup"
    assert find_group(scope)["status"]["resourceClaimStatuses"] == [
        {"name": "gpu", "resourceClaimName": claim["metadata"]["name"]}
    ]
    assert "allocation" not in claim["status"]
    for name in ("p0", "p1"):
        scope.create(member(name, "g", templates={"gpu": "t"}))
        assert node_of(scope, name)
    [claim] = find_claims(scope)
    assert users_of(claim) == [("podgroups", "g")]
    for name in ("p0", "p1"):
        pod = kit.get(scope, kit.pod_ref(name))
        assert pod["status"]["phase"] == "Running"
        assert (
            pod["status"]["resourceClaimStatuses"][0]["resourceClaimName"]
            == (claim["metadata"]["name"])
        )


def test_a_claim_that_does_not_match_the_groups_is_the_pods_own(scope: ReferenceScope) -> None:
    scope.create(group("g", **shared()))
    scope.create(member("same", "g", templates={"gpu": "t"}))
    scope.create(member("other-name", "g", templates={"mine": "t"}))
    users = sorted(users_of(claim) for claim in find_claims(scope))
    assert users == [[("podgroups", "g")], [("pods", "other-name")]]


def test_a_named_claim_of_the_group_is_reserved_for_it_not_for_its_pods(
    scope: ReferenceScope,
) -> None:
    scope.create(kit.claim("c"))
    entry = {"name": "gpu", "resourceClaimName": "c"}
    scope.create(group("g", resourceClaims=[entry]))
    scope.create(member("p0", "g", claims={"gpu": "c"}))
    scope.create(member("p1", "g", claims={"gpu": "c"}))
    scope.create(kit.pod("stranger", claims={"gpu": "c"}))
    [claim] = find_claims(scope)
    assert users_of(claim) == [("podgroups", "g"), ("pods", "stranger")]


def test_pods_that_go_leave_the_reservation_and_the_group_takes_it_along(
    scope: ReferenceScope,
) -> None:
    scope.create(group("g", **shared()))
    scope.create(member("p", "g", templates={"gpu": "t"}))
    [before] = find_claims(scope)
    scope.delete(kit.pod_ref("p"), grace_seconds=0)
    kit.gone(scope, kit.pod_ref("p"))
    [claim] = find_claims(scope)
    assert users_of(claim) == [("podgroups", "g")]
    assert claim["status"]["allocation"] == before["status"]["allocation"]
    scope.delete(Ref(GROUPS, "PodGroup", "g"))
    kit.gone(scope, Ref(GROUPS, "PodGroup", "g"))
    kit.until(scope, lambda: not find_claims(scope))


def test_a_group_stays_until_its_last_pod_has_ended(scope: ReferenceScope) -> None:
    scope.create(group("g", **shared()))
    assert find_group(scope)["metadata"]["finalizers"] == [PROTECTION]
    scope.create(member("p", "g", templates={"gpu": "t"}))
    scope.delete(Ref(GROUPS, "PodGroup", "g"))
    assert "deletionTimestamp" in find_group(scope)["metadata"]
    [claim] = find_claims(scope)
    assert users_of(claim) == [("podgroups", "g")]
    scope.delete(kit.pod_ref("p"), grace_seconds=0)
    kit.gone(scope, Ref(GROUPS, "PodGroup", "g"))
    kit.until(scope, lambda: not find_claims(scope))


def test_the_finalizer_stays_when_an_applier_leaves_out_all_metadata_that_it_had(
    scope: ReferenceScope,
) -> None:
    ref, bare = Ref(GROUPS, "PodGroup", "g"), group("g")
    labelled = {**bare, "metadata": {"name": "g", "labels": {"a": "1"}}}
    for body in (labelled, bare):
        scope.send(Request("patch", ref, body, manager=FieldManager("m")))
    meta = find_group(scope)["metadata"]
    assert meta["finalizers"] == [PROTECTION]
    assert "labels" not in meta


def test_pods_wait_for_their_group_and_a_gang_for_enough_of_them(scope: ReferenceScope) -> None:
    scope.create(member("p0", "g", templates={"gpu": "t"}))
    assert not find_claims(scope)
    assert not kit.why_pending(scope, "p0")
    scope.create(group("g", least=2, **shared()))
    assert len(find_claims(scope)) == 1
    assert not node_of(scope, "p0")
    scope.create(member("p1", "g", templates={"gpu": "t"}))
    assert node_of(scope, "p0")
    assert node_of(scope, "p1")


def test_a_gang_gets_devices_for_as_many_as_it_needs_or_for_none(scope: ReferenceScope) -> None:
    scope.create(kit.template("two", kit.request(count=GPUS // 2)))
    scope.create(group("g", least=3))
    for index in range(3):
        scope.create(member(f"p{index}", "g", templates={"gpu": "two"}))
    assert [node_of(scope, f"p{index}") for index in range(3)] == [None] * 3
    assert all("allocation" not in claim["status"] for claim in find_claims(scope))
    assert kit.why_pending(scope, "p0").startswith("minCount (3) cannot be satisfied: 2 scheduled")
    assert "cannot allocate all claims" in kit.why_pending(scope, "p2")
    [condition] = find_group(scope)["status"]["conditions"]
    assert (condition["type"], condition["status"], condition["reason"]) == (
        "PodGroupInitiallyScheduled",
        "False",
        "Unschedulable",
    )


def test_the_first_pod_of_a_basic_group_does_not_wait_for_the_others(
    scope: ReferenceScope,
) -> None:
    scope.create(kit.template("all", kit.request(count=GPUS)))
    scope.create(group("g"))
    for index in range(2):
        scope.create(member(f"p{index}", "g", templates={"gpu": "all"}))
    assert node_of(scope, "p0")
    assert not node_of(scope, "p1")
    [condition] = find_group(scope)["status"]["conditions"]
    assert condition["status"] == "True"


def test_a_pod_of_another_priority_is_an_error_of_the_whole_group(scope: ReferenceScope) -> None:
    high: Obj = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass"}
    scope.create({**high, "metadata": {"name": "high"}, "value": 7})
    scope.create(group("g"))
    scope.create(member("p", "g", priorityClassName="high"))
    assert not node_of(scope, "p")
    assert kit.why_pending(scope, "p").endswith("group's priority, got 7 and 0")
    scope.create(group("h", priorityClassName="high"))
    scope.create(member("q", "h", priorityClassName="high"))
    assert node_of(scope, "q")


def test_a_claim_where_no_pod_of_its_group_can_run_is_allocated_elsewhere(
    open_target: Open,
) -> None:
    nodes = [ShapeNode(name=name, gpus="t4x2") for name in ("a", "b")]
    scope = prepare(open_target(feature_gates=GATES, nodes=nodes))
    scope.create(group("g", **shared()))
    scope.create(member("p0", "g", templates={"gpu": "t"}))
    first = node_of(scope, "p0")
    assert first is not None
    scope.delete(kit.pod_ref("p0"), grace_seconds=0)
    kit.gone(scope, kit.pod_ref("p0"))
    scope.patch(Ref("v1", "Node", first), {"spec": {"unschedulable": True}})
    scope.create(member("p1", "g", templates={"gpu": "t"}))
    kit.until(scope, lambda: node_of(scope, "p1"))
    assert node_of(scope, "p1") != first
    [claim] = find_claims(scope)
    assert users_of(claim) == [("podgroups", "g")]


def test_a_bound_pod_of_a_group_reserves_for_the_group(scope: ReferenceScope) -> None:
    scope.create(group("g", **shared()))
    scope.create(member("p0", "g", templates={"gpu": "t"}))
    [claim] = find_claims(scope)
    ref = kit.claim_ref(claim["metadata"]["name"])
    scope.patch(ref, {"status": {"reservedFor": None}}, subresource="status")
    kit.until(scope, lambda: users_of(kit.get(scope, ref)) == [("podgroups", "g")])
