"""What a pod and its claims say of a decision that is on its way."""

from __future__ import annotations

from typing import Any

from conformance.fuzz.cases import Case
from conformance.fuzz.isolate_problems import ProblemScope
from conformance.fuzz.problem import Problem, pod_of
from conformance.targets.cluster.snapshots import remove_allocation

VERSION = "1.37.1"
RESULT = {"request": "r", "driver": "d.example.com", "pool": "fabric", "device": "dev-0"}
EVERYWHERE = {"nodeSelectorTerms": [{"matchExpressions": [{"key": "a", "operator": "Exists"}]}]}
CLASS = {"cel": {"expression": 'device.driver == "d.example.com"'}}


def objects() -> list[dict[str, Any]]:
    """Two nodes that reach one device, and a claim for it that has it."""
    nodes = [
        {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": {"a": "b"}}}
        for name in ("node-0", "node-1")
    ]
    dra: list[dict[str, Any]] = [
        {"kind": "DeviceClass", "metadata": {"name": "c"}, "spec": {"selectors": [CLASS]}},
        {
            "kind": "ResourceSlice",
            "metadata": {"name": "s"},
            "spec": {
                "driver": "d.example.com",
                "nodeSelector": EVERYWHERE,
                "pool": {"name": "fabric", "generation": 1, "resourceSliceCount": 1},
                "devices": [{"name": "dev-0"}],
            },
        },
        {
            "kind": "ResourceClaim",
            "metadata": {"name": "claim", "namespace": "default", "uid": "1"},
            "spec": {
                "devices": {
                    "requests": [
                        {
                            "name": "r",
                            "exactly": {
                                "deviceClassName": "c",
                                "allocationMode": "ExactCount",
                                "count": 1,
                            },
                        }
                    ]
                }
            },
            "status": {
                "allocation": {"devices": {"results": [RESULT]}, "nodeSelector": EVERYWHERE}
            },
        },
    ]
    return [*nodes, *({"apiVersion": "resource.k8s.io/v1", **item} for item in dra)]


def case() -> tuple[Case, dict[str, Any], dict[str, Any]]:
    """A case, its pod, and the claim with its devices."""
    *others, claim = objects()
    pod = pod_of("pod", {"resourceClaims": [{"name": "one", "resourceClaimName": "claim"}]})
    problem = Problem("s-0", (), {"nodes": others[:2]})
    place = ProblemScope("x", "team", "default", {})
    made = [*others, remove_allocation(claim)]
    return Case(problem, place, "", VERSION, {}, pods=[pod], created=made, since=1.0), pod, claim


def test_the_node_of_a_pod_that_is_not_bound_yet_is_the_one_nominated() -> None:
    asked, pod, claim = case()
    asked.judge_latest_pod(pod, [claim], settle=60.0, decide=60.0)
    assert asked.answer is None
    asked.judge_latest_pod({**pod, "status": {"nominatedNodeName": "node-1"}}, [claim], 60.0, 60.0)
    assert asked.answer is not None
    assert (asked.answer.verdict, asked.answer.evidence["node"]) == ("identical", "node-1")


def test_a_pod_that_is_bound_without_its_devices_is_a_difference() -> None:
    asked, pod, claim = case()
    bound = {**pod, "spec": {**pod["spec"], "nodeName": "node-0"}}
    asked.judge_latest_pod(bound, [remove_allocation(claim)], settle=-1.0, decide=60.0)
    assert asked.answer is not None
    assert (asked.answer.verdict, asked.answer.differs) == ("impossible", True)


def test_the_next_pod_comes_when_the_one_before_is_judged() -> None:
    asked, pod, claim = case()
    asked.pods.append({**pod, "metadata": {"name": "pod-1", "namespace": "default"}})
    asked.judge_latest_pod(
        {**pod, "spec": {**pod["spec"], "nodeName": "node-0"}}, [claim], 60.0, 60.0
    )
    assert (asked.answer, asked.earlier, asked.since) == (None, [True], 0.0)
    assert asked.pod["metadata"]["name"] == "pod-1"
    assert asked.created[-1]["status"]["allocation"] == claim["status"]["allocation"]


def extended(*counts: int) -> tuple[Case, dict[str, Any], dict[str, Any]]:
    """A case whose pod asks for one device as an extended resource; the claim asks for others."""
    asked, _, claim = case()
    resource = "deviceclass.resource.kubernetes.io/c"
    asked.created.pop()
    body = {"deviceClassName": "c", "allocationMode": "ExactCount"}
    requests = [
        {"name": f"container-{index}-request-0", "exactly": {**body, "count": count}}
        for index, count in enumerate(counts)
    ]
    claim["spec"] = {"devices": {"requests": requests}}
    claim["status"]["allocation"]["devices"]["results"] = [
        {**RESULT, "request": "container-0-request-0"}
    ]
    limits = {"limits": {resource: "1"}, "requests": {resource: "1"}}
    pod = pod_of("pod", {"containers": [{"name": "ctr0", "resources": limits}]})
    pod["spec"]["nodeName"] = "node-0"
    return asked, pod, claim


def test_the_claim_for_extended_resources_is_judged_once_it_is_known() -> None:
    asked, pod, claim = extended(1)
    asked.judge_latest_pod(pod, [], settle=60.0, decide=60.0)
    assert asked.answer is None
    named = {"extendedResourceClaimStatus": {"resourceClaimName": "claim", "requestMappings": []}}
    asked.judge_latest_pod({**pod, "status": named}, [claim], 60.0, 60.0)
    assert asked.answer is not None
    assert asked.answer.verdict == "identical", asked.answer.reason


def test_a_claim_for_extended_resources_that_asks_for_more_is_a_difference() -> None:
    asked, pod, claim = extended(1, 1)
    named = {"extendedResourceClaimStatus": {"resourceClaimName": "claim", "requestMappings": []}}
    asked.judge_latest_pod({**pod, "status": named}, [claim], 60.0, 60.0)
    assert asked.answer is not None
    assert asked.answer.verdict == "inadmissible"
    assert "does not ask for what the pod wants" in asked.answer.reason
