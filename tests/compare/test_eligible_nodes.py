from __future__ import annotations

from typing import Any

import pytest

from conformance.compare.evidence import Obj, eligible_nodes
from tests.compare.cluster import allocated, node, pod, snapshot

TAINT = {"key": "gpu", "value": "yes", "effect": "NoSchedule"}


def affinity(**term: Any) -> Obj:
    required = "requiredDuringSchedulingIgnoredDuringExecution"
    return {"nodeAffinity": {required: {"nodeSelectorTerms": [term]}}}


def nodes(*, waiting: Obj | None = None, allocated_claims: tuple[Obj, ...] = ()) -> tuple[str, ...]:
    plain, tainted, labelled = node("plain"), node("tainted", taints=[TAINT]), node("labelled")
    labelled["metadata"]["labels"] = {"zone": "b"}
    state = snapshot(nodes=(plain, tainted, labelled), allocated=allocated_claims)
    return eligible_nodes(state, waiting)


def test_without_a_pod_a_taint_counts_for_all() -> None:
    assert nodes() == ("plain", "labelled")


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        pytest.param({}, ("plain", "labelled"), id="a plain pod"),
        pytest.param({"nodeSelector": {"zone": "b"}}, ("labelled",), id="node selector"),
        pytest.param({"nodeName": "plain"}, ("plain",), id="node name"),
        pytest.param(
            {"tolerations": [{"operator": "Exists"}]},
            ("plain", "tainted", "labelled"),
            id="tolerates all",
        ),
        pytest.param(
            {"tolerations": [{"key": "gpu", "value": "yes"}]},
            ("plain", "tainted", "labelled"),
            id="tolerates by value",
        ),
        pytest.param(
            {"tolerations": [{"key": "gpu", "value": "no"}]},
            ("plain", "labelled"),
            id="tolerates another value",
        ),
        pytest.param(
            {"tolerations": [{"key": "gpu", "operator": "Exists", "effect": "NoExecute"}]},
            ("plain", "labelled"),
            id="tolerates another effect",
        ),
        pytest.param(
            {"affinity": affinity(matchExpressions=[{"key": "zone", "operator": "DoesNotExist"}])},
            ("plain",),
            id="affinity",
        ),
        pytest.param(
            {"affinity": affinity(matchExpressions=[{"key": "zone", "operator": "Near"}])},
            (),
            id="an affinity that does not parse",
        ),
    ],
)
def test_a_node_counts_if_it_suits_the_pod(spec: Obj, expected: tuple[str, ...]) -> None:
    assert nodes(waiting=pod(**spec)) == expected


def test_a_cordoned_node_counts_for_a_pod_that_tolerates_it() -> None:
    state = snapshot(nodes=(node("cordoned", unschedulable=True),))
    key = "node.kubernetes.io/unschedulable"
    tolerant = pod(tolerations=[{"key": key, "operator": "Exists"}])
    assert eligible_nodes(state, pod()) == ()
    assert eligible_nodes(state, tolerant) == ("cordoned",)


def test_a_claim_that_the_pod_has_already_ties_it_to_its_nodes() -> None:
    held = allocated("shared", "gpu-0")
    held["status"]["allocation"]["nodeSelector"]["nodeSelectorTerms"] = [
        {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["labelled"]}]}
    ]
    named = pod(resourceClaims=[{"name": "a", "resourceClaimName": "shared"}])
    assert nodes(waiting=named, allocated_claims=(held,)) == ("labelled",)
    generated = pod(resourceClaims=[{"name": "a", "resourceClaimTemplateName": "t"}])
    generated["status"] = {"resourceClaimStatuses": [{"name": "a", "resourceClaimName": "shared"}]}
    assert nodes(waiting=generated, allocated_claims=(held,)) == ("labelled",)
    other = pod(resourceClaims=[{"name": "a", "resourceClaimName": "another"}])
    assert nodes(waiting=other, allocated_claims=(held,)) == ("plain", "labelled")
