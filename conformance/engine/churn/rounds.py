"""Churn, round by round: operations, quiet, nothing left, and what was broken on the way.

Each round is short, begins and ends with nothing, and has a seed of its own, so that a failure
after an hour is repeated in seconds. Where the target can be had anew (the reference), the
operations are shrunk by carrying out fewer of them; elsewhere what was recorded is.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from itertools import count
from math import ceil
from typing import Any, Final

from conformance.engine.awaiting import Divergence
from conformance.engine.churn.operations import Operation, operations
from conformance.engine.churn.play import Player
from conformance.engine.churn.shrink import fewest, shortest_history
from conformance.engine.context import Context, Interrupted
from conformance.errors import TargetError
from conformance.scenario.churn import Churn
from conformance.targets.following import Following, Obj, Version
from conformance.targets.invariants import (
    Inventory,
    Violation,
    reserved_for_nobody,
    violations_in,
)

MOST_ATTEMPTS: Final = 150
"""How often fewer operations are carried out."""

Again = Callable[[Context], Context]
"""Brings a scenario in a new target to where its churn begins."""


@dataclass(frozen=True, slots=True)
class Round:
    """What came of one round.

    Attributes:
        done: how many operations there was time for.
        versions: pods and claims, each as it was at each resourceVersion.
        violation: the first invariant that did not hold, None where all did.
        judged: whether everything that happened was seen.
    """

    done: int
    versions: Sequence[Version]
    violation: Violation | None
    judged: bool


def churn(step: Churn, context: Context, again: Again) -> dict[str, Any]:
    """Carry out the step.

    Returns:
        The first seed, how many rounds it were, and of long churn how many operations: there was
        time for more of them on a faster target, and long churn is not compared with another one.

    Raises:
        Divergence: an invariant does not hold.
        TargetError: a watch was interrupted in every round, so nothing can be said.
    """
    budget, first = context.churn_seconds or step.time, context.churn_seed or step.seed
    spent = 0.0  # without what it takes to shrink
    rounds = judged = done = 0
    broken: list[str] = []
    divergence: Divergence | None = None
    while rounds < ceil(budget / step.time) and spent < budget:
        dealt, began = operations(step, first + rounds), time.monotonic()
        try:
            found = play(step, context, dealt)
        except Interrupted:
            if divergence is None:
                raise
            break  # what was found is told
        spent += time.monotonic() - began
        rounds, done, judged = rounds + 1, done + found.done, judged + found.judged
        if found.violation is not None and found.judged:
            seed, dealt = first + rounds - 1, dealt[: found.done]
            broken.append(f"{found.violation.rule} with seed {seed}")
            divergence = divergence or _divergence(step, context, again, seed, dealt, found)
    if divergence is not None:
        told = f"in {rounds} rounds of {done} operations: {', '.join(broken)}"
        raise Divergence(divergence.expected, f"{divergence.found}\n{told}")
    if not judged:
        raise TargetError("the watches of pods and claims were interrupted in every round of churn")
    observed = {"seed": first, "rounds": rounds}
    if context.churn_seconds:
        observed["operations"] = done
    return observed if judged == rounds else observed | {"notJudged": rounds - judged}


def play(step: Churn, context: Context, dealt: Sequence[Operation]) -> Round:
    """One round: the operations, quiet, and nothing left.

    Raises:
        Interrupted: the user wants the run to end.
        TargetError: the target broke.
    """
    player = Player(step, context)
    with closing(context.scope.follow(player.namespaces)) as following:
        player.begin()
        done = player.play(dealt)
        late = _at_last(lambda: _unquiet(context, following), context, following)
        player.end()
        late += _at_last(lambda: _left(following), context, following)
        versions = following.versions()
    found = [*violations_in(versions, _inventory(step)), *late]
    if not found and not any(state and "allocation" in state["status"] for *_, state in versions):
        found = [Violation("nothing", 0, "no claim was ever allocated")]
    return Round(done, versions, found[0] if found else None, not following.gap)


def _inventory(step: Churn) -> Inventory:
    return Inventory.of(step.items_of("ResourceSlice"))


def _at_last(
    broken: Callable[[], Iterator[Violation]], context: Context, following: Following
) -> list[Violation]:
    """What is still broken when a conformant target has had its time."""
    timeout = context.scenario.spec.timeouts.eventually
    following.versions()
    context.wait(lambda: None if any(True for _ in broken()) else True, timeout)
    newest = max((version for version, *_ in following.versions()), default=0)
    return [replace(item, version=newest) for item in broken()][:1]


def _unquiet(context: Context, following: Following) -> Iterator[Violation]:
    yield from reserved_for_nobody(following.heard())
    if "cdi" in context.scenario.spec.requires.abilities:
        prepared = context.scope.cdi_claims()
        known = {uid for _, uid, _ in following.heard()}
        present = following.now()
        allocated = {obj["metadata"]["uid"] for obj in present if "allocation" in obj["status"]}
        for uid in sorted(known & prepared.keys() - allocated):
            yield Violation("prepared", 0, f"claim {uid} is prepared, and not allocated")


def _left(following: Following) -> Iterator[Violation]:
    for obj in following.now():
        meta = obj["metadata"]
        text = f"{obj['kind']} {meta['namespace']}/{meta['name']} is left, though all was deleted"
        yield Violation("left", 0, text)


def _divergence(
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
    versions = shortest_history(versions, violation, _inventory(step))
    told = [f"operations ({len(dealt)}):" if fewer else f"operations ({len(dealt)}, the last 10):"]
    told += [f"  {player.text(operation)}" for operation in (dealt if fewer else dealt[-10:])]
    told += ["history:", *(f"  {line}" for line in _lines(versions)[-20:])]
    everything = [f"seed {seed}", violation.text, *map(player.text, dealt), *_lines(found.versions)]
    context.kept["churn.txt"] = "\n".join(everything)
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
