"""Why is this claim pending? Asked of a snapshot, of a run or of a cluster.

The answer is the reference allocator's: for each node, which rule removed how many devices; who
holds them; and the smallest change with which it finds devices.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from pathlib import Path
from textwrap import wrap
from typing import Any

from conformance.compare.dumps import read_dump
from conformance.compare.evidence import (
    Obj,
    Object,
    ask_reference,
    find_obstacle,
    full_name,
    name_of,
    selectors_of,
)
from conformance.compare.remedies import Remedy, find_holders, find_remedies
from conformance.compare.waiting import Waiting, all_waiting, waiting_of
from conformance.compare.whatif import Case, consumers_of
from kube.base.errors import UsageError
from kube.base.text import MAX_NAMES, join_some
from reference_allocator.explain import Explanation, explain
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
    """

    subject: str
    note: str = ""
    fits: tuple[str, ...] = ()
    nodes: int = 0
    reasons: tuple[Reason, ...] = ()
    held: tuple[HeldDevices, ...] = ()
    changes: tuple[Remedy, ...] | None = None

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
        if self.fits and not self.note:
            yield "  ", f"fits now on {join_some(self.fits)}: {_FITS_NOW}"
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
        return PendingExplanation(waiting.name, waiting.note)
    if not snapshot.nodes:
        return PendingExplanation(waiting.name, "there is no node")
    seconds = SECONDS + len(snapshot.nodes) * _NODE_SECONDS
    explanation = explain(replace(snapshot, claims=case.claims), seconds=seconds)
    trace.explanations[waiting.name] = explanation
    claim_selectors = selectors_of(case.pod, snapshot) if case.pod else []
    nodes = {name_of(node): node for node in snapshot.nodes}
    grouped: dict[str, list[str]] = {}
    fits: list[str] = []
    fatal = ""
    for report in explanation.nodes:
        problem = find_obstacle(nodes[report.node], case.pod_spec, claim_selectors)
        if report.kind == "allocated" and problem is None:
            fits.append(report.node)
            continue
        if report.kind == "timeout":
            devices = f"not judged: the search had no answer after {seconds:.0f} s"
        else:
            devices = "" if report.kind == "allocated" else _explain_devices(case, report)
        grouped.setdefault("; ".join(filter(None, [problem, devices])), []).append(report.node)
        if report.kind == "error" and problem is None:
            fatal = f"the error on {report.node} ends the scheduler's attempt for every node"
    alike = [*grouped.values(), fits]
    note = "; ".join(filter(None, [waiting.note, fatal]))
    fits = [] if fatal else fits
    held = find_holders(case, explanation)
    claims = {full_name(claim): claim for claim in snapshot.allocated}
    return PendingExplanation(
        waiting.name,
        note,
        tuple(fits),
        len(explanation.nodes),
        tuple(Reason(reason, tuple(names)) for reason, names in grouped.items()),
        tuple(
            HeldDevices(claim, tuple(consumers_of(claims[claim])), tuple(devices))
            for claim, devices in islice(held.items(), MAX_NAMES)
        ),
        tuple(find_remedies(case, explanation, alike, SECONDS)) if suggest and not fits else None,
    )


def _explain_devices(case: Case, report: NodeReport) -> str:
    """Return what keeps the devices of a node from the claims, and which driver is not there."""
    silent = ", ".join(_silent_drivers(case.snapshot.device_classes, report))
    if not silent:
        return report.text
    return f"{report.text}; driver {silent} publishes nothing for the node: is it registered there?"


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
