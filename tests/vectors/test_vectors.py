"""The shipped vectors: the reference answers as they say, for each minor that they name."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from conformance.allocators.features import FEATURES
from conformance.allocators.judging import ClaimDevices, answer_of_reference
from conformance.allocators.program import Program
from conformance.allocators.questions import VECTORS, Vector, read_questions
from conformance.allocators.selectors import SELECTORS
from reference_allocator.gates import LATEST
from tests.allocators.asking import GPU, Json, python, question, run
from tests.oracle.upstream import ask
from tests.vectors.choices import TooManyChoicesError, only_devices, right_choices
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


def test_devices_are_written_exactly_where_no_others_are_right(vectors: list[Vector]) -> None:
    assert [
        vector.id for vector in vectors if written_devices(vector) != tried_devices(vector)
    ] == []
    with_devices = sum(bool(vector.devices or vector.following_devices) for vector in vectors)
    fitting = sum(any(vector.expected.values()) for vector in vectors)
    assert fitting * 3 // 4 < with_devices < fitting


def written_devices(vector: Vector) -> Json:
    """What a vector says of devices, as `only_devices` does."""
    return vector.model_dump(
        by_alias=True, include={"devices", "following_devices"}, exclude_defaults=True
    )


def tried_devices(vector: Vector) -> Json:
    """What comes of trying all choices by the rules of the latest minor."""
    try:
        return only_devices(vector.question, answer_of_reference(vector.question), LATEST)
    except TooManyChoicesError:
        return {}


@pytest.mark.parametrize(
    ("asked", "choices"),
    [
        (question("two-of-two", count=2), [[["gpu-0", "gpu-1"]]]),
        (question("one-of-two"), [[["gpu-0"]], [["gpu-1"]]]),
        (question("three-of-two", count=3), []),
    ],
    ids=lambda value: value["id"] if isinstance(value, dict) else "",
)
def test_choices_are_all_that_are_right(asked: Json, choices: list[ClaimDevices]) -> None:
    """Order and place of a device in a claim make no other choice."""
    found = right_choices(asked, LATEST, most=10)
    assert found == [
        [[f"{GPU}/node-0/{name}" for name in claim] for claim in claims] for claims in choices
    ]


def test_of_alternatives_only_the_first_that_can_be_had_is_right() -> None:
    asked = question("second-alternative", devices=1)
    (request,) = asked["claims"][0]["spec"]["devices"]["requests"]
    one = request.pop("exactly")
    request["firstAvailable"] = [
        {**one, "name": "two", "count": 2},
        {**one, "name": "one"},
        {**one, "name": "none", "count": 0},
    ]
    asked["features"]["prioritizedList"] = True
    assert right_choices(asked, LATEST, most=10) == [[[f"{GPU}/node-0/gpu-0"]]]


def test_every_line_names_its_contract() -> None:
    for file, contract in ((VECTORS, "allocation/v1"), (SELECTORS, "cel/v1")):
        lines = map(json.loads, file.read_text(encoding="utf-8").splitlines())
        assert {line["contract"] for line in lines} == {contract}


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
