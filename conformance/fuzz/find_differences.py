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
from conformance.fuzz.cases import UNJUDGED, Answer
from conformance.fuzz.problem import Generator, claims_of, pod_of, resources_of, snapshot_of
from conformance.fuzz.run_problems import SETTLE, Runner
from conformance.fuzz.shrink_json import shrink_together
from kube.base.errors import UsageError
from kube.values import Obj

BATCH = 25
_REMOVABLE = ("pods", "claims", "allocated", "slices", "taintRules", "deviceClasses", "nodes")
_POD_FIELDS = ("resourceClaims", "containers", "initContainers")  # What is looked at of a pod.
_SHRUNK_PER_SORT = 2  # Differences of one sort that are made small.
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
    _seen_sorts: Counter[str] = field(default_factory=Counter)

    def find_differences(
        self, first: int, count: int, seconds: float, on_batch: Callable[[], None]
    ) -> Iterator[Answer]:
        """Yield every confirmed difference, as small as it could be made.

        Args:
            first: number of the first problem.
            count: of problems.
            seconds: after which no further ones are begun.
            on_batch: called after each batch.
        """
        end = time.monotonic() + seconds
        for answers in self._answer_batches(first, count, end):
            for answer in answers:
                confirmed = self._confirm(answer)
                if confirmed is not None and confirmed.verdict == UNJUDGED:
                    self.unjudged.append(f"{confirmed.problem.id}: {confirmed.reason}")
                self.counts[confirmed.verdict if confirmed is not None else "passing"] += 1
                if confirmed is not None and confirmed.differs:
                    yield self._shrink(confirmed)
            on_batch()

    def _answer_batches(self, first: int, count: int, end: float) -> Iterator[list[Answer]]:
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
                        running.add(pool.submit(self._answer_batch, numbers))
                    if not running:
                        return
                    finished, running = wait(running, return_when=FIRST_COMPLETED)
                    for batch in finished:
                        yield batch.result()
            finally:
                self.runner.stop()

    def _answer_batch(self, numbers: Sequence[int]) -> list[Answer]:
        return self.runner.answer([self.generator.draw(self.seed, number) for number in numbers])

    def _confirm(self, answer: Answer) -> Answer | None:
        """Return the answer; None if it differs and the same problem does not show it again."""
        if answer.verdict == UNJUDGED:
            (answer,) = self.runner.answer([answer.problem])
        if not answer.differs:
            return answer
        (repeated,) = self.runner.answer([answer.problem])
        return repeated if sort_of(repeated) == sort_of(answer) else None

    def _shrink(self, answer: Answer) -> Answer:
        """Return the answer to the smallest problem that has one of that sort."""
        sort = sort_of(answer)
        self._seen_sorts[sort] += 1
        if self._seen_sorts[sort] > _SHRUNK_PER_SORT:
            return answer
        smallest = answer
        settle = SETTLE if answer.verdict == "missed" else 1.0  # who waits is not what is sought

        def fail(candidates: Sequence[Obj]) -> list[bool]:
            nonlocal smallest
            problems = [replace(answer.problem, document=complete(item)) for item in candidates]
            answers = self.runner.answer(problems, settle, 10.0)
            same = [sort_of(candidate_answer) == sort for candidate_answer in answers]
            smallest = next(
                (
                    candidate_answer
                    for candidate_answer, is_same in zip(answers, same, strict=True)
                    if is_same
                ),
                smallest,
            )
            return same

        document = answer.problem.document

        def complete(candidate: Obj) -> Obj:
            return {**document, **_complete_document(candidate)}

        def possible(candidate: Obj) -> bool:
            # A class without selectors would admit the devices of others.
            admits = all(
                (item.get("spec") or {}).get("selectors")
                for item in candidate.get("deviceClasses", ())
            )
            try:
                tried = complete(candidate)
                wants = [bool(claims_of(pod) or resources_of(pod)) for pod in tried["pods"]]
                if not (admits and wants and all(wants)) or self.generator.explain_refusal(tried):
                    return False
                snapshot = snapshot_of(tried)
                for node in tried["nodes"]:
                    REFERENCE.allocate(snapshot, tried["claims"], node["metadata"]["name"])
            except (KeyError, TypeError, AttributeError, UsageError):
                return False  # what was taken away is needed on a cluster, or by the reference
            return True

        small = shrink_together(_removable_lists(document), fail, possible=possible)
        (last,) = self.runner.answer([replace(answer.problem, document=complete(small))])
        return last if sort_of(last) == sort else smallest


def _removable_lists(document: Obj) -> Obj:
    """Return the lists of a problem, with those fields that can be taken away."""
    removable = {name: document[name] for name in _REMOVABLE}
    removable["pods"] = [
        {
            "metadata": {"name": pod["metadata"]["name"]},
            "spec": {name: pod["spec"][name] for name in _POD_FIELDS if name in pod["spec"]},
        }
        for pod in removable["pods"]
    ]
    return removable


def _complete_document(candidate: Obj) -> Obj:
    """Return the lists of a smaller problem with complete pods that name no claim that is gone."""
    document = {name: copy.deepcopy(candidate.get(name, [])) for name in _REMOVABLE}
    claim_names = {claim["metadata"]["name"] for claim in document["claims"]}
    for index, pod in enumerate(document["pods"]):
        spec = pod.get("spec") or {}
        entries = [
            item
            for item in spec.get("resourceClaims", ())
            if item.get("resourceClaimName") in claim_names
        ]
        document["pods"][index] = pod_of(
            pod["metadata"]["name"], {**spec, "resourceClaims": entries}
        )
    return document


def sort_of(answer: Answer) -> str:
    """Return what differences of one cause have in common: verdict, and reason without names."""
    rule = answer.reason.partition("it breaks: ")[2] or answer.reason
    return f"{answer.verdict}: {_NAMES.sub('X', rule.partition(':')[0])}"
