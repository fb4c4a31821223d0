"""Situations of public bug reports, each with the answer that Kubernetes' own code gives."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pytest

from conformance.compare.evidence import Obj
from conformance.compare.explain import explain_snapshot, read_snapshot
from conformance.compare.replay import WhatIf
from conformance.compare.together import compare_pods
from kube.base.errors import UsageError
from tests.compare import cluster

Situation = Callable[[], Obj]
GPUS = {"requests": {"example.org/gpu": "3"}}


def claimed(name: str, *claims: str, **fields: Any) -> Obj:
    """A pod that names claims, as `ns/NAME`."""
    entries = [{"name": f"e{n}", "resourceClaimName": claim} for n, claim in enumerate(claims)]
    pod = cluster.pod(name, resourceClaims=entries, **fields)
    pod["metadata"]["uid"] = f"uid-{name}"
    return pod


def used(name: str, *users: str, **metadata: Any) -> Obj:
    """A claim with the device gpu-0 of node-a, reserved for pods."""
    claim = cluster.allocated(name, "gpu-0")
    claim["metadata"] |= metadata
    reserved = [{"resource": "pods", "name": user, "uid": f"uid-{user}"} for user in users]
    claim["status"]["reservedFor"] = reserved
    return claim


def third_pod(*nodes: Obj, claim: Obj | None = None, **fields: Any) -> Obj:
    """kubevirt/enhancements#332: a pod whose only claim has its device on node-a already."""
    return cluster.snapshot(
        nodes=nodes or (cluster.node(), cluster.node("node-b")),
        allocated=(claim or used("shared", "a", "b"),),
        pods=(claimed("p", "shared", **fields), claimed("a", "shared", nodeName="node-a")),
    )


def selecting(name: str) -> Obj:
    terms = [{"matchFields": [{"key": "metadata.name", "operator": "In", "values": [name]}]}]
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}
    return {"affinity": {"nodeAffinity": required}}


def of_shared_claim() -> Obj:
    """kubernetes#135901's shape: one device, which `shared` has; p wants `shared` and `own`."""
    return cluster.snapshot(
        slices=(cluster.resource_slice(sizes=["40Gi"]),),
        claims=(cluster.claim("own"),),
        allocated=(used("shared", "a"),),
        pods=(claimed("p", "shared", "own"), claimed("a", "shared", nodeName="node-a")),
    )


def all_beside_an_incomplete_pool(field: str = "resourceSliceCount", value: Any = 2) -> Obj:
    """kubernetes#141829: All devices, and a pool of another node that cannot be used now."""
    every = cluster.claim()
    every["spec"]["devices"]["requests"][0]["exactly"] = {
        "deviceClassName": "gpu",
        "allocationMode": "All",
    }
    broken = cluster.resource_slice("left")
    if field == "devices":
        broken["spec"]["devices"] *= 2
    else:
        broken["spec"]["pool"][field] = value
    return cluster.snapshot(
        nodes=(cluster.node("left"), cluster.node("right")),
        slices=(broken, cluster.resource_slice("right")),
        claims=(every,),
        pods=(claimed("p", "claim-0"),),
    )


def two_terms() -> Obj:
    """kubernetes#141214: a device's node selector of two terms."""
    fabric = cluster.resource_slice(sizes=["40Gi", "40Gi"])
    spec = fabric["spec"]
    del spec["nodeName"]
    spec["perDeviceNodeSelection"] = True
    term = {"matchExpressions": [{"key": "rack", "operator": "In", "values": ["a"]}]}
    spec["devices"][0]["nodeSelector"] = {"nodeSelectorTerms": [term, term]}
    spec["devices"][1]["nodeName"] = "node-b"
    racked = cluster.node()
    racked["metadata"]["labels"] = {"rack": "a"}
    return cluster.snapshot(
        nodes=(racked, cluster.node("node-b")),
        slices=(fabric,),
        claims=(cluster.claim(),),
        pods=(claimed("p", "claim-0"),),
    )


def of_another_class() -> Obj:
    """NVIDIA/aicr#138: a class by a part of its name."""
    named = cluster.device_class()
    named["metadata"]["name"] = "gpu.example.com"
    return cluster.snapshot(
        device_classes=(named,), claims=(cluster.claim(),), pods=(claimed("p", "claim-0"),)
    )


def without_devices(node_name: str, sizes: list[str]) -> Obj:
    """nvidia#438: slices that are there, and do not help."""
    return cluster.snapshot(
        nodes=(cluster.node("node-a.example.com"),),
        slices=(cluster.resource_slice(node_name, sizes),),
        claims=(cluster.claim(),),
        pods=(claimed("p", "claim-0"),),
    )


def of_group() -> Obj:
    """A gang of four: one runs, and of the two free devices each of three wants its own."""
    group = {"schedulingGroup": {"podGroupName": "g"}}
    pods = [claimed(name, f"of-{name}", **group) for name in ("p", "q", "r")]
    pods[2]["spec"]["schedulingGates"] = [{"name": "quota"}]
    runs = claimed("a", "a", nodeName="node-a", **group)
    return cluster.snapshot(
        claims=tuple(map(cluster.claim, ("of-p", "of-q", "of-r"))),
        allocated=(used("a", "a"),),
        pods=(*pods, runs, claimed("other", "of-p")),
    )


def extended(*containers: Obj, own: str = "", **fields: Any) -> Obj:
    """kueue#15664: a pod that asks for an extended resource, and names no claim."""
    older, newer = cluster.device_class(), cluster.device_class()
    older["metadata"] |= {"name": "gpu-old", "creationTimestamp": "2026-01-01T00:00:00Z"}
    newer["metadata"] |= {"creationTimestamp": "2026-02-01T00:00:00Z"}
    for item in (older, newer):
        item["spec"]["extendedResourceName"] = "example.org/gpu"
    node = cluster.node()
    if own:
        node["status"]["allocatable"] = {"example.org/gpu": own}
    runs = cluster.pod("a", nodeName="node-a", containers=[{"name": "c", "resources": GPUS}])
    pod = cluster.pod("p", containers=[{"name": "c", **dict(*containers)}], **fields)
    return cluster.snapshot(
        nodes=(node,), device_classes=(newer, older), pods=(pod, *([runs] if own else []))
    )


def asking(amount: str, name: str = "example.org/gpu") -> Obj:
    return {"resources": {"requests": {name: amount}}}


def from_template(**status: Any) -> Obj:
    entries = [{"name": "e", "resourceClaimTemplateName": "t"}]
    pod = cluster.pod("p", resourceClaims=entries)
    pod["metadata"]["uid"] = "uid-p"
    template = {**cluster.claim("t"), "kind": "ResourceClaimTemplate"}
    template["spec"] = {"spec": cluster.claim(count=3)["spec"]}
    made = cluster.claim("p-e-xyz", 2)
    if status.get("older"):
        pod["metadata"]["uid"] = "uid-of-another"
        pod["status"] = {"resourceClaimStatuses": [{"name": "e", "resourceClaimName": "p-e-xyz"}]}
    made["metadata"] |= {
        "annotations": {"resource.kubernetes.io/pod-claim-name": "e"},
        "ownerReferences": [{"kind": "Pod", "name": "p", "uid": "uid-p", "controller": True}],
    }
    if group := status.get("group"):
        pod["spec"]["schedulingGroup"] = {"podGroupName": group}
        made["metadata"]["ownerReferences"][0] |= {"kind": "PodGroup", "name": "job", "uid": "g"}
    return cluster.snapshot(
        claims=(made,) if status.get("made") else (), pods=(pod,), templates=(template,)
    )


def pod_with(part: str, **fields: Any) -> Obj:
    pod = claimed("p", "claim-0")
    pod[part] |= fields
    return cluster.snapshot(claims=(cluster.claim(),), pods=(pod,))


def not_bound_yet() -> Obj:
    """The pod's claim has its device, which is attached to the node only then."""
    claim = used("claim-0", "p")
    claim["status"]["allocation"]["devices"]["results"][0]["bindingConditions"] = ["attached"]
    return cluster.snapshot(allocated=(claim,), pods=(claimed("p", "claim-0"),))


INIT: dict[str, Any] = {"initContainers": [{"name": "i", **asking("2")}]}
CASES: Mapping[str, tuple[Situation, str]] = {
    "claim of another node": (
        third_pod,
        "1/2 nodes node-b: the pod's other claims have devices elsewhere fits now on node-a",
    ),
    "cordoned": (
        lambda: third_pod(cluster.node(unschedulable=True), cluster.node("node-b")),
        (
            "0/2 nodes node-a: node(s) were unschedulable node-b: the pod's other claims have"
            " devices elsewhere"
        ),
    ),
    "uncordon helps": (
        lambda: third_pod(cluster.node(unschedulable=True)),
        "would fit if node node-a were uncordoned (on node-a)",
    ),
    "tainted": (
        lambda: third_pod(cluster.node(taints=[{"key": "k", "effect": "NoSchedule"}])),
        "node-a: node(s) had untolerated taint(s) would fit if the pod tolerated node node-a's",
    ),
    "affinity": (
        lambda: third_pod(**selecting("node-b")),
        "0/2 nodes node-a: node(s) didn't match Pod's node affinity/selector node-b: the pod's",
    ),
    "node gone": (
        lambda: third_pod(cluster.node("node-b")),
        "0/1 nodes node-b: the pod's other claims have devices elsewhere",
    ),
    "256 users": (
        lambda: third_pod(claim=used("shared", *(f"u{number}" for number in range(256)))),
        "ns/p: claim shared is used by 256 pods, and by no more may it be",
    ),
    "claim being deleted": (
        lambda: third_pod(claim=used("shared", "a", deletionTimestamp="2026-01-01T00:00:00Z")),
        "ns/p: claim shared is being deleted, and no pod is scheduled with it",
    ),
    "nobody uses it": (
        lambda: third_pod(cluster.node("node-b"), claim=used("shared")),
        "0/1 nodes; the scheduler takes back claim shared, which nobody uses node-b: no devices of",
    ),
    "gates": (
        lambda: third_pod(schedulingGates=[{"name": "quota"}]),
        "1/2 nodes; scheduling gates hold the pod: quota",
    ),
    "group": (
        of_group,
        (
            "it is placed together with PodGroup g; of the group's 4 pods 3 wait, and 1 of these"
            " fit at the same time, placed one after the other; whether that is its minCount is"
            " not judged, and what follows is about this pod alone"
        ),
    ),
    "no device is left for both": (
        of_shared_claim,
        (
            "node-a: 1 device of class gpu: 1 in use claim ns/shared has gpu.example.com/node-a/"
            "gpu-0, for pod ns/a no single change that was tried, and no two, would make it fit"
        ),
    ),
    "incomplete pool": (
        all_beside_an_incomplete_pool,
        (
            "the error on left ends the scheduler's attempt for every node without that it would"
            " fit on right known fault of Kubernetes: For All, an incomplete or invalid pool of one"
            " node ends kube-scheduler's attempt for every node."
            " https://github.com/kubernetes/kubernetes/issues/141829"
        ),
    ),
    "invalid pool": (
        lambda: all_beside_an_incomplete_pool("devices"),
        "would fit if node left were cordoned (on right)",
    ),
    "two terms": (two_terms, "https://github.com/kubernetes/kubernetes/issues/141214"),
    "near class": (
        of_another_class,
        "there is no DeviceClass gpu; did you mean gpu.example.com?",
    ),
    "near class helps": (
        of_another_class,
        "would fit if request gpu of claim ns/claim-0 named class gpu.example.com instead of gpu",
    ),
    "empty slice": (
        lambda: without_devices("node-a.example.com", []),
        "slice node-a.example.com-gpus of driver gpu.example.com has no devices",
    ),
    "another spelling": (
        lambda: without_devices("Node-A", ["40Gi"]),
        "slice Node-A-gpus of driver gpu.example.com is of Node-A: is node-a.example.com meant?",
    ),
    "extended resource": (
        lambda: extended(asking("3")),
        (
            "0/1 nodes example.org/gpu is of DeviceClass gpu, the newest; also of gpu-old node-a:"
            " 2 devices of class gpu: 2 left; 3 needed would fit if container c asked for 2"
            " example.org/gpu instead of 3 (on node-a)"
        ),
    ),
    "init container": (lambda: extended(asking("1"), **INIT), "1/1 nodes"),
    "implicit name": (
        lambda: extended(asking("2", "deviceclass.resource.kubernetes.io/gpu")),
        "1/1 nodes deviceclass.resource.kubernetes.io/gpu is of DeviceClass gpu",
    ),
    "misspelt": (
        lambda: extended(asking("1", "example.org/gpus")),
        (
            "0/1 nodes; nobody provides example.org/gpus; did you mean example.org/gpu? node-a: no"
            " DeviceClass provides example.org/gpus, and no device plugin of the node does"
        ),
    ),
    "device plugin": (
        lambda: extended(asking("2"), own="4"),
        "node-a: example.org/gpu is the node's own, of a device plugin: 1 of 4 free; 2 needed",
    ),
    "claim not made": (
        from_template,
        (
            "0/1 nodes; the claim of ResourceClaimTemplate t is not made yet node-a: 2 devices of"
            " class gpu: 2 left; 3 needed"
        ),
    ),
    "made for a pod before it": (
        lambda: from_template(made=True, older=True),
        "ns/p: claim p-e-xyz was not made for it, but for a pod before it",
    ),
    "made for its group": (
        lambda: from_template(made=True, older=True, group="job"),
        "1/1 nodes; it is placed together with PodGroup job",
    ),
    "made for another group": (
        lambda: from_template(made=True, older=True, group="other"),
        "ns/p: claim p-e-xyz was not made for it, but for a pod before it",
    ),
    "pod being deleted": (
        lambda: pod_with("metadata", deletionTimestamp="2026-01-01T00:00:00Z"),
        "1/1 nodes; it is being deleted, and no scheduler places it",
    ),
    "another scheduler": (
        lambda: pod_with("spec", schedulerName="volcano"),
        "affinity to pods); its scheduler is volcano",
    ),
    "not bound yet": (
        not_bound_yet,
        "it is bound once gpu.example.com/node-a/gpu-0 has the conditions attached",
    ),
    "claim not in the status": (
        lambda: from_template(made=True),
        "1/1 nodes; claim p-e-xyz is made for it and not in its status yet has devices on node-a",
    ),
}


@pytest.mark.parametrize(("situation", "text"), CASES.values(), ids=CASES)
def test_a_pod_is_explained_as_kubernetes_treats_it(situation: Situation, text: str) -> None:
    [explanation] = explain_snapshot(read_snapshot(situation()), "ns/p")
    assert text in " ".join(explanation.text.split())


def test_a_pod_that_ends_opens_its_claims_for_those_who_name_them() -> None:
    changed = WhatIf(end=("ns/a",)).apply(read_snapshot(of_shared_claim()))
    assert [claim["metadata"]["name"] for claim in changed.claims] == ["own", "shared"]
    [explanation] = explain_snapshot(changed, "ns/p", suggest=False)
    assert explanation.fits == ()
    assert "not claim ns/own and claim ns/shared together" in explanation.text.replace(
        "\n    ", " "
    )


def test_what_the_scheduler_said_is_told_where_devices_are_not_the_reason() -> None:
    document = third_pod()
    message = "0/2 nodes are available: 2 Insufficient cpu."
    document["pods"][0]["status"] = {
        "conditions": [{"type": "PodScheduled", "status": "False", "message": message}]
    }
    [explanation] = explain_snapshot(read_snapshot(document), "ns/p")
    assert f"the scheduler said: {message}" in " ".join(explanation.text.split())


def test_two_pods_on_different_rails_are_told() -> None:
    """ai-dynamo/dynamo#13596: each pod is right, and the pods have no rail in common."""
    nics = cluster.resource_slice(sizes=["1Gi"] * 4)
    for number, device in enumerate(nics["spec"]["devices"]):
        device["attributes"] |= {"rail": {"int": number % 2}, "serial": {"string": f"s{number}"}}
    held = [cluster.allocated(name, f"gpu-{n}") for n, name in enumerate("abc")]
    pods = [claimed(f"p-{name}", name, nodeName="node-a") for name in "abc"]
    document = cluster.snapshot(slices=(nics,), allocated=tuple(held), pods=tuple(pods))
    snapshot = read_snapshot(document)
    assert compare_pods(snapshot, "ns/p-a", "ns/p-b").text.splitlines() == [
        "ns/p-a and ns/p-b share no value of gpu.example.com/rail: 0, and 1",
        "ns/p-a and ns/p-b share gpu.example.com/type: gpu",
    ]
    common = compare_pods(snapshot, "ns/p-a", "ns/p-c")
    assert (dict(common.different), common.shared["gpu.example.com/rail"]) == ({}, ("0",))
    with pytest.raises(UsageError, match="ns/p: has no devices yet"):
        compare_pods(read_snapshot(of_another_class()), "ns/p", "ns/p")
