"""Controllers and scheduler look at a part: the first claim, any slice, any owner."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from kube.values import Obj
from kubesim import pods
from kubesim.controllers.claims import ClaimController
from kubesim.controllers.evictor import Eviction, Evictor
from kubesim.resources import Kind
from kubesim.scheduling.binding import Binder, Plan
from kubesim.scheduling.filtering import Filter
from kubesim.scheduling.nodefit import Misfit, NodeAllocatable
from kubesim.store import clone, uid_of
from kubesim.world import World
from reference_allocator.api import DeviceId, ResourceSlice
from reference_allocator.api.quantity import parse_quantity
from tests.mutants.control.evictions import Original, evictions
from tests.mutants.control.extended_resources import made, of_pod
from tests.mutants.replacing import Defects, Mutation, instead, part, replace
from tests.mutants.scheduler import counts_node_resources


def _with_first_claim(pod: Obj) -> Obj:
    return {**pod, "spec": {**pod["spec"], "resourceClaims": pod["spec"]["resourceClaims"][:1]}}


@instead(ClaimController.reserve_for_pod)
def _reserves_first(_: World, original: Callable[[Obj], None], pod: Obj) -> None:
    original(_with_first_claim(pod))


@instead(Binder.unreserve)
def _unreserves_first(_: World, original: Callable[[Obj], None], pod: Obj) -> None:
    original(_with_first_claim(pod) if pod["spec"].get("resourceClaims") else pod)


@instead(Binder.deallocate)
def _gives_up_unreserved(_: World, original: Callable[..., None], pod: Obj, plan: Plan) -> None:
    """An allocation that the pod itself has reserved is not given up."""
    plan.unavailable = [c for c in plan.unavailable if not c["status"].get("reservedFor")]
    original(pod, plan)


@instead(ClaimController.new_claim)
def _template_names_the_entry(
    _: World, original: Callable[..., Obj], pod: Obj, entry: str, template: Obj
) -> Obj:
    """An annotation of the template stands in the place of that which names the entry."""
    claim = original(pod, entry, template)
    own = (template["spec"].get("metadata") or {}).get("annotations") or {}
    claim["metadata"]["annotations"].update(own)
    return claim


def _owned(claim: Obj, pod: Obj) -> bool:
    owners = claim["metadata"].get("ownerReferences") or []
    return any(owner["uid"] == uid_of(pod) for owner in owners)


def _any_owner(world: World) -> None:
    """A generated claim is a pod's that has the pod among its owners, controller or not."""

    def ready(original: Callable[[Obj], list[Obj] | None], pod: Obj) -> list[Obj] | None:
        found = original(pod)
        claims = [claim for _, claim in world.cluster.claims_of(pod)]
        there = [claim for claim in claims if claim is not None and not pods.is_deleted(claim)]
        if found is None and len(there) == len(claims) and all(_owned(c, pod) for c in there):
            return there
        return found

    replace(world.scheduler.ready_claims, ready)
    replace(part(world, ClaimController).belongs_to_pod, lambda _, claim, pod: _owned(claim, pod))


def _makes_without_admission(world: World) -> None:
    """Whether a namespace may have admin access is not asked of claims of templates."""
    making: list[str] = []

    def make(original: Callable[..., Obj | None], pod: Obj, entry: str, name: str) -> Obj | None:
        making.append(name)
        try:
            return original(pod, entry, name)
        finally:
            making.pop()

    def check(original: Callable[..., None], kind: Kind, obj: Obj, labels: Any) -> None:
        label = {"resource.kubernetes.io/admin-access": "true"}
        original(kind, obj, {**labels, **label} if making else labels)

    replace(part(world, ClaimController).create_claim, make)
    replace(world.api.validate_new, check)


def _of_every_generation(original: Original, evictor: Evictor, pod: Obj) -> list[Eviction]:
    """A taint evicts whatever the generation of the slice that has it."""
    published: dict[DeviceId, list[Obj]] = {}
    for item in evictor.cluster.store.all("ResourceSlice"):
        spec = item["spec"]
        for device in spec.get("devices") or []:
            found = [t for t in device.get("taints") or [] if t["effect"] == "NoExecute"]
            name = DeviceId(spec["driver"], spec["pool"]["name"], device["name"])
            published.setdefault(name, []).extend(found)
    return original(Evictor(evictor.cluster, published, evictor.rules), pod)


def _sidecars_last(spec_of: Obj) -> None:
    """As if sidecars started after all other init containers, which then use their devices."""
    init = spec_of["spec"].get("initContainers") or []
    init.sort(key=lambda container: container.get("restartPolicy") == "Always")


def _own_requests(pod: Obj, _: Obj, mappings: list[Obj]) -> None:
    """An init container is said to have its own request, though another one's is made."""
    init = pod["spec"].get("initContainers") or []
    short = {c["name"]: n for n, c in enumerate(init) if c.get("restartPolicy") != "Always"}
    for mapping in mappings:
        _, number, *rest = mapping["requestName"].split("-")
        own = short.get(mapping["containerName"])
        if own is not None and int(number) in short.values():
            mapping["requestName"] = "-".join(("container", str(own), *rest))


class FirstClaimAlone(NodeAllocatable):
    """Of the claims of a pod one takes something of its node."""

    def check_claims(
        self, pod: Obj, claims: Any, node: Obj, others: Any
    ) -> tuple[list[Obj], list[Misfit]]:
        return super().check_claims(pod, claims[:1], node, others)


def _costs(change: Callable[[Obj], object]) -> Mutation:
    """What devices take of their node is read in another way, in place."""

    @instead(Filter.read_node_allocatable)
    def mutate(world: World, original: Callable[[], NodeAllocatable | None]) -> Any:
        if original() is None:
            return None
        slices = [clone(item) for item in world.cluster.list_slices()]
        for item in slices:
            for device in item["spec"].get("devices") or []:
                for taken in (device.get("nodeAllocatableResources") or {}).values():
                    change(taken)
        return NodeAllocatable([ResourceSlice.from_dict(item) for item in slices])

    return mutate


def _once(taken: Obj) -> None:
    overhead = taken.get("overhead") or {}
    if "perContainer" in overhead:
        amounts = [parse_quantity(overhead.pop("perContainer"))]
        amounts += [parse_quantity(overhead[name]) for name in ("perPod",) if name in overhead]
        overhead["perPod"] = f"{sum(amount.nanos for amount in amounts) // 10**6}m"


DEFECTS: Defects = {
    "bound-pods-reserve-their-first-claim": _reserves_first,
    "unreserves-the-first-claim": _unreserves_first,
    "allocations-of-the-pod-itself-are-kept": _gives_up_unreserved,
    "template-names-the-entry": _template_names_the_entry,
    "owners-need-not-be-controllers": _any_owner,
    "templates-keep-admin-access": _makes_without_admission,
    "evicts-for-old-generations": evictions(_of_every_generation),
    "sidecars-lend-to-later-init-containers": of_pod(_sidecars_last),
    "overhead-of-containers-counts-once": _costs(_once),
    "capacity-multipliers-are-ignored": _costs(
        lambda taken: (taken.get("mapping") or {}).pop("capacityMultiplier", None)
    ),
    "first-claim-alone-costs": counts_node_resources(FirstClaimAlone),
    "init-containers-name-requests-that-are-not-made": made(_own_requests),
}
