"""A page of a cluster's devices: nodes x devices, who has them, and what keeps others from them.

One file that needs no script and nothing from elsewhere. It is text in tables and lists, so that
a keyboard and a screen reader get all that colours show.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from conformance.compare.audit.once import Finding
from conformance.compare.explain import PendingExplanation
from conformance.report.drawing import Drawing, DrawnNode, drawing_of
from conformance.report.templating import build_environment
from conformance.results.events.comparison import Judgement
from reference_allocator.explain import Explanation

MAX_DEVICES = 2_500
"""Devices in all maps of a page; a map that has no room is left out, and the page says so."""

_NODES = 500
_ON_NODE = 64


@dataclass(frozen=True, slots=True)
class _Subject:
    """What a page says of a pod, or of the whole cluster, with the devices that it could use.

    ``removed``: node -> device -> what removed it; ``reasons``: node -> why it does not do.
    """

    explanation: PendingExplanation | None
    map: Drawing | None
    removed: Mapping[str, Mapping[str, str]]
    reasons: Mapping[str, str]


def render_cluster(
    what: str,
    snapshot: Mapping[str, Any],
    *,
    told: Sequence[PendingExplanation] = (),
    explained: Mapping[str, Explanation] | None = None,
    findings: Sequence[Finding] | None = None,
    judgements: Sequence[Judgement] | None = None,
    chosen: Iterable[tuple[Any, Any]] = (),
) -> str:
    """Return the page.

    Args:
        what: the title.
        snapshot: its document.
        told: of pods and claims that wait.
        explained: their subjects -> what the reference explains, for a map of each.
        findings: of an audit; None where there was none.
        judgements: of decisions; ``chosen`` are claims with the allocations that were judged.
    """
    whole = next(drawing_of("", snapshot, chosen, _NODES, _ON_NODE), None)
    subjects = list(_subjects(whole, told, explained or {}))
    if not told and whole is not None:
        subjects = [_Subject(None, _fitting(whole, MAX_DEVICES), {}, {})]
    wrong = {item.subject for item in findings or ()}
    page = build_environment().get_template("cluster.html.j2")
    return page.render(
        what=what,
        kubernetes=snapshot.get("kubernetes", ""),
        subjects=subjects,
        findings=findings,
        judgements=judgements,
        wrong=wrong,
        counts={
            name: len(snapshot.get(field) or ())
            for name, field in (
                ("nodes", "nodes"),
                ("allocated claims", "allocated"),
                ("claims without devices", "claims"),
            )
        },
    )


def _subjects(
    whole: Drawing | None, told: Sequence[PendingExplanation], explained: Mapping[str, Explanation]
) -> Iterator[_Subject]:
    room = MAX_DEVICES
    for item in told:
        explanation = explained.get(item.subject)
        drawn = _fitting(whole, room) if whole is not None and explanation is not None else None
        room -= _size(drawn.nodes) if drawn is not None else 0
        reasons = {name: reason.reason for reason in item.reasons for name in reason.nodes}
        reasons |= dict.fromkeys(item.fits, "fits")
        yield _Subject(item, drawn, _removed(explanation), reasons)


def _fitting(drawing: Drawing, room: int) -> Drawing | None:
    """Return the map with the nodes for which there is room, None without any."""
    nodes: list[DrawnNode] = []
    for node in drawing.nodes:
        room -= _size([node])
        if room < 0:
            break
        nodes.append(node)
    if not nodes:
        return None
    left_out = drawing.nodes_left_out + len(drawing.nodes) - len(nodes)
    return Drawing(drawing.title, tuple(nodes), drawing.waiting, left_out)


def _size(nodes: Iterable[DrawnNode]) -> int:
    return sum(len(node.devices) + 1 for node in nodes)


def _removed(explanation: Explanation | None) -> dict[str, dict[str, str]]:
    """Return node -> device -> the rules that removed it, each once."""
    removed: dict[str, dict[str, str]] = {}
    for report in explanation.nodes if explanation is not None else ():
        on_node = removed.setdefault(report.node, {})
        for removal in (
            removed_devices for request in report.requests for removed_devices in request.removals
        ):
            for device in removal.devices:
                rules = on_node.get(device, "")
                if removal.rule not in rules.split(", "):
                    on_node[device] = f"{rules}, {removal.rule}" if rules else removal.rule
    return removed
