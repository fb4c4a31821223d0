"""One round of churn: operations, quiet, nothing left, and what was broken on the way."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, replace

from conformance.engine.churn.operations import Operation
from conformance.engine.churn.play import Player
from conformance.engine.context import Context
from conformance.scenario.churn import Churn
from conformance.targets.invariants import (
    Inventory,
    Violation,
    reserved_for_nobody,
    violations_in,
)
from conformance.targets.watching import Following, Version


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


def play(
    step: Churn, context: Context, dealt: Sequence[Operation], *, patient: bool = False
) -> Round:
    """One round: the operations, quiet, and nothing left.

    Args:
        patient: wait until something was allocated: a scheduler that is behind may not have got to
            it while objects came and went.

    Raises:
        Interrupted: the user wants the run to end.
        TargetError: the target broke.
    """
    player = Player(step, context)
    with closing(context.scope.follow(player.namespaces)) as following:
        player.begin()
        done = player.play(dealt)
        if patient:
            timeout = context.limit(context.scenario.spec.timeouts.eventually)
            context.wait(lambda: _allocated(following.heard()) or None, timeout)
        late = _at_last(lambda: _unquiet(context, following), context, following)
        player.end()
        late += _at_last(lambda: _left(following), context, following)
        versions = following.versions()
    found = [*violations_in(versions, inventory_of(step)), *late]
    if not found and not _allocated(versions):
        found = [Violation("nothing", 0, "no claim was ever allocated")]
    return Round(done, versions, found[0] if found else None, not following.gap)


def _allocated(versions: Sequence[Version]) -> bool:
    """Whether any claim ever had an allocation."""
    return any(state and "allocation" in state["status"] for *_, state in versions)


def inventory_of(step: Churn) -> Inventory:
    """The devices that there are in each round."""
    return Inventory.of(step.items_of("ResourceSlice"))


def _at_last(
    broken: Callable[[], Iterator[Violation]], context: Context, following: Following
) -> list[Violation]:
    """What is still broken when a conformant target has had its time."""
    timeout = context.limit(context.scenario.spec.timeouts.eventually)
    following.versions()
    context.wait(lambda: None if any(True for _ in broken()) else True, timeout)
    newest = max((version for version, *_ in following.versions()), default=0)
    return [replace(item, version=newest) for item in broken()][:1]


def _unquiet(context: Context, following: Following) -> Iterator[Violation]:
    yield from reserved_for_nobody(following.heard())
    if "cdi" in context.scenario.spec.requires.abilities:
        prepared = context.scope.observe.cdi_claims()
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
