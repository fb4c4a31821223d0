"""Finds the scheduling decisions in a history of claims, and what each was decided from.

The scheduler decides on all claims of a pod at once, then writes ``status.allocation`` and
``status.reservedFor`` of one claim after the other, each in one update. So the claims that got
their allocation for the same pod are one decision, made before the first of these updates. Where
one cannot be written, the pod is taken out of ``reservedFor`` of those that were, and is scheduled
again: what is allocated from then on is another decision.
(Source: ``pkg/scheduler/framework/plugins/dynamicresources``, ``PreBind``, ``bindClaim`` and
``Unreserve``.)
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from conformance.seam.overlaps import is_copied
from conformance.targets.cluster.history import History
from conformance.targets.cluster.snapshots import allocation_of, document, unallocated
from kube.observations import Decision
from kube.values import Obj, selected_node

_States = Mapping[str, list[tuple[int, Obj | None]]]
"""Uid of a claim -> its states, each with the version since which it had it."""


@dataclass(frozen=True, slots=True)
class _Transition:
    """A claim got an allocation in ``version``."""

    version: int
    uid: str
    before: Obj
    after: Obj

    @property
    def pod(self) -> tuple[str, str]:
        """Uid and name of the pod for which it was allocated; empty if it is for none."""
        return next(iter(_pods(self.after)), ("", ""))


def _pods(claim: Obj) -> list[tuple[str, str]]:
    """Uid and name of each pod for which a claim is reserved."""
    consumers = (claim.get("status") or {}).get("reservedFor") or []
    return [
        (one.get("uid", ""), one.get("name", ""))
        for one in consumers
        if one.get("resource") == "pods"
    ]


def decisions_of(
    history: History,
    namespace: str,
    pod_nodes: Mapping[str, str],
    kubernetes: str,
    gates: Mapping[str, bool],
) -> list[Decision]:
    """The decisions taken for claims of one namespace, oldest first.

    Args:
        history: states of slices, classes, nodes and claims, reduced.
        pod_nodes: pod uid -> name of the pod's node.
        gates: feature gates that are known, for the snapshots.
    """
    found = []
    states = dict(history.states("ResourceClaim"))
    for group in _groups(_transitions(states, namespace), states):
        first = group[0]
        uid, pod = first.pod
        ours = {transition.uid for transition in group}
        before = [
            obj
            for obj in history.at(first.version - 1)
            if obj["kind"] != "ResourceClaim" or obj["metadata"]["uid"] not in ours
        ]
        claims = tuple(unallocated(transition.before) for transition in group)
        allocations = tuple(allocation_of(transition.after) or {} for transition in group)
        gaps = (history.gap(transition.version) for transition in group)
        found.append(
            Decision(
                pod=pod,
                namespace=namespace,
                # The pod's node only where the allocation names none: a pod that could not be
                # bound may have been scheduled again, to another node, with another allocation.
                node=_selected_node(allocations) or pod_nodes.get(uid, ""),
                claims=claims,
                allocations=allocations,
                snapshot=document(kubernetes, gates, before, claims),
                unknown=next(filter(None, gaps), ""),
            )
        )
    return found


def _transitions(states: _States, namespace: str) -> list[_Transition]:
    found = []
    for uid, versions in states.items():
        before: Obj | None = None
        for version, state in versions:
            if state is not None and state["metadata"]["namespace"] == namespace:
                allocation = allocation_of(state)
                earlier = allocation_of(before) if before else None
                if allocation is not None and allocation != earlier and not is_copied(state):
                    found.append(_Transition(version, uid, before or state, state))
            before = state
    return sorted(found, key=lambda transition: transition.version)


def _groups(transitions: list[_Transition], states: _States) -> list[list[_Transition]]:
    def given_up(one: _Transition, by: int) -> bool:
        """Whether the pod lost its reservation of that claim again before a version."""
        return any(
            one.version < version < by and (state is None or one.pod not in _pods(state))
            for version, state in states[one.uid]
        )

    groups: list[list[_Transition]] = []
    latest: dict[str, list[_Transition]] = {}  # pod uid -> its newest group
    for transition in transitions:
        pod = transition.pod[0]
        group = latest.get(pod) if pod else None
        if group is None or any(
            other.uid == transition.uid or given_up(other, transition.version) for other in group
        ):
            group = []
            groups.append(group)
            latest[pod] = group
        group.append(transition)
    return groups


def _selected_node(allocations: tuple[Obj, ...]) -> str:
    """The node that one of the allocations names, "" where none does."""
    named = (selected_node(allocation.get("nodeSelector")) for allocation in allocations)
    return next(filter(None, named), "")
