"""Finds the node: what concerns the pod itself first, then node by node, devices last.

Follows PreFilter and Filter of the dynamicresources plugin (pkg/scheduler/framework/plugins/
dynamicresources/dynamicresources.go), and its Score: of nodes that offer alternatives of a request
the one with the best is taken. Otherwise it is the first node that works. Those with fewer pods are
tried first, because the real scheduler's scores spread pods like that (NodeResourcesFit with
LeastAllocated counts 100m and 200Mi for a pod without requests); among equals, by name.
"""

from __future__ import annotations

import dataclasses
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING, Final

from kube.values import Obj
from kubesim import pods
from kubesim.apiserver.conversion import device_requests
from kubesim.cluster import Cluster
from kubesim.scheduling.binding import Plan
from kubesim.scheduling.bindingconditions import BindingConditions
from kubesim.scheduling.listers import AllocatorCache, Listers
from kubesim.scheduling.nodefit import Misfit, NodeAllocatable, list_misfits
from kubesim.store import name_of, uid_of
from reference_allocator.allocatable import AllocatableError, PodClaim
from reference_allocator.api import NodeSelector, ResourceSlice
from reference_allocator.api.defaulting import default_claim
from reference_allocator.api.limits import FIRST_AVAILABLE_MAX
from reference_allocator.extended import classes_by_resource, extended_claim
from reference_allocator.rules.node_eligibility import selector_matches

if TYPE_CHECKING:
    from reference_allocator.allocator import Allocator

_SPECIAL_NAME: Final = "<extended-resources>"


class SchedulingError(Exception):
    """Scheduling this pod failed, as opposed to finding no place for it."""


@dataclasses.dataclass(frozen=True, slots=True)
class Round:
    """What holds while the nodes for a pod are looked at.

    Attributes:
        resources: extended resource -> the DeviceClass behind it.
        allocatable: what devices take of their nodes, None where they take nothing.
        allocator: gives the allocator, which is brought up to date at the first call.
        pods: node -> the pods that are on it.
    """

    resources: Mapping[str, str]
    allocatable: NodeAllocatable | None
    allocator: Callable[[], Allocator]
    pods: Mapping[str, Sequence[Obj]]

    def pods_on(self, node: Obj) -> Sequence[Obj]:
        """Return the pods on a node."""
        return self.pods.get(name_of(node), ())


class Filter:
    """Finds nodes in one cluster.

    Attributes:
        assumed: pod uid -> node that it was given, and to which it is not bound yet.
        listers: what it knows of the cluster's devices, classes and claims.
    """

    def __init__(self, cluster: Cluster, conditions: BindingConditions) -> None:
        self.assumed: dict[str, str] = {}
        self.listers = Listers(cluster)
        self._cache = AllocatorCache(cluster, self.listers)
        self._conditions = conditions
        self._cluster = cluster
        self._store = cluster.store
        # Since 1.35 (kubernetes#134711).
        self._scores = cluster.minor != "1.34" and bool(cluster.gates.get("DRAPrioritizedList"))

    def pre_filter(self, claims: Sequence[Obj]) -> str | None:
        """Return why a pod with these claims fits no node whatever the node is, None if it may.

        How many consumers a claim has does not count here (``CanBeReserved`` of
        k8s.io/dynamic-resource-allocation/resourceclaim is always true): the API server refuses
        the reservation.
        """
        for claim in claims:
            if "allocation" in claim["status"]:
                continue
            for request in device_requests(claim):
                for name, device_request in _alternatives(request):
                    class_name = device_request["deviceClassName"]
                    if self._store.get("DeviceClass", "", class_name) is None:
                        return f"request {name}: device class {class_name} does not exist"
        return None

    def filter(self, pod: Obj, plan: Plan, nodes: Sequence[Obj]) -> Mapping[str, Sequence[Misfit]]:
        """Fill the plan in with the first node that suits, of those with the best alternatives.

        Returns node -> why it does not suit; empty when one was found.

        Raises:
            SchedulingError: the claims cannot be evaluated at all.
            AllocationError: a node selector does not parse.
            InputError: an object in the store has not the form that the allocator expects.
        """
        round_ = self.start_round(pod)
        unfit: dict[str, Sequence[Misfit]] = {}
        best = plan
        for node in sorted(nodes, key=lambda node: (len(round_.pods_on(node)), name_of(node))):
            candidate = dataclasses.replace(plan)
            unfit[name_of(node)] = self.check_node(
                pod, candidate, node, round_.pods_on(node), round_
            )
            if candidate.node is not None and (
                best is plan or self.score(candidate) > self.score(best)
            ):
                best = candidate
                if not (self._scores and _has_alternatives(plan.claims)):
                    break
        if best is plan:
            return unfit
        plan.take_over(best)
        return {}

    def score(self, plan: Plan) -> int:
        """Return how good the alternatives are that a plan has found (``computeScore``)."""
        return sum(map(_score, plan.to_allocate, plan.allocations)) if self._scores else 0

    def start_round(self, pod: Obj) -> Round:
        """Return what holds while the nodes for a pod are looked at."""
        resources, allocatable = self.extended_resources(), self.read_node_allocatable()
        return Round(
            resources, allocatable, cache(self._cache.update_allocator), self._pods_by_node(pod)
        )

    def check_node(
        self, pod: Obj, plan: Plan, node: Obj, others: Sequence[Obj], round_: Round
    ) -> Sequence[Misfit]:
        """Return why a pod does not suit a node on which others are; fill the plan in if it does.

        Raises SchedulingError, AllocationError, InputError: as for `filter`.
        """
        misfits: Sequence[Misfit] = list_misfits(pod, node, others, frozenset(round_.resources))
        if not misfits:
            misfits = self._unavailable(pod, plan, node, round_.allocatable)
        if misfits:
            return misfits
        # A claim may be that of two entries.
        waiting = {uid_of(c): c for c in plan.claims if "allocation" not in c["status"]}
        to_allocate = list(waiting.values())
        special, mappings = self.extended_claim(pod, node, round_.resources)
        if special is not None:
            to_allocate.append(special)
        allocations: tuple[Obj, ...] = ()
        if to_allocate:
            allocations, misfits = self.allocate(round_.allocator(), node, to_allocate)
        statuses: list[Obj] = []
        if not misfits and round_.allocatable is not None:
            entries = self._pod_claims(pod, to_allocate, allocations)
            try:
                statuses, misfits = round_.allocatable.check_claims(pod, entries, node, others)
            except AllocatableError as error:
                raise SchedulingError(str(error)) from None
        if not misfits:
            plan.node, plan.to_allocate, plan.allocations = node, to_allocate, allocations
            plan.special, plan.mappings = special, mappings
            plan.node_allocatable = statuses
        return misfits

    def _pods_by_node(self, pod: Obj) -> Mapping[str, Sequence[Obj]]:
        """Return the pods that run on each node or are about to, as a pod to be placed sees them.

        Room that was made for a pod by preemption is kept for it, but not from higher priorities.
        """
        pods_by_node: defaultdict[str, list[Obj]] = defaultdict(list)
        for other in self._store.all("Pod"):
            node = other["spec"].get("nodeName") or self.assumed.get(uid_of(other))
            nominated = (other.get("status") or {}).get("nominatedNodeName")
            if not node and other is not pod and pods.priority_of(other) >= pods.priority_of(pod):
                node = nominated
            if node and not pods.is_finished(other):
                pods_by_node[node].append(other)
        return pods_by_node

    def extended_resources(self) -> Mapping[str, str]:
        """Return extended resource -> the DeviceClass behind it."""
        if not self._cluster.gates.get("DRAExtendedResource"):
            return {}
        return classes_by_resource(self.listers.device_classes())

    def extended_claim(
        self, pod: Obj, node: Obj, resources: Mapping[str, str]
    ) -> tuple[Obj | None, list[Obj]]:
        """Return the claim for a pod's extended resources on a node, and whose request it meets.

        It has a name of its own until it is stored.
        """
        generated = extended_claim(pod, node, resources)
        if generated is None:
            return None, []
        claim: Obj = {**generated.claim, "status": {}}
        claim["metadata"] |= {"name": _SPECIAL_NAME, "uid": f"{uid_of(pod)}-extended"}
        return claim, [dict(mapping) for mapping in generated.mappings]

    def read_node_allocatable(self) -> NodeAllocatable | None:
        """Return what devices take of nodes; None where they have nothing to do with that."""
        if not self._cluster.gates.get("DRANodeAllocatableResources"):
            return None
        return NodeAllocatable(
            [ResourceSlice.from_dict(item) for item in self._cluster.list_slices()]
        )

    def _pod_claims(
        self, pod: Obj, to_allocate: Sequence[Obj], allocations: Sequence[Obj]
    ) -> list[PodClaim]:
        """Return all claims of a pod with the allocations that they have or would get."""
        new = {uid_of(c): item for c, item in zip(to_allocate, allocations, strict=True)}
        pod_claims = []
        for entry, claim in self._cluster.claims_of(pod):
            if claim is not None:
                claim = self.listers.pending.get(uid_of(claim), claim)
                allocation = new.pop(uid_of(claim), None) or claim["status"].get("allocation")
                pod_claims.append(PodClaim(entry["name"], name_of(claim), allocation or {}))
        pod_claims += [PodClaim("", _SPECIAL_NAME, allocation) for allocation in new.values()]
        return pod_claims

    def allocate(
        self, allocator: Allocator, node: Obj, claims: Sequence[Obj]
    ) -> tuple[tuple[Obj, ...], Sequence[Misfit]]:
        """Allocate claims together on a node.

        Returns ``status.allocation`` of each claim, or why there is none.

        Raises SchedulingError: the claims cannot be evaluated.
        """
        outcome = allocator.allocate(node, [default_claim(claim) for claim in claims])
        if outcome.kind in {"error", "timeout"}:
            raise SchedulingError(outcome.error)
        if outcome.kind != "allocated":
            return (), [Misfit(outcome.error or "cannot allocate all claims")]
        return outcome.allocations, ()

    def _unavailable(
        self, pod: Obj, plan: Plan, node: Obj, allocatable: NodeAllocatable | None
    ) -> Sequence[Misfit]:
        """Return why a claim's devices cannot be used here, or not by this pod."""
        usable: list[tuple[Obj, bool]] = []
        given_up = False
        for claim in plan.claims:
            allocation = claim["status"].get("allocation")
            if allocation is None:
                continue
            selector = allocation.get("nodeSelector")
            elsewhere = selector is not None and not selector_matches(
                NodeSelector.from_dict(selector), node
            )
            if elsewhere or self._conditions.cannot_bind(claim):
                given_up = True
                if claim not in plan.unavailable:
                    plan.unavailable.append(claim)
            else:
                users = claim["status"].get("reservedFor") or []
                usable.append((claim, bool(users) and not self._cluster.is_reserved(claim, pod)))
        exclusive = [] if allocatable is None else allocatable.check_sharing(usable, node)
        if exclusive:
            return exclusive
        return [Misfit("resourceclaim not available on the node")] if given_up else []


def _has_alternatives(claims: Sequence[Obj]) -> bool:
    return any(
        "firstAvailable" in request for claim in claims for request in device_requests(claim)
    )


def _score(claim: Obj, allocation: Obj) -> int:
    """Return the score of an allocation: a request's best alternative counts 8, the next 7 ..."""
    chosen = {result["request"] for result in allocation["devices"].get("results") or ()}
    return sum(
        FIRST_AVAILABLE_MAX - index
        for request in device_requests(claim)
        for index, (name, _) in enumerate(_alternatives(request))
        if request.get("firstAvailable") and name in chosen
    )


def _alternatives(request: Obj) -> list[tuple[str, Obj]]:
    """Return the alternatives of a request, each with its name (``request/subrequest``)."""
    if request.get("exactly") is not None:
        return [(request["name"], request["exactly"])]
    return [
        (f"{request['name']}/{subrequest['name']}", subrequest)
        for subrequest in request.get("firstAvailable") or []
    ]
