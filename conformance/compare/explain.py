"""Why is this claim pending? Asked of a snapshot, of a run or of a cluster.

The answer is the reference allocator's: for each node, which rule removed how many devices; who
holds them; and the smallest change with which it finds devices.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from textwrap import wrap
from typing import Any

from conformance.compare.case import Case, consumers_of, explain_case, take_back_claim
from conformance.compare.dumps import read_dump
from conformance.compare.evidence import (
    Obj,
    Object,
    ask_reference,
    full_name,
    key_of,
    mapping_field,
    name_of,
)
from conformance.compare.podgroups import describe_members
from conformance.compare.remedies import Remedy, find_holders, find_remedies
from conformance.compare.waiting import (
    Waiting,
    all_waiting,
    find_absent_classes,
    group_of,
    waiting_of,
)
from kube.base.errors import UsageError
from kube.base.text import MAX_NAMES, join_some, one_line
from kube.values import KUBE_SCHEDULER
from reference_allocator.explain import Explanation
from reference_allocator.explain.explanation import NodeReport
from reference_allocator.snapshot import Snapshot

SECONDS = 30.0
"""The longest that the searches for one pod may take, beside a little for each node; and again
those for a change that helps."""

_NODE_SECONDS = 0.03
_MAX_SHOWN = 20  # pods of a snapshot, and reasons of one, that are told
_WIDTH = 80
_DRIVER = re.compile(r"device\.driver\s*==\s*[\"']([^\"']+)[\"']")

_FITS_NOW = (
    "no rule of DRA keeps it pending. The scheduler is late, or the pod's events say what else"
    " does (CPU, memory, affinity to pods)"
)


@dataclass(frozen=True, slots=True)
class Reason:
    """What keeps claims from some nodes."""

    reason: str
    nodes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class HeldDevices:
    """A claim that has devices which are wanted, and the pods that use it."""

    claim: str
    pods: tuple[str, ...]
    devices: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class PendingExplanation:
    """Why one pod or claim is pending, and what would help.

    Attributes:
        note: what there is to say beside devices, such as that it has been given them.
        fits: nodes on which the claims can be allocated now.
        nodes: how many nodes there are.
        held: who has devices that are wanted, at most a few of them.
        changes: the smallest changes that would help; None where none were looked for.
        resources: who provides the extended resources that the pod asks for.
        fits_without_error: where an error on some node ends the scheduler's attempt, the nodes on
            which the claims could be allocated.
        faults: faults of Kubernetes that such errors are.
        condition: another scheduler's name, and what the scheduler said last.
    """

    subject: str
    note: str = ""
    fits: tuple[str, ...] = ()
    nodes: int = 0
    reasons: tuple[Reason, ...] = ()
    held: tuple[HeldDevices, ...] = ()
    changes: tuple[Remedy, ...] | None = None
    resources: tuple[str, ...] = ()
    fits_without_error: tuple[str, ...] = ()
    faults: tuple[str, ...] = ()
    condition: str = ""

    @property
    def text(self) -> str:
        """The text for people, in lines of at most 80 columns where words allow."""
        return "\n".join(
            line
            for number, (indent, text) in enumerate(self._text_lines())
            for line in wrap(
                text,
                _WIDTH,
                initial_indent=indent,
                subsequent_indent=indent + ("  " if number else "    "),
                break_long_words=False,
                break_on_hyphens=False,
            )
        )

    def _text_lines(self) -> Iterator[tuple[str, str]]:
        if not self.nodes:
            yield "", f"{self.subject}: {self.note}"
            return
        head = f"{self.subject}: {len(self.fits)}/{self.nodes} nodes"
        yield "", f"{head}; {self.note}" if self.note else head
        for resource in self.resources:
            yield "  ", resource
        if self.fits_without_error:
            yield "  ", f"without that it would fit on {join_some(self.fits_without_error)}"
        for fault in self.faults:
            yield "  ", f"known fault of Kubernetes: {fault}"
        for item in self.reasons[:_MAX_SHOWN]:
            yield "  ", f"{join_some(item.nodes)}: {item.reason}"
        if self.reasons[_MAX_SHOWN:]:
            hidden_nodes = sum(len(item.nodes) for item in self.reasons[_MAX_SHOWN:])
            yield (
                "  ",
                f"{hidden_nodes} more nodes have {len(self.reasons) - _MAX_SHOWN} other reasons",
            )
        for holder in self.held:
            users = f"pod {', '.join(holder.pods)}" if holder.pods else "no pod"
            yield "  ", f"claim {holder.claim} has {join_some(holder.devices)}, for {users}"
        for remedy in self.changes or ():
            yield "  ", f"would fit if {remedy.change} (on {remedy.node})"
        if self.fits and self.note:
            yield "  ", f"has devices on {join_some(self.fits)}"
        elif self.fits:
            said = f"; {self.condition}" if self.condition else ""
            yield "  ", f"fits now on {join_some(self.fits)}: {_FITS_NOW}{said}"
        elif self.changes == ():
            yield "  ", "no single change that was tried, and no two, would make it fit"


@dataclass(slots=True)
class ExplanationTrace:
    """What explanations were made from: a snapshot, and by subject what is said of devices."""

    snapshot: Snapshot | None = None
    explanations: dict[str, Explanation] = field(default_factory=dict)


def read_snapshot(document: Any) -> Snapshot:
    """Return a snapshot's document as a value. Raises UsageError: it is none."""
    return ask_reference(lambda: Snapshot.from_dict(document))


def explain_file(
    path: Path,
    subject: str = "",
    seen: ExplanationTrace | None = None,
    read: Callable[[Path], Obj] = read_dump,
) -> list[PendingExplanation]:
    """Explain why pods or claims of a snapshot, or of a dump, are pending.

    Raises UsageError: it cannot be used, or nothing in it has that name.
    """
    document = read(path)
    try:
        return explain_snapshot(read_snapshot(document), subject, seen=seen)
    except UsageError as error:
        raise UsageError(f"{path}: {error}") from None


def explain_snapshot(
    snapshot: Snapshot,
    subject: str = "",
    *,
    suggest: bool = True,
    seen: ExplanationTrace | None = None,
) -> list[PendingExplanation]:
    """Explain why something is pending: a pod or claim ``namespace/name``, or all that waits.

    ``suggest``: look for changes that would help. ``seen`` gets what was looked at.
    Raises UsageError: nothing has that name, or the snapshot is damaged.
    """

    def ask() -> list[PendingExplanation]:
        waiting = [waiting_of(snapshot, subject)] if subject else all_waiting(snapshot)
        trace = seen or ExplanationTrace()
        trace.snapshot = snapshot
        explained = [
            _explain_waiting(snapshot, item, suggest, trace) for item in waiting[:_MAX_SHOWN]
        ]
        if len(waiting) > _MAX_SHOWN:
            note = f"wait too; name one of them, such as {waiting[_MAX_SHOWN].name}"
            explained.append(PendingExplanation(f"{len(waiting) - _MAX_SHOWN} more pods", note))
        return explained or [
            PendingExplanation("the snapshot", "no claim of it waits for an allocation")
        ]

    return ask_reference(ask)


def _explain_waiting(
    snapshot: Snapshot, waiting: Waiting, suggest: bool, trace: ExplanationTrace
) -> PendingExplanation:
    case = waiting.case
    if case is None:
        note = "; ".join(filter(None, [waiting.note, *condition_of(snapshot, waiting.name)]))
        return PendingExplanation(waiting.name, note)
    if not snapshot.nodes:
        return PendingExplanation(waiting.name, "there is no node")
    seconds = SECONDS + len(snapshot.nodes) * _NODE_SECONDS
    judged = judge_nodes(case, seconds)
    notes = [waiting.note]
    while not judged.fits and not judged.failing:
        retried = take_back_claim(case)
        if retried is None:
            break
        [key] = {*map(key_of, retried.claims)} - {*map(key_of, case.claims)}
        notes.append(f"the scheduler takes back claim {key[1]}, which nobody uses")
        case, judged = retried, judge_nodes(retried, seconds)
    trace.explanations[waiting.name] = judged.explanation
    if judged.failing and not find_absent_classes(case):
        names = join_some(judged.failing)
        notes.append(f"the error on {names} ends the scheduler's attempt for every node")
    if case.pod is not None and group_of(case.pod):
        notes.append(describe_members(snapshot, case.pod, SECONDS))
    fits = () if judged.failing else judged.fits
    held = find_holders(case, judged.explanation)
    claims = {full_name(claim): claim for claim in case.snapshot.allocated}
    changes = None
    if suggest and not fits:
        alike = [*judged.reasons.values(), judged.fits]
        changes = tuple(
            find_remedies(
                waiting.pod_case or case, judged.explanation, alike, SECONDS, judged.failing
            )
        )
    return PendingExplanation(
        waiting.name,
        "; ".join(filter(None, notes)),
        fits,
        len(judged.explanation.nodes),
        tuple(Reason(reason, tuple(names)) for reason, names in judged.reasons.items()),
        tuple(
            HeldDevices(claim, tuple(consumers_of(claims[claim])), tuple(devices))
            for claim, devices in islice(held.items(), MAX_NAMES)
        ),
        changes,
        resources=waiting.resources,
        fits_without_error=judged.fits if judged.failing else (),
        faults=tuple(find_known_faults(snapshot.kubernetes, judged)),
        condition="; ".join(condition_of(snapshot, waiting.name)),
    )


@dataclass(frozen=True, slots=True)
class JudgedNodes:
    """What the scheduler would find on each node.

    Attributes:
        fits: nodes that do.
        failing: nodes that suit the pod, with an error that ends the attempt for every node.
        reasons: why others do not -> their names.
    """

    explanation: Explanation
    fits: tuple[str, ...]
    failing: tuple[str, ...]
    reasons: Mapping[str, Sequence[str]]


def judge_nodes(case: Case, seconds: float) -> JudgedNodes:
    """Judge each node of a case, in at most so many seconds. Raises InputError."""
    explanation, obstacles = explain_case(case, seconds)
    reasons: dict[str, list[str]] = {}
    fits: list[str] = []
    failing: list[str] = []
    for report in explanation.nodes:
        problem = obstacles.get(report.node)
        if report.kind == "allocated" and problem is None:
            fits.append(report.node)
            continue
        if report.kind == "timeout":
            devices = f"not judged: the search had no answer after {seconds:.0f} s"
        else:
            devices = "" if report.kind == "allocated" else _explain_devices(case, report)
        reasons.setdefault("; ".join(filter(None, [problem, devices])), []).append(report.node)
        if report.kind == "error" and problem is None:
            failing.append(report.node)
    return JudgedNodes(explanation, tuple(fits), tuple(failing), reasons)


def condition_of(snapshot: Snapshot, name: str) -> Iterator[str]:
    """Yield whose pod it is, if it is another scheduler's, and what the scheduler said last."""
    for pod in snapshot.pods:
        if full_name(pod) == name:
            scheduler = mapping_field(pod, "spec").get("schedulerName")
            if scheduler not in (None, KUBE_SCHEDULER):
                yield f"its scheduler is {scheduler}"
            for condition in mapping_field(pod, "status").get("conditions") or ():
                if condition.get("type") == "PodScheduled" and condition.get("message"):
                    yield f"the scheduler said: {one_line(condition['message'])}"


def find_known_faults(kubernetes: str, judged: JudgedNodes) -> Iterator[str]:
    """Yield the faults of Kubernetes that the errors of nodes are, with their addresses."""
    if not judged.failing:
        return
    from conformance.scenario.registry import load_known_issues

    errors = {report.error for report in judged.explanation.nodes if report.node in judged.failing}
    for issue in load_known_issues().match_errors(kubernetes, errors):
        yield f"{issue.summary} {issue.link}"


def _explain_devices(case: Case, report: NodeReport) -> str:
    """Return what keeps the devices of a node from the claims, and which driver is not there."""
    drivers = _silent_drivers(case.snapshot.device_classes, report)
    return "; ".join((report.text, *_explain_silence(case.snapshot, report.node, drivers)))


def _explain_silence(snapshot: Snapshot, node: str, drivers: Sequence[str]) -> Iterator[str]:
    """Yield why drivers may have no devices for a node, as far as their slices show it."""
    for driver in drivers:
        published = [item for item in snapshot.slices if item["spec"]["driver"] == driver]
        of_node = [item for item in published if item["spec"].get("nodeName") == node]
        meant = [
            item
            for item in published
            if _are_spellings(str(item["spec"].get("nodeName") or ""), node)
        ]
        if of_node:
            yield f"slice {name_of(of_node[0])} of driver {driver} has no devices"
        elif meant:
            other = meant[0]["spec"]["nodeName"]
            yield f"slice {name_of(meant[0])} of driver {driver} is of {other}: is {node} meant?"
        else:
            yield f"driver {driver} publishes nothing for the node: is it registered there?"


def _are_spellings(name: str, node: str) -> bool:
    """Return whether two names may mean one node: by their case, or as a host and its domain."""
    short, long = sorted((name.casefold(), node.casefold()), key=len)
    return bool(short) and name != node and (short == long or long.startswith(f"{short}."))


def _silent_drivers(classes: Sequence[Object], report: NodeReport) -> list[str]:
    """Return the drivers that a class names and of which the node has no device."""
    publishing = {
        device.partition("/")[0]
        for item in report.requests
        for device in (
            *item.remaining,
            *(name for removal in item.removals for name in removal.devices),
        )
    }
    class_names = {item.device_class for item in report.requests if not item.of_class}
    drivers = {
        driver
        for item in classes
        if name_of(item) in class_names
        for selector in (item.get("spec") or {}).get("selectors") or ()
        for driver in _DRIVER.findall((selector.get("cel") or {}).get("expression") or "")
    }
    # A pool that is being updated is named already.
    return sorted(
        name
        for name in drivers - publishing
        if not any(f"{name}/" in pool for pool in report.pools)
    )
