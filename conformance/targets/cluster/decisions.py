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
from conformance.targets.cluster.snapshots import allocation_of, make_snapshot, remove_allocation
from kube.observations import Decision
from kube.values import Obj, selected_node

_States = Mapping[str, list[tuple[int, Obj | None]]]
"""Uid of a claim -> its states, each with the version since which it had it."""


@dataclass(frozen=True, slots=True)
class _Transition:
    """A claim got an allocation in ``version`` (a resourceVersion)."""

    version: int
    uid: str
    claim_before: Obj
    claim_after: Obj

    @property
    def pod(self) -> tuple[str, str]:
        """The uid and name of the pod for which it was allocated; empty if it is for none."""
        return next(iter(_pods(self.claim_after)), ("", ""))


def _pods(claim: Obj) -> list[tuple[str, str]]:
    """Return uid and name of each pod for which a claim is reserved."""
    consumers = (claim.get("status") or {}).get("reservedFor") or []
    return [
        (consumer.get("uid", ""), consumer.get("name", ""))
        for consumer in consumers
        if consumer.get("resource") == "pods"
    ]


def find_decisions(
    history: History,
    namespace: str,
    pod_nodes: Mapping[str, str],
    kubernetes: str,
    gates: Mapping[str, bool],
) -> list[Decision]:
    """Return the decisions taken for claims of one namespace, oldest first.

    Args:
        history: states of slices, classes, nodes and claims, reduced.
        pod_nodes: pod uid -> name of the pod's node.
        gates: feature gates that are known, for the snapshots.
    """
    decisions = []
    states = dict(history.states("ResourceClaim"))
    for group in _group_by_decision(_find_transitions(states, namespace), states):
        first = group[0]
        pod_uid, pod_name = first.pod
        decided_uids = {transition.uid for transition in group}
        # The first write is the latest moment at which the scheduler can have decided. Later ones
        # of the group are its own work, so what is in between must not count as what it saw.
        # The claims themselves are left out: they are what was decided on, and not devices in use.
        objects_before = [
            obj
            for obj in history.at(first.version - 1)
            if obj["kind"] != "ResourceClaim" or obj["metadata"]["uid"] not in decided_uids
        ]
        claims = tuple(remove_allocation(transition.claim_before) for transition in group)
        allocations = tuple(allocation_of(transition.claim_after) or {} for transition in group)
        # Of any write: a gap between two of them could hide one that belongs to the group, or that
        # the pod was taken out of ``reservedFor``, which ends it.
        gaps = (history.explain_gap(transition.version) for transition in group)
        decisions.append(
            Decision(
                pod=pod_name,
                namespace=namespace,
                # The pod's node only where the allocation names none: a pod that could not be
                # bound may have been scheduled again, to another node, with another allocation.
                node=_selected_node(allocations) or pod_nodes.get(pod_uid, ""),
                claims=claims,
                allocations=allocations,
                snapshot=make_snapshot(kubernetes, gates, objects_before, claims),
                unknown=next(filter(None, gaps), ""),
            )
        )
    return decisions


def _find_transitions(states: _States, namespace: str) -> list[_Transition]:
    """Return each time that a claim of a namespace got an allocation, in the order of versions."""
    transitions = []
    for uid, versions in states.items():
        previous: Obj | None = None
        for version, state in versions:
            if state is not None and state["metadata"]["namespace"] == namespace:
                allocation = allocation_of(state)
                earlier_allocation = allocation_of(previous) if previous else None
                # Another allocation right after one is a new decision, too: the watch may have
                # missed the state without any. One that a scenario has written (`is_copied`) is no
                # decision of a scheduler.
                if (
                    allocation is not None
                    and allocation != earlier_allocation
                    and not is_copied(state)
                ):
                    # A claim that is first seen with its allocation has no state before it.
                    transitions.append(_Transition(version, uid, previous or state, state))
            previous = state
    # By version and not by claim: only so are the writes for one pod in the scheduler's order.
    return sorted(transitions, key=lambda transition: transition.version)


def _group_by_decision(transitions: list[_Transition], states: _States) -> list[list[_Transition]]:
    """Return the transitions of each decision together, in the order of their first ones."""

    def was_given_up(transition: _Transition, by: int) -> bool:
        """Return whether the pod lost its reservation of that claim again before version ``by``."""
        return any(
            transition.version < version < by
            and (state is None or transition.pod not in _pods(state))
            for version, state in states[transition.uid]
        )

    groups: list[list[_Transition]] = []
    newest_group: dict[str, list[_Transition]] = {}  # by pod uid
    for transition in transitions:
        pod_uid = transition.pod[0]
        # An allocation for no pod (a claim that was written by hand) is a decision by itself.
        group = newest_group.get(pod_uid) if pod_uid else None
        # PreBind writes each claim once. So the same claim a second time, or one that the pod no
        # longer holds (Unreserve), shows that the pod was scheduled again, from a later state.
        if group is None or any(
            earlier.uid == transition.uid or was_given_up(earlier, by=transition.version)
            for earlier in group
        ):
            group = []
            groups.append(group)
            newest_group[pod_uid] = group
        group.append(transition)
    return groups


def _selected_node(allocations: tuple[Obj, ...]) -> str:
    """Return the node that one of the allocations names, "" where none does."""
    named = (selected_node(allocation.get("nodeSelector")) for allocation in allocations)
    return next(filter(None, named), "")
