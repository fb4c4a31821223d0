"""What if, line by line: would a pod fit a new node? For a program that asks many times.

A line in: {"id", "pod", "add", "cordon", "end"}; a line out: {"id", "pods": [{"pod", "fits",
"reasons": [{"reason", "nodes"}], "note"}]}, or {"id", "invalid"} where the line cannot be answered.
``add`` has Nodes and ResourceSlices, as a node group would add them: where there are Nodes, the
answer is about these alone. Each line is about the same snapshot; nothing of it stays.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict
from typing import Any

from conformance.compare.evidence import Object, name_of, reading
from conformance.compare.explain import Told, explain_snapshot
from conformance.compare.remedies import about
from conformance.compare.whatif import cordoned, ended, with_objects
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


def answer(snapshot: Snapshot, line: bytes) -> str:
    """The answer to one line; never raises for what the line says."""

    def respond(question: Mapping[str, Any]) -> dict[str, Any]:
        refuse_unknown_keys(question, _FIELDS)
        add = read_items(question, "add", _object)
        cordon, end = (read_items(question, field, _text) for field in ("cordon", "end"))
        try:
            changed = reading(lambda: changed_by(snapshot, add, "add", cordon, end))
            nodes = {name_of(obj) for obj in add if obj.get("kind") == "Node"}
            asked = about(changed, nodes) if nodes else changed
            told = explain_snapshot(asked, read_string(question, "pod"), suggest=False)
        except UsageError as error:
            raise InputError(str(error)) from None
        return {"pods": list(map(_answer, told))}

    return answer_line(line, respond)


def changed_by(
    snapshot: Snapshot,
    objects: Iterable[Object],
    where: str,
    cordon: Iterable[str],
    end: Iterable[str],
) -> Snapshot:
    """With objects added, nodes cordoned and pods ended. Raises UsageError: that cannot be."""
    added = list(objects)
    snapshot = with_objects(snapshot, added, where) if added else snapshot
    for node in cordon:
        snapshot = cordoned(snapshot, node)
    for pod in end:
        snapshot = ended(snapshot, pod)
    return snapshot


def _object(value: object) -> Object:
    obj = expect_object(value)
    for kind in (Node, ResourceSlice):
        if obj.get("kind") == kind.__name__:
            kind.from_dict(obj)
    return obj


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise InputError("expected a string")
    return value


def _answer(told: Told) -> dict[str, Any]:
    reasons = [asdict(item) for item in told.reasons]
    found = {"pod": told.subject, "fits": list(told.fits), "reasons": reasons}
    return {**found, "note": told.note} if told.note else found
