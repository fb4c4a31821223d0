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
from conformance.fuzz.problem import Generator, claims_of, pod_of, resources_of, snapshot_of
from conformance.fuzz.run_problems import SETTLE, Runner
from conformance.fuzz.shrink_json import shrink_together
from conformance.targets.seam.values import Obj

BATCH = 25
_PARTS = ("pods", "claims", "allocated", "slices", "taintRules", "deviceClasses", "nodes")
_POD = ("resourceClaims", "containers", "initContainers")  # What is looked at of a pod.
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
            problems = [replace(answer.problem, document=whole(item)) for item in candidates]
            answers = self.runner.answer(problems, settle, 10.0)
            same = [sort_of(one) == sort for one in answers]
            found = next(
                (one for one, is_same in zip(answers, same, strict=True) if is_same), found
            )
            return same

        document = answer.problem.document

        def whole(candidate: Obj) -> Obj:
            return {**document, **_whole(candidate)}

        def possible(candidate: Obj) -> bool:
            # A class without selectors would admit the devices of others.
            admits = all(
                (item.get("spec") or {}).get("selectors")
                for item in candidate.get("deviceClasses", ())
            )
            try:
                tried = whole(candidate)
                wants = [bool(claims_of(pod) or resources_of(pod)) for pod in tried["pods"]]
                if not (admits and wants and all(wants)) or self.generator.refused(tried):
                    return False
                snapshot = snapshot_of(tried)
                for node in tried["nodes"]:
                    REFERENCE.allocate(snapshot, tried["claims"], node["metadata"]["name"])
            except (KeyError, TypeError, AttributeError, UsageError):
                return False  # what was taken away is needed on a cluster, or by the reference
            return True

        small = shrink_together(_parts(document), fail, possible=possible)
        (last,) = self.runner.answer([replace(answer.problem, document=whole(small))])
        return last if sort_of(last) == sort else found


def _parts(document: Obj) -> Obj:
    """What can be taken away from a problem."""
    parts = {name: document[name] for name in _PARTS}
    parts["pods"] = [
        {
            "metadata": {"name": pod["metadata"]["name"]},
            "spec": {name: pod["spec"][name] for name in _POD if name in pod["spec"]},
        }
        for pod in parts["pods"]
    ]
    return parts


def _whole(candidate: Obj) -> Obj:
    """What is left, its pods complete, and without claims that are gone."""
    found = {name: copy.deepcopy(candidate.get(name, [])) for name in _PARTS}
    there = {claim["metadata"]["name"] for claim in found["claims"]}
    for index, pod in enumerate(found["pods"]):
        spec = pod.get("spec") or {}
        entries = [
            item
            for item in spec.get("resourceClaims", ())
            if item.get("resourceClaimName") in there
        ]
        found["pods"][index] = pod_of(pod["metadata"]["name"], {**spec, "resourceClaims": entries})
    return found


def sort_of(answer: Answer) -> str:
    """What differences of one cause have in common: the verdict, and the reason without names."""
    rule = answer.reason.partition("it breaks: ")[2] or answer.reason
    return f"{answer.verdict}: {_NAMES.sub('X', rule.partition(':')[0])}"
