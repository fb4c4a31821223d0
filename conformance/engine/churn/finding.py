"""What is told of a round that broke a rule: its seed, and the least that still shows it.

Where the target can be had anew (the reference), the operations are shrunk by carrying out fewer of
them; elsewhere what was recorded is.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import count
from typing import Final

from conformance.engine.awaiting import Divergence
from conformance.engine.churn.operations import Operation
from conformance.engine.churn.play import Player
from conformance.engine.churn.round import Round, inventory_of, play
from conformance.engine.churn.shrink import fewest, shortest_history
from conformance.engine.context import Context
from conformance.scenario.churn import Churn
from conformance.targets.invariants import Violation
from conformance.targets.watching import Obj, Version

MOST_ATTEMPTS: Final = 150
"""How often fewer operations are carried out."""

Again = Callable[[Context], Context]
"""Brings a scenario in a new target to where its churn begins."""


def divergence_of(
    step: Churn,
    context: Context,
    again: Again,
    seed: int,
    dealt: Sequence[Operation],
    found: Round,
) -> Divergence:
    """The finding, its seed, and the least that still shows it."""
    violation, versions = found.violation, found.versions
    assert violation is not None
    player = Player(step, context)
    fewer = _fewer(step, context, again, dealt, violation)
    if fewer is not None:
        dealt, found = fewer
        violation, versions = found.violation or violation, found.versions
    versions = shortest_history(versions, violation, inventory_of(step))
    told = [f"operations ({len(dealt)}):" if fewer else f"operations ({len(dealt)}, the last 10):"]
    told += [f"  {player.text(operation)}" for operation in (dealt if fewer else dealt[-10:])]
    told += ["history:", *(f"  {line}" for line in _lines(versions)[-20:])]
    everything = [f"seed {seed}", violation.text, *map(player.text, dealt), *_lines(found.versions)]
    context.progress.kept["churn.txt"] = "\n".join(everything)
    return Divergence(
        f"every invariant to hold under churn with seed {seed}",
        f"{violation.rule} at resourceVersion {violation.version}: {violation.text}\n"
        f"to repeat it: --churn-seed {seed}\n" + "\n".join(told),
    )


def _fewer(
    step: Churn, context: Context, again: Again, dealt: Sequence[Operation], violation: Violation
) -> tuple[list[Operation], Round] | None:
    """The fewest operations that still break the rule, and their round; None where all is once."""
    attempts, last = count(), list[Round]()

    def shows(some: Sequence[Operation]) -> bool:
        if next(attempts) >= MOST_ATTEMPTS:
            return False
        with context.scope.again() as scope:
            if scope is None:
                return False
            tried = play(step, again(context.on(scope)), some)
        if tried.violation is None or tried.violation.rule != violation.rule:
            return False
        last[:] = [tried]
        return True

    fewer = fewest(dealt, shows) if shows(dealt) else []
    return (fewer, last[0]) if last else None


def _lines(versions: Sequence[Version]) -> list[str]:
    """What each object is at each version, in a line."""
    called = {uid: _called(state) for _, uid, state in versions if state is not None}
    return [
        f"{version}: {called.get(uid, uid)} {_state(state) if state else 'is gone'}"
        for version, uid, state in versions
    ]


def _called(obj: Obj) -> str:
    return f"{obj['kind']} {obj['metadata']['namespace']}/{obj['metadata']['name']}"


def _state(obj: Obj) -> str:
    status = obj["status"]
    if obj["kind"] == "Pod":
        told = f"on {obj['spec'].get('nodeName', 'no node')}, {status.get('phase')}"
    else:
        results = ((status.get("allocation") or {}).get("devices") or {}).get("results") or ()
        told = "has " + (", ".join(f"{r['pool']}/{r['device']}" for r in results) or "nothing")
        users = ", ".join(user["name"] for user in status.get("reservedFor") or ())
        told += f" for {users}" if users else ""
    return told + (", being deleted" if "deletionTimestamp" in obj["metadata"] else "")
