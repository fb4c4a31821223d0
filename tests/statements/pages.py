"""The pages coverage.md and statements.md, from what scenarios were measured to notice."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from conformance.scenario.registry import load_registry
from kube.base.text import counted
from tests.scenario.kill_matrix import Kills, link
from tests.statements import VERSION, Behaviour, Statement, behaviours

_COVERAGE: Final = f"""\
# Coverage

What Kubernetes promises of DRA, and which scenarios fail where it is not so. {{behaviours}}:
{{covered}} covered, {{partly}} in part, {{without}} not. A behaviour is covered if each of its
[statements](statements.md) that can be broken in the reference was broken, and a scenario noticed
it each time ([kill matrix](kill-matrix.md)); nothing else counts. {{tests}} of Kubernetes
{VERSION} are about these behaviours.

Generated from `tests/statements` and `tests/scenario/kills.yaml`.

| behaviour | covered | statements noticed | scenarios | upstream's tests | what is missing |
|---|---|---|---|---|---|
"""

_STATEMENTS: Final = f"""\
# Statements

What binds in the sources of Kubernetes {VERSION} and in the KEPs, in words of our own: {{rows}}.
Each is broken in the reference by at least one defect, or says why not. Of {{broken}} that are
broken, a scenario notices {{noticed}} ({{share}} %).

Generated from `tests/statements` and `tests/scenario/kills.yaml`.

| owed by | statements | broken | noticed |
|---|---|---|---|
"""


def noticed(row: Statement, kills: Kills) -> bool:
    """Whether each of its defects is noticed by a scenario."""
    return bool(row.defects) and all(kills.get(name) for name in row.defects)


def coverage(rows: Sequence[Statement], kills: Kills) -> str:
    """The page coverage.md."""
    known, lines = behaviours(), []
    states: Counter[str] = Counter()
    for name, behaviour in known.items():
        theirs = [row for row in rows if row.behaviour == name and row.defects]
        seen = [row for row in theirs if noticed(row, kills)]
        state = _state(len(seen), len(theirs), behaviour)
        states[state] += 1
        by = Counter(one for row in seen for defect in row.defects for one in kills[defect])
        cells = (
            _behaviour(name, behaviour),
            state,
            f"{len(seen)} of {len(theirs)}" if theirs else "",
            ", ".join(link(one) for one, _ in by.most_common(6)) + (" ..." if len(by) > 6 else ""),
            str(sum(map(len, behaviour.upstream.values())) or ""),
            behaviour.missing,
        )
        lines.append(f"| {' | '.join(cells)} |\n")
    tests = sum(len(found) for one in known.values() for found in one.upstream.values())
    head = _COVERAGE.format(
        behaviours=counted(len(known), "behaviour"),
        covered=states["yes"],
        partly=states["in part"],
        without=states["no"],
        tests=counted(tests, "test"),
    )
    return head + "".join(lines)


def _state(seen: int, broken: int, behaviour: Behaviour) -> str:
    if not seen:
        return "no"
    return "in part" if seen < broken or behaviour.missing else "yes"


def _behaviour(name: str, behaviour: Behaviour) -> str:
    kep = load_registry().features[behaviour.feature].kep
    return f"**{name}** ([{kep.rpartition('/')[2]}]({kep})): {behaviour.summary}"


def table(rows: Sequence[Statement], kills: Kills) -> str:
    """The page statements.md."""
    broken = [row for row in rows if row.defects]
    seen = [row for row in broken if noticed(row, kills)]
    owners = Counter(row.owed for row in rows)
    counts = (
        f"| {owner} | {count} | {_of(owner, broken)} | {_of(owner, seen)} |\n"
        for owner, count in owners.most_common()
    )
    head = _STATEMENTS.format(
        rows=counted(len(rows), "statement"),
        broken=len(broken),
        noticed=len(seen),
        share=round(100 * len(seen) / len(broken), 1),
    )
    return head + "".join((*counts, *_by_behaviour(rows, kills)))


def _of(owner: str, rows: Sequence[Statement]) -> int:
    return sum(row.owed == owner for row in rows)


def _by_behaviour(rows: Sequence[Statement], kills: Kills) -> Iterator[str]:
    groups: Mapping[str, list[Statement]] = {name: [] for name in behaviours()}
    for row in rows:
        groups[row.behaviour].append(row)
    for name, theirs in groups.items():
        if theirs:
            yield f"\n## {name}\n\n| statement | source | owed by | defects: how many notice |\n"
            yield "|---|---|---|---|\n"
        for row in theirs:
            found = [f"{defect}: {len(kills.get(defect, ()))}" for defect in row.defects]
            why = [f"none: {row.untested}"] if row.untested else []
            sources = (row.source,) if isinstance(row.source, str) else row.source
            cells = (row.says, ", ".join(map(_source, sources)), row.owed, ", ".join(found + why))
            yield f"| {' | '.join(cells)} |\n"


def _source(source: str) -> str:
    """A link to the line, or to the enhancement."""
    if source.startswith("kep:"):
        number, _, heading = source.removeprefix("kep:").partition("#")
        said = f"KEP {number}, {heading}" if heading else f"KEP {number}"
        return f"[{said}](https://kep.k8s.io/{number})"
    path, _, line = source.rpartition(":")
    at = f"https://github.com/kubernetes/kubernetes/blob/{VERSION}/{path}#L{line}"
    return f"[{path.rpartition('/')[2]}:{line}]({at})"
