"""docs/kubernetes-1.38.md: what a Kubernetes minor changes for DRA, from the repository's tables.

    python -m ci.minor_page

Gates are from `reference_allocator.gates`, the rest from conformance/scenario/minor_changes.yaml.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from textwrap import fill
from typing import Final

from ci.testing.part import ROOT
from conformance.scenario.minor_changes import MinorChange, load_changes
from conformance.scenario.registry import load_known_issues
from reference_allocator.gates import MINORS, Gate, gates_for_version

MINOR: Final = "1.38"
PAGE: Final = ROOT / f"docs/kubernetes-{MINOR}.md"
_MIXED: Final = ROOT / "ci/schedulers/results/next-kube-scheduler.json"
_READERS: Final = {
    "operators": "operators of clusters",
    "authors": "authors of claims, templates and classes",
    "drivers": "authors of drivers",
    "schedulers": "authors of schedulers",
}
_HEAD: Final = f"""# Kubernetes {MINOR} for DRA

<!-- Written by `python -m ci.minor_page` from conformance/scenario/minor_changes.yaml,
reference_allocator/gates.py and other tables; do not edit. -->

What Kubernetes {MINOR} changes for Dynamic Resource Allocation, read and measured at v1.38.0-beta.0
(6 November 2026) by comparing its code and its answers with 1.37's. It may change until {MINOR}.0.
`dra-conformance audit --upgrade-to {MINOR}` finds what is marked with *found*.
"""
_TAIL: Final = """
## Found in the beta

[The outcome of a claim depends on the order of a map, and `in` hides what cannot be
read](found/order-of-a-map.md).

## Earlier minors

"""


def write_page() -> str:
    """Return the page."""
    rows = list(load_changes().values())
    parts = [_HEAD, "\n## Feature gates\n\n", *_list_gates()]
    for reader, title in _READERS.items():
        own = [row for row in rows if reader in row.readers and row.minor in (MINOR, "")]
        parts += [f"\n## For {title}\n\n", *_tabulate(own)]
    parts += ["\n## Known issues that it ends\n\n", *_list_ended_issues()]
    parts += ["\n## Its scheduler beside the minor before\n\n", _tell_mixed_run()]
    parts += [_TAIL]
    earlier = [row for row in rows if row.minor not in (MINOR, "")]
    parts += _tabulate(earlier, since=True)
    return "".join(parts)


def _tabulate(rows: list[MinorChange], *, since: bool = False) -> Iterator[str]:
    head = ("since",) * since + ("change", "what to do", "source", "shown by")
    yield f"| {' | '.join(head)} |\n|{'---|' * len(head)}\n"
    for row in rows:
        change = f"{row.change}{' *(found)*' if row.found else ''}"
        cells = (row.minor,) * since + (change, row.advice, row.source, _link(row.shown_by))
        yield f"| {' | '.join(cells)} |\n"


def _list_ended_issues() -> Iterator[str]:
    """Yield what the minor's first release has no more and the minor before it still has."""
    for issue in load_known_issues().issues.values():
        if any(affected.fixed == f"{MINOR}.0" for affected in issue.affected):
            link = issue.link.removeprefix("docs/")
            yield f"- {issue.summary} ([more]({link}))\n"


def _tell_mixed_run() -> str:
    """Return what came of the allocation tier with its scheduler, from that scheduler's record."""
    record = json.loads(_MIXED.read_text(encoding="utf-8"))
    tier = record["tier"]
    outcomes, allocations = (
        ", ".join(f"{number} {name}" for name, number in tier[kind].items())
        for kind in ("outcomes", "allocations")
    )
    text = (
        f"kube-scheduler {record['version']} beside a control plane of {tier['kubernetes']}, the "
        f"whole allocation tier, judged by {MINOR}'s rules where the scheduler decides "
        f"(`--scheduler-kubernetes {MINOR}`), on {tier['date']} "
        f"(`ci/schedulers/next-kube-scheduler --whole`): {outcomes}; allocations: {allocations}. "
        "What is known are issues of Kubernetes that these versions have."
    )
    return fill(text, 100, break_on_hyphens=False, break_long_words=False) + "\n"


def _link(shown_by: str) -> str:
    if not shown_by:
        return "read only"
    path = shown_by if "." in shown_by.rpartition("/")[2] else f"scenarios/{shown_by}.yaml"
    name = path.rpartition("/")[2].removesuffix(".yaml")
    return f"[{name}]({path.removeprefix('docs/') if path.startswith('docs/') else f'../{path}'})"


def _list_gates() -> Iterator[str]:
    previous = MINORS[MINORS.index(MINOR) - 1]
    before, after = gates_for_version(previous), gates_for_version(MINOR)
    yield f"| gate | {previous} | {MINOR} |\n|---|---|---|\n"
    for name in sorted(before.keys() | after.keys()):
        states = [_describe_gate(gates.get(name)) for gates in (before, after)]
        if states[0] != states[1]:
            yield f"| {name} | {states[0]} | {states[1]} |\n"


def _describe_gate(gate: Gate | None) -> str:
    if gate is None:
        return "not there"
    if gate.removed:
        return "removed, always on"
    return f"{gate.stage}, {'on' if gate.default else 'off'}{', locked' if gate.locked else ''}"


if __name__ == "__main__":
    PAGE.write_text(write_page(), encoding="utf-8")
