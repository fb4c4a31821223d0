"""Judges a program's answer to a question: the reference answers it too, and the checker looks on.

Three levels, each of which asks more than the one before: ``fits`` (yes or no for each node),
``admissible`` (and the devices break no rule), ``identical`` (and they are those of Kubernetes).
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal

from conformance.allocators.contract import AllocationAnswer, NodeAnswer
from reference_allocator.api.reading import InputError
from reference_allocator.cel import CelUnsupportedError
from reference_allocator.checks import Violation, check
from reference_allocator.explain import explain
from reference_allocator.gates import LATEST
from reference_allocator.snapshot import API_VERSION, KIND, Snapshot
from reference_allocator.wire import answer_allocate
from reference_allocator.wire.lines import check_form

Level = Literal["fits", "admissible", "identical"]
Kind = Literal["wrong yes", "wrong no", "inadmissible", "other devices", "timeout", "unsupported"]

Json = dict[str, Any]

WRONG: Final[tuple[Kind, ...]] = ("wrong yes", "wrong no", "inadmissible", "other devices")
"""The kinds of findings that are differences."""

COPIED_RULES: Final = frozenset({"config", "node-selector", "result-fields", "share"})
"""Rules about what a result repeats of other objects, which is no choice of devices."""

REFERENCE_SECONDS: Final = 10.0
"""How long the reference looks for devices on one node, which is as long as the scheduler does."""

_EXPLAINING_SECONDS = 5.0
_PARTS = ("slices", "deviceClasses", "nodes", "claims", "allocated")


@dataclass(frozen=True, slots=True)
class Finding:
    """What is wrong with an answer for one node.

    Attributes:
        node: its name.
        kind: a difference (:data:`WRONG`), or why there is no answer to judge.
        said: the outcome of the program.
        right: that of the reference.
        detail: of an inadmissible answer, the first rule that is broken; of another, the error.
    """

    node: str
    kind: Kind
    said: str
    right: str
    detail: str = ""


def answer_of_reference(question: Mapping[str, Any], kubernetes: str = LATEST) -> Json:
    """Return the reference's answer to a question, decoded."""
    line = answer_allocate(json.dumps(question), timeout=REFERENCE_SECONDS, kubernetes=kubernetes)
    answer: Json = json.loads(line)
    return answer


def explain_no_judgement(reference: Mapping[str, Any]) -> str:
    """Return why the reference's answer judges nothing; empty if it does."""
    if "invalid" in reference or "unsupported" in reference:
        return str(reference.get("invalid") or reference["unsupported"])
    if any(node["outcome"] == "timeout" for node in reference.get("nodes", ())):
        return f"the reference gave up after {REFERENCE_SECONDS:g} s"
    return ""


def judge_answer(
    question: Json,
    answer: AllocationAnswer,
    reference: Json,
    level: Level,
    kubernetes: str = LATEST,
) -> Iterator[Finding]:
    """Yield what is wrong with the answer for each node, at most one finding for a node.

    Args:
        answer: one that names no reason why there is none.
        reference: the reference's answer, which judges (`explain_no_judgement`).
    """
    nodes = {node["metadata"]["name"]: node for node in question.get("nodes", ())}
    for given, right in zip(answer.nodes, reference.get("nodes", ()), strict=True):
        found = _judge_fit(given, right)
        if found is None and given.outcome == "allocated" and level != "fits":
            found = _judge_devices(question, nodes[given.node], given, kubernetes)
            if found is None and level == "identical" and not _same_devices(given, right):
                found = Finding(
                    given.node, "other devices", "allocated", "allocated", _name_devices(right)
                )
        if found is not None:
            yield found


def _judge_fit(given: NodeAnswer, right: Mapping[str, Any]) -> Finding | None:
    if given.outcome in ("timeout", "unsupported"):
        kind: Kind = "timeout" if given.outcome == "timeout" else "unsupported"
        return Finding(given.node, kind, given.outcome, right["outcome"], given.error)
    says, fits = given.outcome == "allocated", right["outcome"] == "allocated"
    if says == fits:
        return None
    kind = "wrong yes" if says else "wrong no"
    return Finding(given.node, kind, given.outcome, right["outcome"], given.error)


def _judge_devices(
    question: Json, node: Json, given: NodeAnswer, kubernetes: str
) -> Finding | None:
    wanted = question.get("claims") or []
    pending = [
        index
        for index, claim in enumerate(wanted)
        if not (claim.get("status") or {}).get("allocation")
    ]
    if not pending:
        return None
    broken = "allocations: there are none" if not given.allocations else ""
    if not broken:
        claims = [wanted[index] for index in pending]
        allocations = [given.allocations[index] for index in pending]
        try:
            for index, allocation in enumerate(allocations):
                _check_allocation(allocation, index)
            broken = next(
                map(str, broken_rules(question, node, claims, allocations, kubernetes)), ""
            )
        except InputError as error:
            broken = str(error)
    if not broken:
        return None
    return Finding(given.node, "inadmissible", "allocated", "allocated", broken)


def _check_allocation(allocation: Json, index: int) -> None:
    """Raise InputError: an allocation has not the form of an AllocationResult."""
    try:
        check_form(allocation, "resource/v1.AllocationResult")
    except InputError as error:
        raise error.with_parent("allocations", index) from None


def broken_rules(
    question: Json, node: Json, claims: list[Json], allocations: list[Json], kubernetes: str
) -> list[Violation]:
    """Return the rules that a choice of devices breaks; what results repeat is left aside.

    Raises InputError: an allocation has not the form of one.
    """
    found = check(snapshot_of(question, kubernetes), node, claims, allocations)
    return [violation for violation in found if violation.rule not in COPIED_RULES]


def snapshot_of(question: Mapping[str, Any], kubernetes: str = LATEST) -> Snapshot:
    """Return a question as a snapshot of a Kubernetes minor.

    A snapshot has each object once; of two classes of one name allocators take the last. Claims
    of the pod that have their devices already are among the allocated ones.
    """
    parts: Json = {key: [*(question.get(key) or ())] for key in _PARTS}
    parts["deviceClasses"] = [
        *{item["metadata"]["name"]: item for item in parts["deviceClasses"]}.values()
    ]
    given = [item for item in parts["claims"] if (item.get("status") or {}).get("allocation")]
    if given:
        names = [item["metadata"] for item in given]
        parts["claims"] = [item for item in parts["claims"] if item not in given]
        parts["allocated"] = given + [
            item for item in parts["allocated"] if item["metadata"] not in names
        ]
    return Snapshot.from_dict(
        {"apiVersion": API_VERSION, "kind": KIND, "kubernetes": kubernetes, **parts}
        | {"features": question.get("features") or {}}
    )


def explain_finding(question: Json, finding: Finding, kubernetes: str = LATEST) -> str:
    """Return in a sentence what is wrong and why: what is lacking, which devices would do."""
    if finding.kind == "inadmissible":
        return f"gives out what it must not on {finding.node}: {finding.detail}"
    if finding.kind == "wrong yes":
        return f"says it fits {finding.node}: {_explain_refusal(question, finding, kubernetes)}"
    right = _right_answer(question, finding, kubernetes)
    if finding.kind == "other devices":
        return f"takes other devices on {finding.node} than Kubernetes: {_name_devices(right)}"
    why = f" ({finding.said}: {finding.detail})" if finding.detail else f" ({finding.said})"
    return f"says it does not fit {finding.node}{why}: {_name_devices(right)} would do"


def _right_answer(question: Json, finding: Finding, kubernetes: str) -> Json:
    """Return the reference's answer for the node of a finding."""
    nodes: list[Json] = answer_of_reference(question, kubernetes).get("nodes", [])
    return next((node for node in nodes if node["node"] == finding.node), {})


def _explain_refusal(question: Json, finding: Finding, kubernetes: str) -> str:
    right = _right_answer(question, finding, kubernetes)
    if right.get("error"):
        return str(right["error"])
    try:
        explained = explain(snapshot_of(question, kubernetes), seconds=_EXPLAINING_SECONDS)
    except (InputError, CelUnsupportedError) as error:
        return str(error)
    report = next((item for item in explained.nodes if item.node == finding.node), None)
    if report is None or report.kind == "allocated":
        return "a claim of the pod has devices that this node cannot use"
    return report.text


def _same_devices(given: NodeAnswer, right: Mapping[str, Any]) -> bool:
    return _devices(given.allocations) == _devices(right.get("allocations", ()))


def _devices(allocations: Any) -> list[list[tuple[Any, ...]]]:
    """Return (request, driver, pool, device) of each result, claim by claim."""
    keys = ("request", "driver", "pool", "device")
    return [
        [
            tuple(result.get(key) for key in keys)
            for result in (allocation.get("devices") or {}).get("results") or ()
        ]
        for allocation in allocations
    ]


def _name_devices(right: Mapping[str, Any]) -> str:
    names = [
        f"{driver}/{pool}/{device}"
        for claim in _devices(right.get("allocations", ()))
        for _, driver, pool, device in claim
    ]
    shown = ", ".join(names[:4])
    more = f" and {len(names) - 4} more" if len(names) > 4 else ""
    return shown + more if names else "no device at all"
