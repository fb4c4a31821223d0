"""Finds the node: what concerns the pod itself first, then node by node, devices last.

Follows PreFilter and Filter of the dynamicresources plugin (pkg/scheduler/framework/plugins/
dynamicresources/dynamicresources.go). Nodes are tried by name and the first that works is taken,
where the real scheduler would score them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from conformance.targets.base import Obj
from conformance.targets.reference.apiserver.store import name_of, uid_of
from conformance.targets.reference.cluster import Cluster
from conformance.targets.reference.controllers import pods
from conformance.targets.reference.controllers.claims import MAX_RESERVED
from conformance.targets.reference.faults import Fault
from conformance.targets.reference.scheduling import bindingconditions, distortion
from conformance.targets.reference.scheduling.nodefit import Misfit, matches, misfits
from conformance.targets.reference.scheduling.plan import Plan
from conformance.targets.reference.scheduling.shares import Shares
from reference_allocator.allocatable import AllocatableError, PodClaim
from reference_allocator.allocator import Allocator
from reference_allocator.api import ResourceSlice
from reference_allocator.api.defaulting import default_claim
from reference_allocator.extended import classes_by_resource, extended_claim

_SPECIAL_NAME: Final = "<extended-resources>"


class SchedulingError(Exception):
    """Scheduling this pod failed, as opposed to finding no place for it."""


class Filter:
    """Finds nodes in one cluster.

    Attributes:
        assumed: pod uid -> node that it was given, and to which it is not bound yet.
    """

    def __init__(self, cluster: Cluster) -> None:
        self.assumed: dict[str, str] = {}
        self._cluster = cluster
        self._store = cluster.store

    def prefilter(self, pod: Obj, claims: Sequence[Obj]) -> str | None:
        """Why no node needs to be looked at, None if there is no such reason."""
        for claim in claims:
            if "allocation" in claim["status"]:
                users = claim["status"].get("reservedFor") or []
                most = 1 if Fault.NO_SHARING in self._cluster.faults else MAX_RESERVED
                if len(users) >= most and not pods.is_reserved(claim, pod):
                    return "resourceclaim in use"
                continue
            for request in (claim["spec"].get("devices") or {}).get("requests") or []:
                for name, wanted in _alternatives(request):
                    class_name = wanted["deviceClassName"]
                    if self._store.get("DeviceClass", "", class_name) is None:
                        return f"request {name}: device class {class_name} does not exist"
        return None

    def filter(self, pod: Obj, plan: Plan, nodes: Sequence[Obj]) -> Mapping[str, Sequence[Misfit]]:
        """Fill the plan in with the first node that suits.

        Returns:
            Node -> why it does not suit; empty when one was found.

        Raises:
            SchedulingError: the claims cannot be evaluated at all.
            AllocationError: a node selector does not parse.
            InputError: an object in the store has not the form that the allocator expects.
        """
        resources: Mapping[str, str] = {}
        ignored = Fault.IGNORES_EXTENDED_RESOURCES in self._cluster.faults
        if self._cluster.gates.get("DRAExtendedResource") and not ignored:
            resources = classes_by_resource(self._store.all("DeviceClass"))
        backed = frozenset(resources)
        everyone = [pod for pod in self._store.all("Pod") if not pods.is_finished(pod)]
        allocator: Allocator | None = None
        shares = self._shares()
        unfit: dict[str, Sequence[Misfit]] = {}
        for node in nodes:
            others = [
                other
                for other in everyone
                if name_of(node) in {other["spec"].get("nodeName"), self.assumed.get(uid_of(other))}
            ]
            found: Sequence[Misfit] = misfits(pod, node, others, backed)
            if not found:
                found = self._unavailable(pod, plan, node, shares)
            if not found:
                to_allocate = [c for c in plan.claims if "allocation" not in c["status"]]
                special, mappings = _special(pod, self._seen(node), resources)
                if special is not None:
                    to_allocate.append(special)
                if to_allocate and allocator is None:
                    allocator = self._allocator()
                allocations: tuple[Obj, ...] = ()
                if to_allocate and allocator is not None:
                    allocations, found = self._allocate(allocator, node, to_allocate)
                statuses: list[Obj] = []
                if not found and shares is not None:
                    entries = self._pod_claims(pod, to_allocate, allocations)
                    try:
                        statuses, found = shares.fit(pod, entries, node, others)
                    except AllocatableError as error:
                        raise SchedulingError(str(error)) from None
                if not found:
                    plan.node, plan.to_allocate, plan.allocations = node, to_allocate, allocations
                    plan.special, plan.mappings = special, mappings
                    plan.shares = statuses
                    return {}
            unfit[name_of(node)] = found
        return unfit

    def _shares(self) -> Shares | None:
        """None where devices have nothing to do with what a node has."""
        ignored = Fault.IGNORES_NODE_RESOURCES in self._cluster.faults
        if not self._cluster.gates.get("DRANodeAllocatableResources") or ignored:
            return None
        return Shares([ResourceSlice.from_dict(item) for item in self._cluster.slices()])

    def _pod_claims(
        self, pod: Obj, to_allocate: Sequence[Obj], allocations: Sequence[Obj]
    ) -> list[PodClaim]:
        """All claims of a pod with the allocations that they have or would get."""
        new = {uid_of(c): item for c, item in zip(to_allocate, allocations, strict=True)}
        found = []
        for entry, claim in pods.claims(self._cluster, pod):
            if claim is not None:
                allocation = new.pop(uid_of(claim), None) or claim["status"].get("allocation")
                found.append(PodClaim(entry["name"], name_of(claim), allocation or {}))
        found += [PodClaim("", _SPECIAL_NAME, allocation) for allocation in new.values()]
        return found

    def _seen(self, node: Obj) -> Obj:
        """The node, of which a fault hides what device plugins have given it."""
        hidden = Fault.IGNORES_DEVICE_PLUGINS in self._cluster.faults
        return {**node, "status": {}} if hidden else node

    def _slices(self) -> list[Obj]:
        if Fault.IGNORES_TAINT_RULES in self._cluster.faults:
            return self._store.all("ResourceSlice")
        return self._cluster.slices()

    def _allocator(self) -> Allocator:
        faults = self._cluster.faults
        return Allocator(
            self._cluster.features,
            distortion.slices(faults, self._slices()),
            distortion.classes(faults, self._store.all("DeviceClass")),
            distortion.allocated(faults, self._store.all("ResourceClaim")),
            kubernetes=self._cluster.minor,
        )

    def _allocate(
        self, allocator: Allocator, node: Obj, claims: Sequence[Obj]
    ) -> tuple[tuple[Obj, ...], Sequence[Misfit]]:
        faults = self._cluster.faults
        asked = [default_claim(c) for c in distortion.claims(faults, claims)]
        outcome = allocator.allocate(node, asked)
        less = distortion.without_all(faults, asked)
        if outcome.kind != "allocated" and less is not None:
            outcome = allocator.allocate(node, less)
        if outcome.kind in {"error", "timeout"}:
            raise SchedulingError(outcome.error)
        if outcome.kind != "allocated":
            return (), [Misfit(outcome.error or "cannot allocate all claims")]
        return outcome.allocations, ()

    def _unavailable(
        self, pod: Obj, plan: Plan, node: Obj, shares: Shares | None
    ) -> Sequence[Misfit]:
        """Claims that have devices already, which cannot be used here, or not by this pod."""
        usable: list[tuple[Obj, bool]] = []
        given_up = False
        for claim in plan.claims:
            allocation = claim["status"].get("allocation")
            if allocation is None:
                continue
            selector = allocation.get("nodeSelector")
            elsewhere = selector is not None and not matches(selector, node)
            if elsewhere or bindingconditions.is_hopeless(self._cluster, claim):
                given_up = True
                if claim not in plan.unavailable:
                    plan.unavailable.append(claim)
            else:
                users = claim["status"].get("reservedFor") or []
                usable.append((claim, bool(users) and not pods.is_reserved(claim, pod)))
        shared = Fault.SHARES_NODE_RESOURCES in self._cluster.faults
        exclusive = [] if shares is None or shared else shares.shared(usable, node)
        if exclusive:
            return exclusive
        return [Misfit("resourceclaim not available on the node")] if given_up else []


def _special(pod: Obj, node: Obj, resources: Mapping[str, str]) -> tuple[Obj | None, list[Obj]]:
    """The claim for extended resources, with the name that it has until it is stored."""
    found = extended_claim(pod, node, resources)
    if found is None:
        return None, []
    claim: Obj = {**found.claim, "status": {}}
    claim["metadata"] |= {"name": _SPECIAL_NAME, "uid": f"{uid_of(pod)}-extended"}
    return claim, [dict(mapping) for mapping in found.mappings]


def _alternatives(request: Obj) -> list[tuple[str, Obj]]:
    """What a request asks for: name, ``request/subrequest`` for alternatives, and the wish."""
    if request.get("exactly") is not None:
        return [(request["name"], request["exactly"])]
    return [
        (f"{request['name']}/{wanted['name']}", wanted)
        for wanted in request.get("firstAvailable") or []
    ]
