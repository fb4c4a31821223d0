"""What if, line by line: would a pod fit a new node? For a program that asks many times.

A line in: {"id", "pod", "add", "cordon", "end"}; a line out: {"id", "pods": [{"pod", "fits",
"reasons": [{"reason", "nodes"}], "note"}]}, or {"id", "invalid"} where the line cannot be answered.
``add`` has Nodes and ResourceSlices, as a node group would add them: where there are Nodes, the
answer is about these alone. Each line is about the same snapshot; nothing of it stays.

A pod that would fit a new node is the question that is asked most, so that is answered by the part
of the snapshot that it depends on.

A line {"id", "events": [{"type", "object"}]} asks nothing: the snapshot follows what a watch of the
cluster tells, all events of a line or none, and the answer is {"id", "changed"}: how many objects
are others now. An id is a text or an integer.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, replace
from functools import partial
from typing import Any

from conformance.compare.case import named_keys
from conformance.compare.evidence import Object, ask_reference, full_name, key_of, name_of
from conformance.compare.explain import PendingExplanation, explain_snapshot
from conformance.compare.following import FollowedSnapshot
from conformance.compare.remedies import restrict_to_nodes
from conformance.compare.waiting import waiting_of
from conformance.compare.whatif import add_objects, cordon_node, end_pod
from kube.base.errors import UsageError
from reference_allocator.api import Node, ResourceSlice
from reference_allocator.api.reading import (
    InputError,
    expect_object,
    read_items,
    read_string,
    refuse_unknown_keys,
)
from reference_allocator.snapshot import Snapshot
from reference_allocator.wire.lines import answer_line

_FIELDS = ("id", "pod", "add", "cordon", "end")


def answer_question(followed: FollowedSnapshot, line: bytes) -> str:
    """Return the answer to one line; never raise for what the line says."""

    def respond(question: Mapping[str, Any]) -> dict[str, Any]:
        if "events" in question:
            refuse_unknown_keys(question, ("id", "events"))
            return {"changed": followed.apply(read_items(question, "events", expect_object))}
        refuse_unknown_keys(question, _FIELDS)
        add = read_items(question, "add", _parse_object)
        cordon, end = (read_items(question, field, _parse_text) for field in ("cordon", "end"))
        name = read_string(question, "pod")
        try:
            by_part = None if cordon or end else explain_by_part(followed, name, add)
            explained = [by_part] if by_part else explain_by_all(followed, name, add, cordon, end)
        except UsageError as error:
            raise InputError(str(error)) from None
        return {"pods": list(map(_answer_fields, explained))}

    return answer_line(line, respond, _read_id)


def _read_id(question: Mapping[str, Any], key: str) -> object:
    """Return an id as it was given: a text, or an integer."""
    value = question.get(key)
    is_integer = isinstance(value, int) and not isinstance(value, bool)
    return value if is_integer else read_string(question, key)


def explain_by_part(
    followed: FollowedSnapshot, name: str, added: Sequence[Object]
) -> PendingExplanation | None:
    """Return whether a pod fits new nodes, as `explain_by_all` does; None: it takes the whole.

    Raises UsageError: what is added, or the pod, cannot be used.
    """
    part = followed.select_part(name, added)
    if part is None:
        return None
    changed = ask_reference(lambda: change_snapshot(part, added, "add", (), ()))
    [explained] = explain_snapshot(changed, name, suggest=False)
    case = waiting_of(changed, name).case
    # A note can be about what is not in the part.
    if explained.note or case is None:
        return None
    if not explained.fits:
        return explained
    fails = ask_reference(partial(followed.may_end_attempt, case))
    return None if fails else explained


def explain_by_all(
    followed: FollowedSnapshot,
    name: str,
    added: Iterable[Object],
    cordon: Iterable[str],
    end: Iterable[str],
) -> list[PendingExplanation]:
    """Return whether what waits fits the changed snapshot; where Nodes are added, these alone.

    Raises UsageError: it cannot be changed so, or nothing has that name.
    """
    added = list(added)
    nodes = {name_of(obj) for obj in added if obj.get("kind") == "Node"}
    whole = followed.snapshot
    changed = ask_reference(lambda: change_snapshot(whole, added, "add", cordon, end))
    if nodes:
        return _explain_for_nodes(changed, name, nodes)
    return explain_snapshot(changed, name, suggest=False)


def _explain_for_nodes(snapshot: Snapshot, name: str, nodes: set[str]) -> list[PendingExplanation]:
    """Return whether what waits fits some nodes, for which the others are seldom looked at.

    They are where it fits, because an error on one ends the scheduler's attempt for all; and where
    a claim has devices, because the scheduler takes back one that nobody uses only if no node does.
    """
    held = set(map(key_of, snapshot.allocated))
    holding = {full_name(pod) for pod in snapshot.pods if not held.isdisjoint(named_keys(pod))}
    relevant = restrict_to_nodes(snapshot, nodes)
    answers: list[PendingExplanation] = []
    for explained in explain_snapshot(relevant, name, suggest=False):
        if explained.fits or explained.subject in holding:
            subject = explained.subject if snapshot.pods else name
            [among_all] = explain_snapshot(snapshot, subject, suggest=False)
            fits = tuple(node for node in among_all.fits if node in nodes)
            explained = replace(explained, fits=fits, note=among_all.note)
        answers.append(explained)
    return answers


def change_snapshot(
    snapshot: Snapshot,
    objects: Iterable[Object],
    where: str,
    cordon: Iterable[str],
    end: Iterable[str],
) -> Snapshot:
    """Return it with objects added, nodes cordoned and pods ended. Raises UsageError: it cannot."""
    added = list(objects)
    snapshot = add_objects(snapshot, added, where) if added else snapshot
    for node in cordon:
        snapshot = cordon_node(snapshot, node)
    for pod in end:
        snapshot = end_pod(snapshot, pod)
    return snapshot


def _parse_object(value: object) -> Object:
    obj = expect_object(value)
    for kind in (Node, ResourceSlice):
        if obj.get("kind") == kind.__name__:
            kind.from_dict(obj)
    return obj


def _parse_text(value: object) -> str:
    if not isinstance(value, str):
        raise InputError("expected a string")
    return value


def _answer_fields(explained: PendingExplanation) -> dict[str, Any]:
    reasons = [asdict(item) for item in explained.reasons]
    fields = {"pod": explained.subject, "fits": list(explained.fits), "reasons": reasons}
    return {**fields, "note": explained.note} if explained.note else fields
