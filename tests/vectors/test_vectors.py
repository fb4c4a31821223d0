"""The shipped vectors: the reference answers as they say, for each minor that they name."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from conformance.allocators.features import FEATURES
from conformance.allocators.judging import answer_of_reference
from conformance.allocators.program import Program
from conformance.allocators.questions import Vector, read_questions
from reference_allocator.gates import LATEST
from tests.allocators.asking import python, run
from tests.oracle.upstream import ask
from tests.vectors.make import HAND_MADE, expected_of, outcomes, read_vectors
from tests.vectors.written import WRITTEN

ROOT = Path(__file__).parents[2]
CLASSES = {f"D{number}" for number in range(1, 25)} | {"D10b"}
"""The classes of differences of Karpenter's allocator in which it says yes or no wrongly."""


@pytest.fixture(scope="module")
def vectors() -> list[Vector]:
    return read_vectors()


def test_the_reference_answers_as_the_vectors_say(vectors: list[Vector]) -> None:
    wrong = [
        (vector.id, minor)
        for vector in vectors
        for minor in vector.kubernetes
        if outcomes(answer_of_reference(vector.question, minor)) != expected_of(vector)
    ]
    assert wrong == []


def test_the_vectors_are_of_every_feature_and_those_that_are_written(
    vectors: list[Vector],
) -> None:
    ids = [vector.id for vector in vectors]
    assert len(set(ids)) == len(ids)
    by_id = {vector.id: vector for vector in vectors}
    for item in HAND_MADE:
        vector = by_id[item.id]
        assert vector.question == {"id": item.id, **item.question}
        assert (vector.expected, vector.sentence) == ({"node-0": item.fits}, item.sentence)
        assert vector.following.get("node-0", []) == [*item.following]
    features = {name for vector in vectors for name in vector.features}
    assert {*FEATURES} - features <= {"deviceBindingAndStatus", "compatibilityGroups"}
    assert all(vector.source and LATEST in vector.kubernetes for vector in vectors)


def test_each_class_of_karpenter_has_a_vector() -> None:
    assert {item.karpenter for item in WRITTEN if item.karpenter} == CLASSES


def test_the_ready_test_for_karpenter_names_vectors_that_are_there(vectors: list[Vector]) -> None:
    text = (ROOT / "ci/allocators/ready/karpenter/vectors_test.go").read_text(encoding="utf-8")
    table = text[text.index("var classes") : text.index("type vector struct")]
    named = {name for row in re.findall(r"\[\]string\{([^}]*)\}", table) for name in
             re.findall(r'"([^"]+)"', row)}  # fmt: skip
    assert len(named) > 30
    assert named <= {vector.id for vector in vectors}


def test_the_vectors_are_asked_by_name(tmp_path: Path, vectors: list[Vector]) -> None:
    done = run("--program", python("wrong.py", "none"), "--vectors", "-o", tmp_path / "out")
    assert done.exit_code == 0, done.output
    asked = read_questions(ROOT / "scenarios/vectors/allocation.ndjson", LATEST)
    assert f"{len(asked)} questions" in done.stdout
    assert len(asked) == len(vectors)


@pytest.mark.everything
@pytest.mark.skipif(shutil.which("go") is None, reason="needs the go command")
def test_karpenter_fails_the_vectors_of_its_classes_and_no_others_of_the_written() -> None:
    """Its module is large: the first build takes four minutes of a processor."""
    subprocess.run([ROOT / "ci/allocators/build", "karpenter"], check=True, timeout=3600)
    program = ROOT / "build/oracle/karpenter"
    with Program([program, "-timeout", "2s"], 60) as karpenter:
        answers = {
            item.id: ask(karpenter, {"id": item.id, **item.question})["nodes"][0]["outcome"]
            for item in WRITTEN
        }
    wrong = {
        item.id
        for item in WRITTEN
        if (answers[item.id] == "allocated") != item.fits or answers[item.id] == "timeout"
    }
    assert wrong == {item.id for item in WRITTEN if item.karpenter}
