"""Why is this claim pending? Asked of a snapshot, of a run or of a cluster.

The answer is the reference allocator's: for each node, which rule removed how many devices; who
holds them; and the smallest change with which it finds devices.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from pathlib import Path
from textwrap import wrap
from typing import Any

from conformance.compare.evidence import (
    Object,
    full_name,
    name_of,
    obstacle,
    reading,
    selectors_of,
)
from conformance.compare.remedies import Remedy, holders, remedies
from conformance.compare.waiting import Waiting, all_waiting, waiting_of
from conformance.compare.whatif import Case, consumers_of
from kube.base.errors import UsageError
from kube.base.strictjson import read_object
from reference_allocator.explain import Explanation, explain
from reference_allocator.explain.explanation import NodeReport
from reference_allocator.snapshot import Snapshot

SECONDS = 30.0
"""The longest that the searches for one pod may take, beside a little for each node; and again
those for a change that helps."""

_NODE_SECONDS = 0.03
_MOST = 20  # pods of a snapshot, and reasons of one, that are told
_NAMED = 4
_WIDTH = 80
_DRIVER = re.compile(r"device\.driver\s*==\s*[\"']([^\"']+)[\"']")

_LATE = (
    "no rule of DRA keeps it pending. The scheduler is late, or the pod's events say what else"
    " does (CPU, memory, affinity to pods)"
)


@dataclass(frozen=True, slots=True)
class Reason:
    """What keeps claims from some nodes."""

    reason: str
    nodes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Held:
    """A claim that has devices which are wanted, and the pods that use it."""

    claim: str
    pods: tuple[str, ...]
    devices: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Told:
    """What is told of one pod or claim.

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
    held: tuple[Held, ...] = ()
    changes: tuple[Remedy, ...] | None = None

    @property
    def text(self) -> str:
        """For people, in lines of at most 80 columns where words allow."""
        return "\n".join(
            line
            for number, (indent, text) in enumerate(self._lines())
            for line in wrap(
                text,
                _WIDTH,
                initial_indent=indent,
                subsequent_indent=indent + ("  " if number else "    "),
                break_long_words=False,
                break_on_hyphens=False,
            )
        )

    def _lines(self) -> Iterator[tuple[str, str]]:
        if not self.nodes:
            yield "", f"{self.subject}: {self.note}"
            return
        head = f"{self.subject}: {len(self.fits)}/{self.nodes} nodes"
        yield "", f"{head}; {self.note}" if self.note else head
        for item in self.reasons[:_MOST]:
            yield "  ", f"{_some(item.nodes)}: {item.reason}"
        if self.reasons[_MOST:]:
            rest = sum(len(item.nodes) for item in self.reasons[_MOST:])
            yield "  ", f"{rest} more nodes have {len(self.reasons) - _MOST} other reasons"
        for one in self.held:
            users = f"pod {', '.join(one.pods)}" if one.pods else "no pod"
            yield "  ", f"claim {one.claim} has {_some(one.devices)}, for {users}"
        for remedy in self.changes or ():
            yield "  ", f"would fit if {remedy.change} (on {remedy.node})"
        if self.fits and not self.note:
            yield "  ", f"fits now on {_some(self.fits)}: {_LATE}"
        elif self.changes == ():
            yield "  ", "no single change that was tried, and no two, would make it fit"


@dataclass(slots=True)
class Seen:
    """What was looked at for what is told: a snapshot, and by subject what is said of devices."""

    snapshot: Snapshot | None = None
    explanations: dict[str, Explanation] = field(default_factory=dict)


def read_snapshot(document: Any) -> Snapshot:
    """A snapshot's document as a value. Raises UsageError: it is none."""
    return reading(lambda: Snapshot.from_dict(document))


def explain_file(path: Path, subject: str = "", seen: Seen | None = None) -> list[Told]:
    """Why pods or claims of a snapshot file are pending. Raises UsageError: no snapshot."""
    document = read_object(path)
    try:
        return explain_snapshot(read_snapshot(document), subject, seen=seen)
    except UsageError as error:
        raise UsageError(f"{path}: {error}") from None


def explain_snapshot(
    snapshot: Snapshot,
    subject: str = "",
    *,
    suggest: bool = True,
    seen: Seen | None = None,
) -> list[Told]:
    """Why something is pending: a pod or claim ``namespace/name``, or all that waits.

    ``suggest``: look for changes that would help. ``seen`` gets what was looked at.
    Raises UsageError: nothing has that name, or the snapshot is damaged.
    """

    def ask() -> list[Told]:
        found = [waiting_of(snapshot, subject)] if subject else all_waiting(snapshot)
        looked = seen or Seen()
        looked.snapshot = snapshot
        told = [_told(snapshot, item, suggest, looked) for item in found[:_MOST]]
        if len(found) > _MOST:
            rest = f"wait too; name one of them, such as {found[_MOST].name}"
            told.append(Told(f"{len(found) - _MOST} more pods", rest))
        return told or [Told("the snapshot", "no claim of it waits for an allocation")]

    return reading(ask)


def _told(snapshot: Snapshot, waiting: Waiting, suggest: bool, seen: Seen) -> Told:
    case = waiting.case
    if case is None:
        return Told(waiting.name, waiting.note)
    if not snapshot.nodes:
        return Told(waiting.name, "there is no node")
    seconds = SECONDS + len(snapshot.nodes) * _NODE_SECONDS
    found = explain(replace(snapshot, claims=case.claims), seconds=seconds)
    seen.explanations[waiting.name] = found
    wanted = selectors_of(case.pod, snapshot) if case.pod else []
    nodes = {name_of(node): node for node in snapshot.nodes}
    grouped: dict[str, list[str]] = {}
    fits: list[str] = []
    fatal = ""
    for report in found.nodes:
        problem = obstacle(nodes[report.node], case.pod_spec, wanted)
        if report.kind == "allocated" and problem is None:
            fits.append(report.node)
            continue
        if report.kind == "timeout":
            devices = f"not judged: the search had no answer after {seconds:.0f} s"
        else:
            devices = "" if report.kind == "allocated" else _devices(case, report)
        grouped.setdefault("; ".join(filter(None, [problem, devices])), []).append(report.node)
        if report.kind == "error" and problem is None:
            fatal = f"the error on {report.node} ends the scheduler's attempt for every node"
    alike = [*grouped.values(), fits]
    note = "; ".join(filter(None, [waiting.note, fatal]))
    fits = [] if fatal else fits
    held = holders(case, found)
    claims = {full_name(claim): claim for claim in snapshot.allocated}
    return Told(
        waiting.name,
        note,
        tuple(fits),
        len(found.nodes),
        tuple(Reason(reason, tuple(names)) for reason, names in grouped.items()),
        tuple(
            Held(claim, tuple(consumers_of(claims[claim])), tuple(devices))
            for claim, devices in islice(held.items(), _NAMED)
        ),
        tuple(remedies(case, found, alike, SECONDS)) if suggest and not fits else None,
    )


def _devices(case: Case, report: NodeReport) -> str:
    """What keeps the devices of a node from the claims, and a driver that is not there."""
    silent = ", ".join(_silent(case.snapshot.device_classes, report))
    if not silent:
        return report.text
    return f"{report.text}; driver {silent} publishes nothing for the node: is it registered there?"


def _silent(classes: Sequence[Object], report: NodeReport) -> list[str]:
    """The drivers that a class names and of which the node has no device."""
    seen = {
        device.partition("/")[0]
        for item in report.requests
        for device in (*item.remaining, *(one for gone in item.removals for one in gone.devices))
    }
    asked = {item.device_class for item in report.requests if not item.of_class}
    drivers = {
        driver
        for item in classes
        if name_of(item) in asked
        for selector in (item.get("spec") or {}).get("selectors") or ()
        for driver in _DRIVER.findall((selector.get("cel") or {}).get("expression") or "")
    }
    # A pool that is being updated is named already.
    return sorted(
        name for name in drivers - seen if not any(f"{name}/" in pool for pool in report.pools)
    )


def _some(names: Sequence[str]) -> str:
    shown = ", ".join(names[:_NAMED])
    return f"{shown} and {len(names) - _NAMED} more" if len(names) > _NAMED else shown
