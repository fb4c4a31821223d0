"""Claims that the pods of a PodGroup share (KEP-5729): who must have them, and who uses them."""

from __future__ import annotations

from typing import Any

import pytest

from conformance.compare.audit.once import audit, kubelet_findings
from conformance.compare.demands import derive_demand
from conformance.compare.judging import judge_undecided
from kube.values import Obj
from tests.compare import cluster
from tests.scenario.shipped import shipped

FOLDER = "extended/workload-resource-claims"
GROUP = {"apiGroup": "scheduling.k8s.io", "resource": "podgroups", "name": "job", "uid": "g"}


def member(name: str, **spec: Any) -> Obj:
    pod = cluster.pod(name, schedulingGroup={"podGroupName": "job"}, **spec)
    pod["metadata"]["uid"] = f"uid-{name}"
    return pod


def shared() -> Obj:
    claim = cluster.allocated("shared", "gpu-0")
    claim["status"]["reservedFor"] = [GROUP]
    return claim


@pytest.mark.parametrize(
    ("name", "owners"),
    [
        ("claim-is-made-for-the-group", {"job"}),
        ("only-what-matches-is-shared", {"job"}),
        ("without-its-gate-each-pod-has-its-own", {"worker-0", "worker-1"}),
        ("pods-wait-for-their-group", {"gang", "single", "lone"}),
        ("gang-gets-all-devices-or-none", {"worker-0", "worker-1", "worker-2", "single"}),
    ],
)
def test_a_claim_of_a_group_is_demanded_once(name: str, owners: set[str]) -> None:
    [chosen] = [item for item in shipped() if item.id == f"{FOLDER}/{name}"]
    wanted = derive_demand(chosen.scenario).claims
    assert {claim.owner for claim in wanted} == owners
    assert {claim.number for claim in wanted} == {1}


def test_a_pod_that_waits_with_its_group_was_not_missed() -> None:
    entries = [{"name": "gpu", "resourceClaimName": "claim-0"}]
    document = cluster.snapshot(claims=(cluster.claim(),))
    alone = cluster.pod("p", resourceClaims=entries)
    assert judge_undecided({"snapshot": document, "pod": alone}) is not None
    grouped = member("p", resourceClaims=entries)
    assert judge_undecided({"snapshot": document, "pod": grouped}) is None


def test_claims_of_groups_are_used_where_their_pods_are() -> None:
    pods = [member("a", nodeName="node-a"), member("b", nodeName="node-b")]
    document = cluster.snapshot(allocated=(shared(),), pods=tuple(pods))
    assert [*kubelet_findings(document, {"node-a": 1, "node-b": 1})] == []
    [finding] = kubelet_findings(document, {"node-c": 1})
    assert finding.subject == "node-c"
    assert "pods there use 0" in finding.message


def test_a_deleted_claim_that_a_group_has_is_not_left_over() -> None:
    claim = shared()
    claim["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    document = cluster.snapshot(allocated=(claim,), pods=(member("a"),))
    assert "not-deleted" not in {finding.rule for finding in audit(document)}
    claim["status"]["reservedFor"] = []
    assert "not-deleted" in {finding.rule for finding in audit(document)}
