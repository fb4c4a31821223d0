"""Finds the node: what concerns the pod itself first, then node by node, devices last.

Follows PreFilter and Filter of the dynamicresources plugin (pkg/scheduler/framework/plugins/
dynamicresources/dynamicresources.go). Nodes are tried by name and the first that works is taken,
where the real scheduler would score them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from conformance.targets.base import Obj
from conformance.targets.reference.cluster import Cluster
from conformance.targets.reference.controllers import pods
from conformance.targets.reference.controllers.claims import MAX_RESERVED
from conformance.targets.reference.faults import Fault
from conformance.targets.reference.scheduling import distortion, extended
from conformance.targets.reference.scheduling.nodefit import Misfit, matches, misfits
from conformance.targets.reference.scheduling.plan import Plan
from conformance.targets.reference.store import name_of, uid_of
from reference_allocator.allocator import Allocator
from reference_allocator.defaults import default_claim

_SPECIAL_NAME: Final = "<extended-resources>"


class SchedulingError(Exception):
    """Scheduling this pod failed, as opposed to finding no place for it."""


class Filter:
    """Finds nodes in one cluster."""

    def __init__(self, cluster: Cluster) -> None:
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
        resources = {}
        ignored = Fault.IGNORES_EXTENDED_RESOURCES in self._cluster.faults
        if self._cluster.gates.get("DRAExtendedResource") and not ignored:
            resources = extended.classes_by_resource(self._store.all("DeviceClass"))
        backed = frozenset(resources)
        everyone = [pod for pod in self._store.all("Pod") if not pods.is_finished(pod)]
        allocator: Allocator | None = None
        unfit: dict[str, Sequence[Misfit]] = {}
        for node in nodes:
            others = [other for other in everyone if other["spec"].get("nodeName") == name_of(node)]
            found: Sequence[Misfit] = misfits(pod, node, others, backed)
            if not found:
                found = _unavailable(plan, node)
            if not found:
                to_allocate = [c for c in plan.claims if "allocation" not in c["status"]]
                special, mappings = _special(pod, node, resources)
                if special is not None:
                    to_allocate.append(special)
                if to_allocate and allocator is None:
                    allocator = self._allocator()
                allocations: tuple[Obj, ...] = ()
                if to_allocate and allocator is not None:
                    allocations, found = self._allocate(allocator, node, to_allocate)
                if not found:
                    plan.node, plan.to_allocate, plan.allocations = node, to_allocate, allocations
                    plan.special, plan.mappings = special, mappings
                    return {}
            unfit[name_of(node)] = found
        return unfit

    def _allocator(self) -> Allocator:
        faults = self._cluster.faults
        return Allocator(
            self._cluster.features,
            distortion.slices(faults, self._store.all("ResourceSlice")),
            distortion.classes(faults, self._store.all("DeviceClass")),
            distortion.allocated(faults, self._store.all("ResourceClaim")),
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


def _unavailable(plan: Plan, node: Obj) -> list[Misfit]:
    """Claims whose devices are for other nodes."""
    for claim in plan.claims:
        selector = (claim["status"].get("allocation") or {}).get("nodeSelector")
        if selector is not None and not matches(selector, node):
            if claim not in plan.unavailable:
                plan.unavailable.append(claim)
            return [Misfit("resourceclaim not available on the node")]
    return []


def _special(pod: Obj, node: Obj, resources: Mapping[str, str]) -> tuple[Obj | None, list[Obj]]:
    """The claim for extended resources, with the name that it has until it is stored."""
    if not extended.wanted(pod, resources):
        return None, []
    claim, mappings = extended.build(pod, node, resources)
    if not claim["spec"]["devices"]["requests"]:
        return None, []
    claim["metadata"].update(name=_SPECIAL_NAME, uid=f"{uid_of(pod)}-extended")
    return claim, mappings


def _alternatives(request: Obj) -> list[tuple[str, Obj]]:
    """What a request asks for: name, ``request/subrequest`` for alternatives, and the wish."""
    if request.get("exactly") is not None:
        return [(request["name"], request["exactly"])]
    return [
        (f"{request['name']}/{wanted['name']}", wanted)
        for wanted in request.get("firstAvailable") or []
    ]
