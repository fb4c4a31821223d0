"""Kubernetes as `kubesim` has it, as an allocator: its scheduler places the pods of a question.

For each node a cluster is made that has no other; the pods come one after the other, and only the
scheduler runs, so that nothing else touches what it is judged by. The argument is the minor.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from copy import deepcopy
from typing import Any

from kubesim import World
from kubesim.nodes.node import Node, node_object
from reference_allocator.features import gates_of
from reference_allocator.gates import gates_for_version

Json = dict[str, Any]
KINDS = {
    "slices": "ResourceSlice",
    "deviceClasses": "DeviceClass",
    "allocated": "ResourceClaim",
}
HOLDER = {"resource": "pods", "name": "holder", "uid": "holder"}


def gates_from(features: Mapping[str, bool], minor: str) -> dict[str, bool]:
    """The gates with which a scheduler of the minor has these features, where they can be set."""
    known = gates_for_version(minor)
    wanted = {gate: on for name, on in features.items() for gate in gates_of(name)}
    return {name: on for name, on in wanted.items() if name in known and not known[name].locked}


def in_use(claim: Json) -> Json:
    """A claim that some pod has, so that no scheduler takes its devices back."""
    if not (claim.get("status") or {}).get("allocation"):
        return {**claim, "status": {}}
    return {**claim, "status": {**claim["status"], "reservedFor": [HOLDER]}}


def pod_of(asked: Json, number: int) -> Json:
    """The pod of a question, with its claims."""
    claims = [claim["metadata"]["name"] for claim in asked.get("claims", ())]
    given = asked.get("pod") or {"spec": {"containers": [{"name": "ctr0", "image": "none"}]}}
    namespaces = {claim["metadata"].get("namespace") or "" for claim in asked.get("claims", ())}
    spec = {
        **given["spec"],
        "schedulerName": "default-scheduler",
        "tolerations": [{"operator": "Exists"}],
        "resourceClaims": [{"name": name, "resourceClaimName": name} for name in claims],
    }
    metadata = {"name": f"pod-{number}", "namespace": next(iter(namespaces), "default")}
    pending = {"phase": "Pending"}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": metadata,
        "spec": spec,
        "status": pending,
    }


def make_cluster(question: Json, node: Json, minor: str) -> World:
    """The cluster of a question with one node, without its pods."""
    world = World(kubernetes_version=minor, gates=gates_from(question.get("features") or {}, minor))
    store = world.cluster.store
    made = node_object(Node(node["metadata"]["name"]), minor, {})
    made["metadata"]["labels"] = node["metadata"].get("labels") or {}
    status = node.get("status") or {}
    made["status"]["allocatable"] |= status.get("allocatable") or {}
    if "declaredFeatures" in status:
        made["status"]["declaredFeatures"] = status["declaredFeatures"]
    store.add(made)
    for field, kind in KINDS.items():
        for item in question.get(field) or ():
            store.add({"apiVersion": "resource.k8s.io/v1", "kind": kind, **in_use(item)})
    known = {key_of(claim) for claim in question.get("allocated") or ()}
    for pod in (question, *(question.get("following") or ())):
        for claim in pod.get("claims") or ():
            if key_of(claim) not in known:
                known.add(key_of(claim))
                store.add(
                    {
                        "apiVersion": "resource.k8s.io/v1",
                        "kind": "ResourceClaim",
                        **in_use(claim),
                    }
                )
    return world


def key_of(claim: Json) -> tuple[str, str]:
    """Namespace and name."""
    return claim["metadata"].get("namespace") or "", claim["metadata"]["name"]


def place(world: World, asked: Json, number: int) -> Json:
    """What becomes of a pod; one that is not placed is gone before the next comes."""
    store = world.cluster.store
    stored = store.add(pod_of(asked, number))
    for _ in range(5):
        world.scheduler.sync()
    pod = store.get("Pod", stored["metadata"]["namespace"], stored["metadata"]["name"])
    assert pod is not None
    if not pod["spec"].get("nodeName"):
        store.remove(pod)
        return {"outcome": "none"}
    names = [key_of(claim) for claim in asked.get("claims") or ()]
    extended = (pod.get("status") or {}).get("extendedResourceClaimStatus")
    if extended:
        names.append((pod["metadata"]["namespace"], extended["resourceClaimName"]))
    claims = [store.get("ResourceClaim", *name) for name in names]
    return {
        "outcome": "allocated",
        "allocations": [claim["status"]["allocation"] for claim in claims if claim],
    }


def answer(question: Json, minor: str) -> Json:
    """The answer to a question."""
    if any(
        device.get("bindingConditions")
        for item in question["slices"]
        for device in item["spec"].get("devices", ())
    ):
        return {"id": question["id"], "unsupported": "devices that are prepared before binding"}
    nodes = []
    for node in question.get("nodes") or ():
        asked = deepcopy(question)  # a store takes over what it is given
        world = make_cluster(asked, node, minor)
        first, *others = [
            place(world, pod, number)
            for number, pod in enumerate((asked, *(asked.get("following") or ())))
        ]
        more = {"following": others} if others else {}
        nodes.append({"node": node["metadata"]["name"], **first, **more})
    return {"id": question["id"], "nodes": nodes}


for line in sys.stdin:
    print(json.dumps(answer(json.loads(line), sys.argv[1])), flush=True)
