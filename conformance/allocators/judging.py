"""Judges a program's answer to a question: the reference answers it too, and the checker looks on.

Three levels, each of which asks more than the one before: ``fits`` (yes or no for each node),
``admissible`` (and the devices break no rule), ``identical`` (and they are those of Kubernetes).
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final, Literal

from conformance.allocators.contract import AllocationAnswer, PodAnswer
from kube.base.text import counted
from kube.slices import is_allocated
from reference_allocator.api.limits import ALLOCATION_RESULTS_MAX
from reference_allocator.api.reading import InputError
from reference_allocator.cel import CelUnsupportedError
from reference_allocator.checks import Violation, check
from reference_allocator.explain import explain
from reference_allocator.extended import classes_by_resource, extended_claim
from reference_allocator.gates import LATEST
from reference_allocator.snapshot import API_VERSION, KIND, Snapshot
from reference_allocator.wire import SHARE_ID, answer_allocate
from reference_allocator.wire.lines import check_form

Level = Literal["fits", "admissible", "identical"]
Kind = Literal["wrong yes", "wrong no", "inadmissible", "other devices", "timeout", "unsupported"]

Json = dict[str, Any]
ClaimDevices = list[list[str]]
"""The devices of each claim of a pod as driver/pool/device, those of a claim sorted."""

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
        pod: which of the question's pods, 0 for the first.
        kind: a difference (:data:`WRONG`), or why there is no answer to judge.
        said: the outcome of the program.
        right: that of the reference.
        detail: of an inadmissible answer, the first rule that is broken; of another, the error.
        question: the pod's own (`question_of_pod`).
    """

    node: str
    kind: Kind
    said: str
    right: str
    detail: str = ""
    pod: int = 0
    question: Json = field(default_factory=dict, compare=False, repr=False)


def answer_of_reference(question: Mapping[str, Any], kubernetes: str = LATEST) -> Json:
    """Return the reference's answer to a question, decoded."""
    line = answer_allocate(json.dumps(question), timeout=REFERENCE_SECONDS, kubernetes=kubernetes)
    answer: Json = json.loads(line)
    return answer


def fits_of(reference: Json) -> dict[str, bool]:
    """Return node -> whether the first pod of a question fits, of an answer as decoded."""
    return {node["node"]: node["outcome"] == "allocated" for node in reference.get("nodes", ())}


def following_of(reference: Json) -> dict[str, list[bool]]:
    """Return node -> whether each pod that follows fits; empty where none follow."""
    return {
        node["node"]: [pod["outcome"] == "allocated" for pod in node["following"]]
        for node in reference.get("nodes", ())
        if "following" in node
    }


def devices_of(answer: Json) -> dict[str, list[ClaimDevices | None]]:
    """Return node -> the devices of each pod, the first first; None for one that does not fit."""
    return {
        node["node"]: [
            _sorted_names(pod.get("allocations") or ()) if pod["outcome"] == "allocated" else None
            for pod in (node, *(node.get("following") or ()))
        ]
        for node in answer.get("nodes", ())
    }


def explain_no_judgement(reference: Mapping[str, Any]) -> str:
    """Return why the reference's answer judges nothing; empty if it does."""
    if "invalid" in reference or "unsupported" in reference:
        return str(reference.get("invalid") or reference["unsupported"])
    if any(
        pod["outcome"] == "timeout"
        for node in reference.get("nodes", ())
        for pod in (node, *node.get("following", ()))
    ):
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

    Where pods follow, each is judged beside what the program itself gave to those before it: of
    several right choices it may take any.

    Args:
        answer: one that names no reason why there is none.
        reference: the reference's answer, which judges (`explain_no_judgement`).
    """
    nodes = {node["metadata"]["name"]: node for node in question.get("nodes", ())}
    for given, right in zip(answer.nodes, reference.get("nodes", ()), strict=True):
        for number, pod in enumerate(given.pods):
            before = given.pods[:number]
            asked = question_of_pod(question, nodes[given.node], before)
            if number:
                answered = answer_of_reference(asked, kubernetes)
                if explain_no_judgement(answered):
                    break  # no fault of the program's: its choice made a search that takes too long
                (right,) = answered["nodes"]
            found = _judge_pod(asked, given.node, pod, right, level, kubernetes)
            if found is None and number + 1 < len(given.pods) and pod.outcome == "allocated":
                found = _judge_devices(asked, given.node, pod, kubernetes)
            if found is not None:
                yield replace(found, pod=number, question=asked)
                break


def _judge_pod(
    question: Json,
    node: str,
    given: PodAnswer,
    right: Mapping[str, Any],
    level: Level,
    kubernetes: str,
) -> Finding | None:
    found = _judge_fit(node, given, right)
    if found is None and given.outcome == "allocated" and level != "fits":
        found = _judge_devices(question, node, given, kubernetes)
        if found is None and level == "identical" and not _same_devices(given, right):
            found = Finding(node, "other devices", "allocated", "allocated", _name_devices(right))
    return found


def question_of_pod(question: Json, node: Json, before: Sequence[PodAnswer]) -> Json:
    """Return a question of one pod alone on a node: what pods before it were given is in use.

    Args:
        before: what was answered for the pods that come before it.
    """
    pods: list[Json] = [question, *(question.get("following") or ())]
    held = {
        _key_of(claim): claim
        for pod in pods
        for claim in pod.get("claims") or ()
        if is_allocated(claim)
    }
    for number, (pod, answer) in enumerate(zip(pods, before, strict=False)):
        claims = [*(pod.get("claims") or ()), _extended_claim(f"-{number}")]
        if answer.outcome == "allocated":
            for claim, allocation in zip(claims, answer.allocations, strict=False):
                made = {**claim, "status": {"allocation": _with_share_ids(allocation)}}
                held.setdefault(_key_of(claim), made)
    pod = pods[len(before)]
    own = [held.get(_key_of(claim), claim) for claim in pod.get("claims") or ()]
    known = {_key_of(claim) for claim in (*own, *(question.get("allocated") or ()))}
    others = [claim for key, claim in held.items() if key not in known]
    alone = {key: value for key, value in question.items() if key not in ("pod", "following")}
    alone |= {"nodes": [node], "claims": own}
    if others:
        alone["allocated"] = [*(question.get("allocated") or ()), *others]
    return alone | ({"pod": pod["pod"]} if pod.get("pod") else {})


def _extended_claim(number: str = "") -> Json:
    """Return what stands for the claim for the extended resources of a pod that came before."""
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaim",
        "metadata": {"name": f"extended-resources{number}", "namespace": "", "uid": number},
        "spec": {},
    }


def _key_of(claim: Json) -> tuple[str, str]:
    metadata = claim["metadata"]
    return metadata.get("namespace") or "", metadata["name"]


def _with_share_ids(allocation: Json) -> Json:
    """Return it with an id for each share that has none, which an answer may leave out."""
    devices = allocation.get("devices") or {}
    results = [
        {"shareID": SHARE_ID, **result} if result.get("consumedCapacity") else result
        for result in devices.get("results") or ()
    ]
    return {**allocation, "devices": {**devices, "results": results}}


def _judge_fit(node: str, given: PodAnswer, right: Mapping[str, Any]) -> Finding | None:
    if given.outcome in ("timeout", "unsupported"):
        kind: Kind = "timeout" if given.outcome == "timeout" else "unsupported"
        return Finding(node, kind, given.outcome, right["outcome"], given.error)
    says, fits = given.outcome == "allocated", right["outcome"] == "allocated"
    if says == fits:
        return None
    kind = "wrong yes" if says else "wrong no"
    return Finding(node, kind, given.outcome, right["outcome"], given.error)


def _judge_devices(question: Json, node: str, given: PodAnswer, kubernetes: str) -> Finding | None:
    wanted = claims_of_question(question)
    pending = [index for index, claim in enumerate(wanted) if not is_allocated(claim)]
    broken = ""
    try:
        for index, allocation in enumerate(given.allocations):
            _check_allocation(allocation, index)
        if pending and len(given.allocations) != len(wanted):
            count = len(given.allocations) or "none"
            broken = f"allocations: there are {count} for {counted(len(wanted), 'claim')}"
        elif pending:
            claims = [wanted[index] for index in pending]
            allocations = [given.allocations[index] for index in pending]
            (on,) = question["nodes"]
            broken = next(map(str, broken_rules(question, on, claims, allocations, kubernetes)), "")
    except InputError as error:
        broken = str(error)
    if not broken:
        return None
    return Finding(node, "inadmissible", "allocated", "allocated", broken)


def claims_of_question(question: Mapping[str, Any]) -> list[Json]:
    """Return the claims of a question of one node, with one for the pod's extended resources."""
    claims: list[Json] = [*(question.get("claims") or ())]
    if question.get("pod"):
        classes = classes_by_resource(question.get("deviceClasses") or ())
        made = extended_claim(question["pod"], question["nodes"][0], classes)
        if made is not None:
            claims.append(_extended_claim() | {"spec": made.claim["spec"]})
    return claims


def _check_allocation(allocation: Json, index: int) -> None:
    """Raise InputError: an allocation has not the form of one, or has too many devices."""
    try:
        check_form(allocation, "resource/v1.AllocationResult")
    except InputError as error:
        raise error.with_parent("allocations", index) from None
    results = (allocation.get("devices") or {}).get("results") or ()
    selector = allocation.get("nodeSelector") or {}
    terms = selector.get("nodeSelectorTerms") or ()
    requirements = [
        requirement
        for term in terms
        for field in ("matchFields", "matchExpressions")
        for requirement in (term or {}).get(field) or ()
    ]
    if None in (*results, *terms, *requirements):
        raise InputError("has null in a list", "allocations", index)
    count = len(results)
    if count > ALLOCATION_RESULTS_MAX:
        raise InputError(
            f"has {count} devices; a claim has at most {ALLOCATION_RESULTS_MAX}",
            *("allocations", index, "devices", "results"),
        )


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
    parts["claims"] = claims_of_question(question)
    parts["deviceClasses"] = [
        *{item["metadata"]["name"]: item for item in parts["deviceClasses"]}.values()
    ]
    given = [item for item in parts["claims"] if is_allocated(item)]
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


def explain_finding(finding: Finding, kubernetes: str = LATEST) -> str:
    """Return in a sentence what is wrong and why: what is lacking, which devices would do."""
    where = f"{finding.node} as pod {finding.pod + 1} in a row" if finding.pod else finding.node
    if finding.kind == "inadmissible":
        return f"gives out what it must not on {where}: {finding.detail}"
    if finding.kind == "wrong yes":
        return f"says it fits {where}: {_explain_refusal(finding, kubernetes)}"
    right = _right_answer(finding, kubernetes)
    if finding.kind == "other devices":
        return f"takes other devices on {where} than Kubernetes: {_name_devices(right)}"
    why = f" ({finding.said}: {finding.detail})" if finding.detail else f" ({finding.said})"
    return f"says it does not fit {where}{why}: {_name_devices(right)} would do"


def _right_answer(finding: Finding, kubernetes: str) -> Json:
    """Return the reference's answer to the question of a finding."""
    nodes: list[Json] = answer_of_reference(finding.question, kubernetes).get("nodes", [])
    return nodes[0] if nodes else {}


def _explain_refusal(finding: Finding, kubernetes: str) -> str:
    right = _right_answer(finding, kubernetes)
    if right.get("error"):
        return str(right["error"])
    question = finding.question
    if question.get("pod") and not claims_of_question(question):
        return "the pod asks for a resource that neither a class nor the node provides"
    try:
        explained = explain(snapshot_of(question, kubernetes), seconds=_EXPLAINING_SECONDS)
    except (InputError, CelUnsupportedError) as error:
        return str(error)
    report = next((item for item in explained.nodes if item.node == finding.node), None)
    if report is None or report.kind == "allocated":
        return "a claim of the pod has devices that this node cannot use"
    return report.text


def _same_devices(given: PodAnswer, right: Mapping[str, Any]) -> bool:
    return _devices(given.allocations) == _devices(right.get("allocations", ()))


def _devices(allocations: Any) -> list[list[tuple[Any, ...]]]:
    """Return (request, driver, pool, device) of each result, claim by claim; absent ones are empty.

    Go writes an empty request where a claim's own allocation names none.
    """
    keys = ("request", "driver", "pool", "device")
    return [
        [
            tuple(result.get(key) or "" for key in keys)
            for result in (allocation.get("devices") or {}).get("results") or ()
        ]
        for allocation in allocations
    ]


def _names(allocations: Any) -> ClaimDevices:
    """Return the devices as driver/pool/device, claim by claim."""
    return [
        [f"{driver}/{pool}/{device}" for _, driver, pool, device in claim]
        for claim in _devices(allocations)
    ]


def _sorted_names(allocations: Any) -> ClaimDevices:
    return [sorted(claim) for claim in _names(allocations)]


def _name_devices(right: Mapping[str, Any]) -> str:
    names = [name for claim in _names(right.get("allocations", ())) for name in claim]
    shown = ", ".join(names[:4])
    more = f" and {len(names) - 4} more" if len(names) > 4 else ""
    return shown + more if names else "no device at all"
