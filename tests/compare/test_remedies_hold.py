"""No promise is false: what `explain` says would help is done to a running cluster, and helps.

Clusters are drawn at random and run by `kubesim`, whose scheduler and controllers do what
Kubernetes' do. `explain` sees a snapshot of one; each change that it proves is applied to the
cluster, which then must schedule the pod.
"""

from __future__ import annotations

import random
from collections import Counter
from functools import partial
from typing import Any

from conformance.compare.case import Case
from conformance.compare.evidence import Obj, full_name, key_of, name_of
from conformance.compare.explain import judge_nodes, read_snapshot
from conformance.compare.remedies import prove_changes
from conformance.compare.waiting import waiting_of
from conformance.seam.pods import reduced_pod
from kube.values import Ref
from kubesim import Node, World
from reference_allocator.snapshot import Snapshot
from tests.kubesim import kit

DRIVER = "gpu.example.com"
RESOURCE = "example.com/gpu"
SIZE = f"device.capacity['{DRIVER}'].memory.compareTo(quantity('{{}}Gi')) >= 0"
SEEDS = range(100)


def make_world(dice: random.Random) -> World:
    """A cluster with pods that have devices, and one, ``p``, that may find none."""
    names = [f"n{number}" for number in range(dice.randint(1, 3))]
    taint = {"key": "team", "value": "a", "effect": "NoSchedule"}
    nodes = [
        Node(name, unschedulable=dice.random() < 0.2, taints=[taint] * (dice.random() < 0.2))
        for name in names
    ]
    world = World(nodes=nodes, seed=dice.randrange(1000))
    create = partial(world.api.create, default_namespace="ns")
    create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "ns"}})
    selectors = [{"cel": {"expression": f"device.driver == '{DRIVER}'"}}]
    create(kit.device_class("gpu", selectors=selectors, extendedResourceName=RESOURCE))
    for name in names:
        devices = [make_device(dice, number) for number in range(dice.randint(0, 3))]
        create(kit.resource_slice(f"{name}-gpus", name, DRIVER, *devices))
    for name in ("shared", "own", "free"):
        create(kit.claim(name, make_request(dice)))
    create(kit.template("made", make_request(dice)))
    for number in range(dice.randint(1, 3)):
        create(make_pod(dice, f"h{number}"))
        world.settle()
    for pod in world.cluster.store.all("Pod"):
        if not pod["spec"].get("nodeName"):  # it would take what a change makes free
            world.api.delete(Ref("v1", "Pod", name_of(pod)), 0, "ns")
    create(make_pod(dice, "p", *dice.choice([("own",), ("shared",), ("shared", "own"), ()])))
    world.settle()
    return world


def make_device(dice: random.Random, number: int) -> Obj:
    device: Obj = {"name": f"gpu-{number}", "capacity": {"memory": {"value": dice.choice("48")}}}
    device["capacity"]["memory"]["value"] += "Gi"
    if dice.random() < 0.15:
        device["taints"] = [{"key": "broken", "effect": "NoSchedule"}]
    return device


def make_request(dice: random.Random) -> Obj:
    more: dict[str, Any] = {"count": dice.randint(1, 3)}
    if dice.random() < 0.15:
        more = {"allocationMode": "All"}
    if dice.random() < 0.3:
        more["selectors"] = [{"cel": {"expression": SIZE.format(dice.choice((4, 8, 16)))}}]
    return kit.request("gpu", "gpu", **more)


def make_pod(dice: random.Random, name: str, *claims: str) -> Obj:
    wanted = claims or dice.choice([("shared",), ("free",), ("made",), ("extended",)])
    plain = {item: item for item in wanted if item in ("shared", "own", "free")}
    made = {item: item for item in wanted if item == "made"}
    containers = [kit.container("c", *plain, *made)]
    if "extended" in wanted:
        amounts = {RESOURCE: str(dice.randint(1, 3))}
        containers = [kit.container("c", resources={"requests": amounts, "limits": amounts})]
    return kit.pod(name, *containers, claims=plain, templates=made)


def take_snapshot(world: World) -> Snapshot:
    store = world.cluster.store
    open_claims = [c for c in store.all("ResourceClaim") if "allocation" not in c["status"]]
    document = world.scheduler.take_snapshot(open_claims)
    pods = [reduced_pod(pod, ()) for pod in store.all("Pod")]
    document["pods"] = [pod for pod in pods if pod is not None]
    document["templates"] = list(store.all("ResourceClaimTemplate"))
    return read_snapshot(document)


def apply(world: World, before: Case, after: Case) -> None:
    """Do to a cluster what makes one case of the other."""
    store = world.cluster.store

    def set_spec(spec: Obj, obj: Obj) -> None:
        obj["spec"] = {**obj["spec"], **spec}

    remaining = {full_name(pod) for pod in after.snapshot.pods}
    for pod in before.snapshot.pods:
        if full_name(pod) not in remaining:
            world.api.delete(Ref("v1", "Pod", name_of(pod)), 0, "ns")
    allocated_before, claims_after = (
        map(key_of, before.snapshot.allocated),
        {key_of(claim): claim for claim in (*after.snapshot.claims, *after.snapshot.allocated)},
    )
    has_ended = len(remaining) < len(before.snapshot.pods)
    for key in () if has_ended else set(allocated_before) - claims_after.keys():
        world.api.delete(Ref(kit.DRA, "ResourceClaim", key[1]), None, "ns")
    for old, new in zip(before.snapshot.nodes, after.snapshot.nodes, strict=True):
        if old != new:
            stored = store.get("Node", "", name_of(old))
            assert stored is not None
            store.modify(stored, partial(set_spec, dict(new["spec"])))
    for claim in before.snapshot.claims:
        changed, stored = (
            claims_after.get(key_of(claim)),
            store.get("ResourceClaim", *key_of(claim)),
        )
        if changed is not None and changed["spec"] != claim["spec"] and stored is not None:
            store.modify(stored, partial(set_spec, dict(changed["spec"])))
    if after.pod != before.pod:
        stored = store.get("Pod", "ns", "p")
        assert stored is not None
        assert after.pod is not None
        spec = after.pod["spec"]
        containers = [
            {**container, "resources": {**container.get("resources", {}), **changed["resources"]}}
            for container, changed in zip(
                stored["spec"]["containers"], spec.get("containers", ()), strict=False
            )
        ]
        changed_fields = {
            **({"tolerations": spec["tolerations"]} if "tolerations" in spec else {}),
            **({"containers": containers} if containers else {}),
        }
        store.modify(stored, partial(set_spec, changed_fields))
        # The scheduler of kubesim tries again when a node has changed, not when the pod has.
        store.modify(store.all("Node")[0], lambda node: node["metadata"].update(annotations={}))


def node_of(world: World) -> str | None:
    pod = world.cluster.store.get("Pod", "ns", "p")
    assert pod is not None
    name: str | None = pod["spec"].get("nodeName")
    return name


def test_each_change_that_is_told_helps() -> None:
    counts = Counter[str]()
    for seed in SEEDS:
        make = partial(make_world, random.Random(seed))
        world = make()
        if node_of(world) is not None:
            counts["scheduled"] += 1
            continue
        counts["waiting"] += 1
        case = waiting_of(take_snapshot(world), "ns/p").case
        assert case is not None
        judged = judge_nodes(case, 30)
        assert not judged.fits, f"seed {seed}: {judged}"
        alike = list(judged.reasons.values())
        for text, changed, _ in prove_changes(case, judged.explanation, alike, 30, judged.failing):
            world = partial(make_world, random.Random(seed))()
            apply(world, case, changed)
            world.settle()
            assert node_of(world) is not None, f"seed {seed}: would fit if {text}"
            counts["changes"] += 1
            counts["pods ended"] += " ended" in text
    assert counts["waiting"] > 20, counts
    assert counts["changes"] > 30, counts
    assert counts["pods ended"] > 10, counts
    print(counts)
