"""Defects of the node that is chosen, among those that have devices."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from kube.values import Obj
from kubesim.scheduling.binding import Plan
from kubesim.scheduling.filtering import Filter, SchedulingError
from kubesim.scheduling.listers import Listers
from kubesim.store import clone
from kubesim.world import World
from tests.mutants.allocation.inputs import changed, devices, reads, requests
from tests.mutants.replacing import Defects, Mutation, Original, instead, replace


def ignores_node_of_allocated(world: World) -> None:
    def anywhere(claim: Obj) -> None:
        claim["status"].get("allocation", {}).pop("nodeSelector", None)

    def unavailable(original: Original, pod: Obj, plan: Plan, *args: Any) -> Any:
        other = Plan(changed(plan.claims, anywhere))
        found = original(pod, other, *args)
        plan.unavailable += other.unavailable
        return found

    replace(world.scheduler.filter._unavailable, unavailable)


@instead(Filter.allocate)
def ties_network_claims(
    _: World, original: Original, allocator: Any, node: Obj, claims: Any
) -> Any:
    """A claim that can be used everywhere is tied to the node of the claims beside it."""
    allocations, found = original(allocator, node, claims)
    name = node["metadata"]["name"]
    field = {"key": "metadata.name", "operator": "In", "values": [name]}
    here: Obj = {"nodeSelectorTerms": [{"matchFields": [field]}]}
    if len(allocations) > 1:
        allocations = tuple({"nodeSelector": here, **item} for item in allocations)
    return allocations, found


@instead(Filter.filter)
def compares_nodes_by_allocated_claims(
    _: World, original: Original, pod: Obj, plan: Plan, nodes: Sequence[Obj]
) -> Any:
    """As kubernetes#139016: nodes are compared by claims that are allocated already, too."""
    unfit = original(pod, plan, nodes)
    if plan.node is not None and 0 < len(plan.to_allocate) < len(plan.claims):
        other = Plan(plan.claims)
        original(pod, other, [node for node in nodes if node is not plan.node])
        if other.node is not None:
            raise SchedulingError("number of allocations is smaller than number of claims")
    return unfit


@instead(Filter.allocate)
def ignores_declared_features(
    _: World, original: Original, allocator: Any, node: Obj, claims: Any
) -> Any:
    status = {**node["status"], "declaredFeatures": ["DRAOptionalNodeOperations"]}
    return original(allocator, {**node, "status": status}, claims)


def scoring(score: Callable[[Obj, Obj], int]) -> Mutation:
    """Nodes are compared by something else: of a claim and the allocation it would get."""

    def mutate(world: World) -> None:
        replace(
            world.scheduler.filter.score,
            lambda _, plan: sum(map(score, plan.to_allocate, plan.allocations)),
        )

    return mutate


def places(claim: Obj, allocation: Obj) -> list[int]:
    """For each request with alternatives, which of them was taken, from 0."""
    chosen = {result["request"] for result in allocation["devices"].get("results") or ()}
    return [
        index
        for request in requests(claim)
        for index, one in enumerate(request.get("firstAvailable") or [])
        if f"{request['name']}/{one['name']}" in chosen
    ]


@instead(Filter.pre_filter)
def asks_for_all_classes(_: World, original: Original, claims: Sequence[Obj]) -> Any:
    return original([{**claim, "status": {}} for claim in claims])


@instead(Filter.score)
def first_claim_scores(_: World, original: Callable[[Plan], int], plan: Plan) -> int:
    first = Plan(plan.claims[:1])
    first.to_allocate, first.allocations = plan.to_allocate[:1], plan.allocations[:1]
    return original(first)


@instead(Filter.check_node)
def needs_no_labels(_: World, original: Original, pod: Obj, plan: Any, *rest: Any) -> Any:
    if pod["spec"].get("resourceClaims"):
        pod = clone(pod)
        pod["spec"].pop("nodeSelector", None)
    return original(pod, plan, *rest)


def rules(item: Obj) -> Iterator[Obj]:
    """What a slice and its devices ask of the labels of nodes."""
    for holder in (item["spec"], *devices(item)):
        for term in (holder.get("nodeSelector") or {}).get("nodeSelectorTerms") or []:
            yield from term.get("matchExpressions") or []


def any_number_will_do(item: Obj) -> None:
    for rule in rules(item):
        if rule["operator"] in ("Gt", "Lt"):
            rule["operator"] = "Exists"
            rule.pop("values", None)


DEFECTS: Defects = {
    "classes-of-allocated-claims-must-exist": asks_for_all_classes,
    "compares-nodes-by-allocated-claims": compares_nodes_by_allocated_claims,
    "ignores-node-of-allocated-claims": ignores_node_of_allocated,
    "ignores-declared-features": ignores_declared_features,
    "ties-network-claims-to-a-node": ties_network_claims,
    "alternatives-of-later-claims-do-not-score": first_claim_scores,
    "later-alternatives-score-more": scoring(lambda *of: sum(place + 1 for place in places(*of))),
    "claims-need-no-labels-of-nodes": needs_no_labels,
    "compares-no-numbers-of-nodes": reads(Listers.resource_slices, any_number_will_do),
}
