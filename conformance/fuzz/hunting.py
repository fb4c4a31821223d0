"""Asks a cluster problem after problem; what differs is asked again, and made small there.

A difference counts if the same problem shows it again, alone: a scheduler's watches are of
different moments, so that on a busy machine it may have decided on a part of the objects. To make
it small, the cluster is the judge: what is smaller has to differ in the same way there.
"""

from __future__ import annotations

import copy
import re
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field, replace

from conformance.compare.witness import REFERENCE
from conformance.errors import UsageError
from conformance.fuzz.cases import UNJUDGED, Answer
from conformance.fuzz.problem import Generator, pod_of
from conformance.fuzz.running import SETTLE, Runner
from conformance.fuzz.shrink import shrink_together
from conformance.targets.seam.values import Obj

BATCH = 25
_PARTS = ("claims", "allocated", "slices", "deviceClasses", "nodes")
_ALIKE = 2  # Differences of one sort that are made small.
_NAMES = re.compile(r"\S*[\d/]\S*|'[^']*'")


@dataclass(slots=True)
class Hunt:
    """A run over the problems of a seed.

    Attributes:
        counts: verdict -> number of problems; ``passing``: differed once and not again.
        unjudged: id and reason of each problem that was not judged, asked twice.
    """

    runner: Runner
    generator: Generator
    seed: str
    workers: int = 4
    counts: Counter[str] = field(default_factory=Counter)
    unjudged: list[str] = field(default_factory=list)
    _sorts: Counter[str] = field(default_factory=Counter)

    def differences(
        self, first: int, count: int, seconds: float, told: Callable[[], None]
    ) -> Iterator[Answer]:
        """Every confirmed difference, as small as it could be made.

        Args:
            first: number of the first problem.
            count: of problems.
            seconds: after which no further ones are begun.
            told: called after each batch.
        """
        end = time.monotonic() + seconds
        for answers in self._batches(first, count, end):
            for answer in answers:
                again = self._confirmed(answer)
                if again is not None and again.verdict == UNJUDGED:
                    self.unjudged.append(f"{again.problem.id}: {again.reason}")
                self.counts[again.verdict if again is not None else "passing"] += 1
                if again is not None and again.differs:
                    yield self._small(again)
            told()

    def _batches(self, first: int, count: int, end: float) -> Iterator[list[Answer]]:
        starts = iter(range(first, first + count, BATCH))
        with ThreadPoolExecutor(self.workers, thread_name_prefix="batch") as pool:
            running: set[Future[list[Answer]]] = set()
            try:
                while True:
                    while len(running) < self.workers and time.monotonic() < end:
                        start = next(starts, None)
                        if start is None:
                            break
                        numbers = range(start, min(start + BATCH, first + count))
                        running.add(pool.submit(self._batch, numbers))
                    if not running:
                        return
                    done, running = wait(running, return_when=FIRST_COMPLETED)
                    for one in done:
                        yield one.result()
            finally:
                self.runner.stop()

    def _batch(self, numbers: Sequence[int]) -> list[Answer]:
        return self.runner.answer([self.generator.draw(self.seed, number) for number in numbers])

    def _confirmed(self, answer: Answer) -> Answer | None:
        """The answer; None if it differs and is not given again."""
        if answer.verdict == UNJUDGED:
            (answer,) = self.runner.answer([answer.problem])
        if not answer.differs:
            return answer
        (again,) = self.runner.answer([answer.problem])
        return again if sort_of(again) == sort_of(answer) else None

    def _small(self, answer: Answer) -> Answer:
        """The answer to the smallest problem that has one of that sort."""
        sort = sort_of(answer)
        self._sorts[sort] += 1
        if self._sorts[sort] > _ALIKE:
            return answer
        found = answer
        settle = SETTLE if answer.verdict == "missed" else 1.0  # who waits is not what is sought

        def fail(candidates: Sequence[Obj]) -> list[bool]:
            nonlocal found
            problems = [replace(answer.problem, document=_whole(item)) for item in candidates]
            answers = self.runner.answer(problems, settle, 10.0)
            same = [sort_of(one) == sort for one in answers]
            found = next(
                (one for one, is_same in zip(answers, same, strict=True) if is_same), found
            )
            return same

        parts = {name: answer.problem.document.get(name, []) for name in _PARTS}

        def possible(candidate: Obj) -> bool:
            # A class without selectors would admit the devices of others.
            admits = all(
                (item.get("spec") or {}).get("selectors")
                for item in candidate.get("deviceClasses", ())
            )
            try:
                whole = _whole(candidate)
                if not (admits and candidate.get("claims")) or self.generator.refused(whole):
                    return False
                for node in whole["nodes"]:
                    REFERENCE.allocate(whole, whole["claims"], node["metadata"]["name"])
            except (KeyError, TypeError, AttributeError, UsageError):
                return False  # what was taken away is needed on a cluster, or by the reference
            return True

        def _whole(candidate: Obj) -> Obj:
            kept = {name: copy.deepcopy(candidate.get(name, [])) for name in _PARTS}
            whole = {**answer.problem.document, **kept}
            whole["pods"] = [pod_of([claim["metadata"]["name"] for claim in whole["claims"]])]
            return whole

        small = shrink_together(parts, fail, possible=possible)
        (last,) = self.runner.answer([replace(answer.problem, document=_whole(small))])
        return last if sort_of(last) == sort else found


def sort_of(answer: Answer) -> str:
    """What differences of one cause have in common: the verdict, and the reason without names."""
    rule = answer.reason.partition("it breaks: ")[2] or answer.reason
    return f"{answer.verdict}: {_NAMES.sub('X', rule.partition(':')[0])}"
