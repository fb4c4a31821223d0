"""Asks a program one question after the other, judges the answers, and makes differences small."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Set
from typing import Any, Final

from conformance.allocators.contract import AllocationAnswer, read_answer
from conformance.allocators.features import features_of
from conformance.allocators.judging import (
    WRONG,
    Finding,
    answer_of_reference,
    explain_finding,
    explain_no_judgement,
    fits_of,
    following_of,
    judge_answer,
    question_of_pod,
)
from conformance.allocators.program import Program, ProgramError
from conformance.allocators.questions import SHAPES, AskedQuestion, Vector, write_devices
from conformance.allocators.record import CheckHeader, NodeFinding, QuestionRecord, SmallCase
from conformance.fuzz.problem import Generator
from conformance.fuzz.shrink_json import shrink
from kube.base.errors import ConformanceError, UsageError
from kube.base.text import one_line
from kube.errors import ApiError
from reference_allocator.api.defaulting import default_claim
from reference_allocator.wire import CONTRACT

Json = dict[str, Any]

FAULTS_IN_A_ROW: Final = 5
"""How often a program may fail to answer, one question after the other, before it is given up."""

_SHRINK_SECONDS = 20.0
_LONGEST_TEXT = 600
_API = "resource.k8s.io/v1"
_KINDS: Final = {
    field: shape.rpartition(".")[2]
    for field, shape in SHAPES.items()
    if shape.startswith("resource/")
}


class Checker:
    """Judges one program.

    Args:
        program: is asked; it is not ended here.
        options: how it is judged.
    """

    def __init__(self, program: Program, options: CheckHeader) -> None:
        self._program, self._options = program, options
        self._generator: Generator | None = None
        self.left_out = 0
        """How many questions use what the program does not claim to have."""
        self.given_up = ""
        """Why the program was given up; empty while it answers."""

    def check(
        self, questions: Iterable[AskedQuestion], known: Iterable[QuestionRecord] = ()
    ) -> Iterator[QuestionRecord]:
        """Yield what comes of each question that was not asked before.

        Args:
            known: what came of questions earlier, whose numbers are left out.

        Raises UsageError: an earlier question had the same number and another id.
        """
        before = {record.number: record for record in known}
        small = sum(record.small is not None for record in before.values())
        faults = 0
        for asked in questions:
            features = features_of(asked.question)
            if not set(features).isdisjoint(self._options.without):
                self.left_out += 1
                continue
            if asked.number in before:
                if before[asked.number].id != asked.id:
                    raise UsageError(
                        f"question {asked.number} is {asked.id} now; it was"
                        f" {before[asked.number].id} when the check began: give the same questions"
                    )
                continue
            record = self._ask(asked, features)
            if record.differs and small < self._options.small:
                record = record.model_copy(update={"small": self._make_small(asked, record)})
                small += record.small is not None
            yield record
            faults = faults + 1 if record.fault else 0
            if faults == FAULTS_IN_A_ROW:
                self.given_up = f"gave no answer {faults} times in a row; last: {record.fault}"
                return

    def _ask(self, asked: AskedQuestion, features: tuple[str, ...]) -> QuestionRecord:
        record = QuestionRecord(number=asked.number, id=asked.id, features=list(features))
        reference = answer_of_reference(asked.question, self._options.kubernetes)
        unjudged = explain_no_judgement(reference) or _contradict(asked.vector, reference)
        if unjudged:
            return record.model_copy(update={"unjudged": one_line(unjudged)})
        try:
            findings, unsupported, milliseconds = self._judge(
                asked.question, reference, asked.vector
            )
        except ProgramError as fault:
            return record.model_copy(update={"fault": f"{fault.kind}: {fault}"})
        return record.model_copy(
            update={
                "milliseconds": milliseconds,
                "unsupported": unsupported,
                "findings": [_as_record(finding) for finding in findings],
            }
        )

    def _judge(
        self, question: Json, reference: Json, vector: Vector | None = None
    ) -> tuple[list[Finding], str, float]:
        """Return what is wrong, what the program does not do, and its time in milliseconds.

        ``vector``: has the question, and may say which devices are the only right ones.

        Raises ProgramError: there is no answer, or it says that the question is invalid.
        """
        start = time.perf_counter()
        line = self._program.ask(question)
        milliseconds = round((time.perf_counter() - start) * 1000, 3)
        try:
            answer = read_answer(line, question)
        except ProgramError:
            self._program.end()  # what else it says would be taken for the next answer
            raise
        if answer.invalid:
            raise ProgramError("malformed", f"cannot read the question: {one_line(answer.invalid)}")
        if answer.unsupported:
            return [], one_line(answer.unsupported), milliseconds
        options = self._options
        judge = judge_answer(question, answer, reference, options.level, options.kubernetes)
        found = list(judge)
        if vector is not None and options.level == vector.level == "admissible":
            found += _judge_by_vector(vector, answer, {finding.node for finding in found})
        return found, "", milliseconds

    def _make_small(self, asked: AskedQuestion, record: QuestionRecord) -> SmallCase | None:
        """Return the smallest question that shows the first difference of a record, if any does."""
        first = next(finding for finding in record.findings if finding.kind in WRONG)
        if self._generator is None:
            self._generator = Generator(self._options.kubernetes, {})
        is_valid = make_validity(self._generator, asked.question)
        until = time.monotonic() + _SHRINK_SECONDS

        def differs(candidate: Json) -> bool:
            found = self._find(candidate, first) if time.monotonic() < until else None
            return found is not None and is_valid(candidate)

        # A feature that is switched off would be another difference.
        kept = {"features": asked.question.get("features") or {}}
        parts = {name: value for name, value in asked.question.items() if name not in kept}
        small = shrink(parts, lambda candidate: differs(candidate | kept)) | kept
        finding = self._find(small, first)
        if finding is None:
            # The vector alone says so, or the program answers otherwise each time.
            said = asked.vector if first.kind == "other devices" else None
            return SmallCase(kind=first.kind, vector=said) if said else None
        return SmallCase(kind=first.kind, vector=self._make_vector(small, finding))

    def _find(self, question: Json, like: NodeFinding) -> Finding | None:
        """Return the finding of the same kind for the same node, if the question shows one."""
        try:
            reference = answer_of_reference(question, self._options.kubernetes)
            if explain_no_judgement(reference):
                return None
            findings, _, _ = self._judge(question, reference)
        except (ProgramError, ConformanceError, KeyError, TypeError, AttributeError, ValueError):
            return None  # what was taken away is needed to ask
        alike = (like.node, like.kind, like.said, like.pod > 0)
        return next(
            (item for item in findings if (item.node, item.kind, item.said, item.pod > 0) == alike),
            None,
        )

    def _make_vector(self, question: Json, finding: Finding) -> Vector:
        reference = answer_of_reference(question, self._options.kubernetes)
        text = explain_finding(finding, self._options.kubernetes)
        return Vector(
            id=question["id"],
            contract=CONTRACT,
            source="",
            kubernetes=[self._options.kubernetes],
            features=list(features_of(question)),
            sentence=one_line(text, _LONGEST_TEXT),
            question=question,
            expected=fits_of(reference),
            following=following_of(reference),
            **({} if self._options.level == "fits" else _identical(reference)),
        )


def _identical(reference: Json) -> Json:
    """Return the fields of a vector with the devices that Kubernetes takes, if it takes any."""
    return {**written, "level": "identical"} if (written := write_devices(reference)) else {}


def _judge_by_vector(
    vector: Vector, answer: AllocationAnswer, judged: Set[str]
) -> Iterator[Finding]:
    """Yield where right devices are not those that a vector says are the only right ones.

    Args:
        judged: nodes whose answers are known to be wrong.
    """
    nodes = {node["metadata"]["name"]: node for node in vector.question.get("nodes") or ()}
    pods = {node.node: node.pods for node in answer.nodes}
    for name, number in vector.find_other_devices(answer.model_dump()):
        if name not in judged:
            asked = question_of_pod(vector.question, nodes[name], pods[name][:number])
            yield Finding(
                name, "other devices", "allocated", "allocated", pod=number, question=asked
            )


def _contradict(vector: Vector | None, reference: Json) -> str:
    """Return that a vector says otherwise than the reference, which cannot judge it then."""
    if vector is None:
        return ""
    fits = (fits_of(reference), following_of(reference)) == (vector.expected, vector.following)
    if fits and not any(vector.find_other_devices(reference)):
        return ""
    return "the vector says otherwise than the reference of this version: take that version's own"


def make_validity(generator: Generator, question: Json) -> Callable[[Json], bool]:
    """Return what says whether a smaller question has objects as an API server stores them.

    Where it would refuse some of the question itself, all are taken; claims stay defaulted if they
    are.
    """

    def is_defaulted(candidate: Json) -> bool:
        return all(default_claim(item) == item for item in candidate.get("claims") or ())

    def is_taken(candidate: Json) -> bool:
        try:
            return not generator.explain_refusal(_with_types(candidate))
        except (ApiError, KeyError, TypeError, AttributeError, ValueError):
            return False

    rules = [rule for rule in (is_defaulted, is_taken) if rule(question)]
    return lambda candidate: all(rule(candidate) for rule in rules)


def _with_types(question: Json) -> Json:
    """Return the question with the kind of each object, which a file may leave out."""
    return question | {
        field: [{"apiVersion": _API, "kind": kind, **item} for item in question.get(field) or ()]
        for field, kind in _KINDS.items()
    }


def _as_record(finding: Finding) -> NodeFinding:
    fields = {name: getattr(finding, name) for name in NodeFinding.model_fields}
    return NodeFinding(**fields | {"detail": one_line(finding.detail, _LONGEST_TEXT)})
