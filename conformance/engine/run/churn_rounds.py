"""Churn, round by round: random operations, then quiet, then nothing left.

A round is short, starts and ends with no pods and claims, and has its own seed, so a failure after
an hour can be repeated in seconds.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from math import ceil
from typing import Any

from conformance.engine.run.attempt import ScenarioAttempt
from conformance.engine.run.churn_history import left, lines, shortest
from conformance.engine.run.churn_invariants import (
    Inventory,
    Violation,
    reserved_for_nobody,
    violations_in,
)
from conformance.engine.run.churn_operations import Operation, operations
from conformance.engine.run.churn_player import Player
from conformance.engine.run.ending import Divergence, Interrupted
from conformance.scenario.base import ObjectSelector
from conformance.scenario.churn import Churn
from conformance.seam.abilities import Ability
from conformance.seam.watching import Following, Version
from kube.base.errors import TargetError


@dataclass(frozen=True, slots=True)
class Round:
    """The result of one round.

    Attributes:
        done: how many operations there was time for.
        versions: every state of pods and claims, by resourceVersion.
        violation: the first invariant that did not hold, None if all did.
        judged: False if a watch had a gap, so nothing can be concluded.
    """

    done: int
    versions: Sequence[Version]
    violation: Violation | None
    judged: bool


def churn(step: Churn, attempt: ScenarioAttempt) -> dict[str, Any]:
    """Carry out the step.

    Returns the first seed and the number of rounds. For long churn also the number of operations;
    they depend on the target's speed, and long churn is not compared with another run.

    Raises:
        Divergence: an invariant does not hold.
        TargetError: a watch was interrupted in every round, so nothing can be concluded.
    """
    options = attempt.setup.opened.options
    budget, first = options.churn_time or step.time, options.churn_seed or step.seed
    # The target's own clock: where time is simulated, a busy machine costs no rounds.
    began = attempt.scope.now()
    rounds = judged = operations_done = 0
    broken: list[str] = []
    divergence: Divergence | None = None
    while rounds < ceil(budget / step.time) and attempt.scope.now() - began < budget:
        seed = first + rounds
        drawn = operations(step, seed)
        try:
            this_round = _play(step, attempt, drawn)
        except Interrupted:
            if divergence is None:
                raise
            break  # report what was found
        rounds, operations_done, judged = (
            rounds + 1,
            operations_done + this_round.done,
            judged + this_round.judged,
        )
        if this_round.violation is not None and this_round.judged:
            broken.append(f"{this_round.violation.rule} with seed {seed}")
            divergence = divergence or _divergence(
                step, attempt, seed, drawn[: this_round.done], this_round, this_round.violation
            )
    if divergence is not None:
        summary = f"in {rounds} rounds of {operations_done} operations: {', '.join(broken)}"
        raise Divergence(divergence.expected, f"{divergence.found}\n{summary}")
    if not judged:
        raise TargetError("the watches of pods and claims were interrupted in every round of churn")
    observed = {"seed": first, "rounds": rounds}
    if options.churn_time:
        observed["operations"] = operations_done
    return observed if judged == rounds else observed | {"notJudged": rounds - judged}


def _play(step: Churn, attempt: ScenarioAttempt, drawn: Sequence[Operation]) -> Round:
    player = Player(step, attempt)
    # Before anything is made: an object of which a state was missed cannot be judged.
    with closing(attempt.scope.follow(player.namespaces)) as following:
        player.begin()
        operations_done = player.play(drawn)
        # A scheduler that is behind may not have allocated anything while objects came and went.
        timeout = attempt.limit(attempt.scenario.spec.timeouts.eventually)
        attempt.wait(lambda: _allocated(following.heard()) or None, timeout)
        late = _still_broken(lambda: _unquiet(attempt, following), attempt, following)
        player.end()
        # All has been told to go by now, so that what stays is held by somebody who is gone.
        late += _still_broken(lambda: left(following.heard()), attempt, following)
        versions = following.versions()
    violations = [*violations_in(versions, _inventory(step, attempt)), *late]
    if not violations and not _allocated(versions):
        violations = [Violation("nothing", 0, "no claim was ever allocated")]
    return Round(
        operations_done, versions, violations[0] if violations else None, not following.gap
    )


def _inventory(step: Churn, attempt: ScenarioAttempt) -> Inventory:
    """Of what the step publishes, and of what the driver does."""
    slices = attempt.find(ObjectSelector(kind="ResourceSlice"))
    return Inventory.of([*step.items_of("ResourceSlice"), *slices])


def _divergence(
    step: Churn,
    attempt: ScenarioAttempt,
    seed: int,
    done: Sequence[Operation],
    found: Round,
    violation: Violation,
) -> Divergence:
    """The finding with its seed, its last operations and its shortest history."""
    texts = list(map(Player(step, attempt).text, done))
    inventory = _inventory(step, attempt)
    history = lines(shortest(found.versions, violation, inventory))
    everything = [f"seed {seed}", violation.text, *texts, *lines(found.versions)]
    attempt.diagnostics["churn.txt"] = "\n".join(everything)
    shown = [
        f"{violation.rule} at resourceVersion {violation.version}: {violation.text}",
        f"to repeat it: --churn-seed {seed}",
        f"operations ({len(texts)}, the last 10):",
        *(f"  {text}" for text in texts[-10:]),
        "history:",
        *(f"  {line}" for line in history[-20:]),
    ]
    return Divergence(f"every invariant to hold under churn with seed {seed}", "\n".join(shown))


def _allocated(versions: Sequence[Version]) -> bool:
    """Whether any claim ever had an allocation."""
    return any(state and "allocation" in state["status"] for *_, state in versions)


def _still_broken(
    broken: Callable[[], Iterator[Violation]], attempt: ScenarioAttempt, following: Following
) -> list[Violation]:
    """What is still broken after the time that a conformant target may take."""
    timeout = attempt.limit(attempt.scenario.spec.timeouts.eventually)
    following.versions()
    attempt.wait(lambda: None if any(True for _ in broken()) else True, timeout)
    newest = max((version for version, *_ in following.versions()), default=0)
    return [replace(item, version=newest) for item in broken()][:1]


def _unquiet(attempt: ScenarioAttempt, following: Following) -> Iterator[Violation]:
    yield from reserved_for_nobody(following.heard())
    if Ability.CDI in attempt.scenario.spec.requires.abilities:
        prepared = attempt.scope.observe.cdi_claims()
        known_uids = {uid for _, uid, _ in following.heard()}
        present = following.now()
        allocated = {obj["metadata"]["uid"] for obj in present if "allocation" in obj["status"]}
        for uid in sorted(known_uids & prepared.keys() - allocated):
            yield Violation("prepared", 0, f"claim {uid} is prepared, and not allocated")
