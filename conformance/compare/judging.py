"""Judge one allocation by the reference: admissible, not equal.

Several allocations of a claim can be right, so a target is not asked for the same answer as the
reference, but for one that breaks no rule. The reference is asked twice, by two independent parts
of it: its search (which devices would you take on that node?) and its checker (does what was taken
break a rule?). The choice of the node is the scheduler's and is not judged.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from conformance.compare.evidence import (
    Obj,
    eligible_nodes,
    lacks_node_resources,
    name_of,
    undecided_claims,
)
from conformance.compare.waiting import group_of
from conformance.compare.witness import REFERENCE, Witness
from conformance.jsondiff import json_text
from conformance.results.events.comparison import Judgement, Verdict
from kube.base.errors import UsageError

Devices = dict[str, Counter[tuple[str, str, str]]]


def devices_of(allocation: Mapping[str, Any]) -> Devices:
    """Return request -> (driver, pool, device) as a multiset; share ids and order do not count."""
    devices: Devices = {}
    for result in (allocation.get("devices") or {}).get("results") or ():
        names = (result.get("driver", ""), result.get("pool", ""), result.get("device", ""))
        devices.setdefault(result.get("request", ""), Counter())[names] += 1
    return devices


def compare_other_fields(
    claims: Sequence[Obj], allocated: Sequence[Obj], expected: Sequence[Obj]
) -> Iterator[str]:
    """Yield differences in what an allocation says besides devices, these being the same."""
    for claim, allocation, reference_allocation in zip(claims, allocated, expected, strict=True):
        name = name_of(claim)
        for field, have, want in (
            ("devices.config", _config(allocation), _config(reference_allocation)),
            ("nodeSelector", _selector(allocation), _selector(reference_allocation)),
        ):
            if have != want:
                yield (
                    f"claim {name}: allocation.{field} is {json_text(have, 300)}; for these devices"
                    f" it is {json_text(want, 300)}"
                )


def check_preferences(
    claims: Sequence[Obj], allocated: Sequence[Devices], expected: Sequence[Devices]
) -> Iterator[str]:
    """Yield where a less preferred alternative was taken though a preferred one was available.

    KEP-4816: the alternatives of ``firstAvailable`` are tried in their order. The search settles
    requests one after the other, so its answer binds only while all choices before are the same.
    """
    for claim, devices_taken, devices_expected in zip(claims, allocated, expected, strict=True):
        devices = (claim.get("spec") or {}).get("devices") or {}
        for request in devices.get("requests") or ():
            name = request.get("name", "")
            names = [f"{name}/{item.get('name', '')}" for item in request.get("firstAvailable", ())]
            alternative_taken = next((item for item in names if item in devices_taken), None)
            alternative_expected = next((item for item in names if item in devices_expected), None)
            if (
                alternative_taken is not None
                and alternative_expected is not None
                and alternative_taken != alternative_expected
            ):
                if names.index(alternative_taken) > names.index(alternative_expected):
                    yield (
                        f"preference: claim {name_of(claim)} got alternative {alternative_taken},"
                        f" though {alternative_expected} comes before it and the reference can"
                        " satisfy that one"
                    )
                return
            if any(
                devices_taken.get(item) != devices_expected.get(item) for item in (name, *names)
            ):
                return


def _config(allocation: Mapping[str, Any]) -> list[Any]:
    """Return configurations in their order, which has a meaning; absent and empty are the same."""
    return [
        {key: value for key, value in item.items() if value not in (None, [])}
        for item in (allocation.get("devices") or {}).get("config") or ()
    ]


def _selector(allocation: Mapping[str, Any]) -> Any:
    """Return the node selector with terms and values in a fixed order: they are sets."""
    selector = allocation.get("nodeSelector")
    return None if not selector else _as_set(selector)


def _as_set(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _as_set(item) for key, item in sorted(value.items()) if item not in (None, [])}
    if isinstance(value, Sequence) and not isinstance(value, str):
        return sorted((_as_set(item) for item in value), key=lambda item: json_text(item, 10_000))
    return value


def names_of(allocated: Sequence[Devices]) -> str:
    """Return ``gpu-0, gpu-1 for gpu`` for each request; at most a few of them."""
    texts = []
    for devices in allocated:
        for request, counted in sorted(devices.items()):
            names = sorted(device for (_, _, device), n in counted.items() for _ in range(n))
            listed = ", ".join(names[:4]) + (f" and {len(names) - 4} more" if names[4:] else "")
            texts.append(f"{listed} for {request}")
    return "; ".join(texts[:8]) + (" ..." if texts[8:] else "") or "no device"


def judge(decision: Mapping[str, Any], witness: Witness = REFERENCE) -> Judgement:
    """Judge one decision by the snapshot that it was made from.

    It is a ``kube.observations.Decision`` as JSON; one that is malformed, or says that it is not
    complete, is a UsageError.
    """
    if decision.get("unknown"):
        raise UsageError(str(decision["unknown"]))
    pod, node, snapshot, claims, allocations = _read_decision(decision)
    violations = witness.check(snapshot, claims, allocations, node)
    answer = witness.allocate(snapshot, claims, node)
    if answer.allocations is None:
        if answer.proven:
            verdict = Verdict.IMPOSSIBLE
            rules = (
                f"it breaks: {'; '.join(violations)}"
                if violations
                else "yet no rule is broken, so the reference's search and its checker disagree"
            )
            reason = f"the reference finds no allocation on node {node} ({answer.reason}); {rules}"
        elif violations:
            verdict, reason = Verdict.INADMISSIBLE, violations[0]
        else:
            doubt = f"the reference's search gave up on node {node} ({answer.reason})"
            verdict, reason = Verdict.ADMISSIBLE, f"every rule holds; {doubt}"
        return Judgement(verdict, reason, violations, None, pod, node)
    devices_taken = [devices_of(item) for item in allocations]
    expected = [devices_of(item) for item in answer.allocations]
    same = devices_taken == expected
    if same:
        further = compare_other_fields(claims, allocations, answer.allocations)
    else:
        further = check_preferences(claims, devices_taken, expected)
    violations = tuple(dict.fromkeys((*violations, *further)))
    if violations:
        reason, expectation = violations[0], answer.allocations
        return Judgement(Verdict.INADMISSIBLE, reason, violations, expectation, pod, node)
    if same:
        reason = f"the reference picks the same devices on node {node}"
        return Judgement(Verdict.IDENTICAL, reason, (), None, pod, node)
    picks = f"{names_of(expected)}, not {names_of(devices_taken)}"
    reason = f"every rule holds; the reference would pick {picks}"
    return Judgement(Verdict.ADMISSIBLE, reason, (), answer.allocations, pod, node)


def judge_undecided(snapshot: Mapping[str, Any], witness: Witness = REFERENCE) -> Judgement | None:
    """Return ``missed`` if the reference allocates what a target left pending, None if it agrees.

    All open claims are tried together on one node, so that a pod with several claims is never
    called missed for one of them. The snapshot was taken while a pod was confirmed to be pending:
    an object with ``snapshot`` and ``pod`` (a v1 Pod), or the bare snapshot. Only nodes that suit
    the pod count (``evidence.eligible_nodes``). A pod of a PodGroup may wait for others of it, of
    which a snapshot does not tell: nothing is said of it.
    Raises UsageError: the snapshot is not well formed.
    """
    document, pod = undecided_parts(snapshot)
    if pod is not None and group_of(pod):
        return None
    claims = undecided_claims(document)
    if not claims:
        return None
    # The scheduler allocates on a node before it minds whether the pod's other claims can be used
    # there (dynamicresources.go, Filter).
    candidate_nodes = eligible_nodes(document, pod, of_claims=False)
    answers = {node: witness.allocate(document, claims, node) for node in candidate_nodes}
    if any(answer.failed for answer in answers.values()):
        return None  # An error on one node ends the scheduler's attempt, whatever others have.
    nodes = eligible_nodes(document, pod)
    for node, answer in answers.items():
        if node in nodes and answer.allocations is not None:
            if lacks_node_resources(document, pod, answer.allocations):
                continue
            names = ", ".join(map(name_of, claims))
            device_names = names_of([devices_of(item) for item in answer.allocations])
            reason = (
                f"{names} stayed pending; the reference allocates {device_names} on node {node}"
            )
            return Judgement(
                Verdict.MISSED, reason, (), answer.allocations, name_of(pod or {}), node
            )
    return None


def _read_decision(
    decision: Mapping[str, Any],
) -> tuple[str, str, Obj, tuple[Obj, ...], tuple[Obj, ...]]:
    """Return pod, node, snapshot, claims and allocations of a decision, checked for shape."""
    snapshot, node = decision.get("snapshot"), decision.get("node")
    claims, allocations = _objects(decision, "claims"), _objects(decision, "allocations")
    if not isinstance(snapshot, Mapping):
        raise UsageError("$.snapshot: is required and must be an object; give a saved decision")
    if not isinstance(node, str) or not node:
        raise UsageError("$.node: is required and must be the name of the chosen node")
    if not claims or len(claims) != len(allocations):
        raise UsageError(
            f"$.allocations: {len(allocations)} for {len(claims)} claims; each claim has one"
        )
    return str(decision.get("pod") or ""), node, dict(snapshot), claims, allocations


def undecided_parts(document: Mapping[str, Any]) -> tuple[Obj, Mapping[str, Any] | None]:
    """Return the snapshot and the pod, None where only the snapshot was kept."""
    snapshot, pod = document.get("snapshot"), document.get("pod")
    if not isinstance(snapshot, Mapping):
        return dict(document), None
    if pod is not None and not isinstance(pod, Mapping):
        raise UsageError("$.pod: must be a v1 Pod")
    if pod is not None and not isinstance(pod.get("metadata") or {}, Mapping):
        raise UsageError("$.pod.metadata: must be an object")
    return dict(snapshot), pod


def _objects(decision: Mapping[str, Any], field: str) -> tuple[Obj, ...]:
    items = decision.get(field)
    if (
        not isinstance(items, Sequence)
        or isinstance(items, str)
        or not all(isinstance(item, Mapping) for item in items)
    ):
        raise UsageError(f"$.{field}: is required and must be a list of objects")
    return tuple(dict(item) for item in items)
