"""Programs with a planted fault: it is found, said in words, and made small."""

from __future__ import annotations

import json
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from conformance.allocators.judging import answer_of_reference
from conformance.allocators.questions import draw_questions, write_devices
from reference_allocator.gates import LATEST
from reference_allocator.wire import answer_allocate
from tests.allocators.asking import GPU, PROGRAMS, python, question, report, run, write


def test_the_reference_itself_is_right_at_every_level(tmp_path: Path) -> None:
    done = run(
        "--program", python("wrong.py", "none"), "--count", 40, "--seed", "right",
        "--level", "identical", "-o", tmp_path / "out",
    )  # fmt: skip
    assert done.exit_code == 0, done.output
    assert "conformant (exit code 0)" in done.stdout
    assert report(tmp_path / "out")["features"]["all questions"]["asked"] == 40


def test_questions_have_only_fields_that_an_api_server_of_the_minor_stores() -> None:
    for minor in ("1.34", "1.36", "1.37"):
        asked = [each.question for each in draw_questions(minor, "fields", 0, 60)]
        assert "nodeAllocatableResources" not in json.dumps(asked)
        assert any("capacity" in json.dumps(question) for question in asked)


@pytest.mark.parametrize(
    ("fault", "seed", "count", "kind", "feature", "words"),
    [
        ("taints-ignored", "t", 60, "wrong yes", "deviceTaints", "tainted"),
        ("in-use-ignored", "i", 60, "wrong yes", "inUse", "in use"),
        ("first-claim-only", "f", 60, "wrong yes", "severalClaims", "says it fits"),
        ("forgets-the-row", "r", 60, "wrong yes", "severalPods", " in a row: "),
        ("extended-resources-ignored", "e", 60, "wrong yes", "extendedResources", "says it fits"),
    ],
)
def test_a_planted_fault_is_found_and_made_small(
    tmp_path: Path, fault: str, seed: str, count: int, kind: str, feature: str, words: str
) -> None:
    done = run(
        "--program", python("wrong.py", fault), "--count", count, "--seed", seed, "--small", 2,
        "-o", tmp_path / "out",
    )  # fmt: skip
    assert done.exit_code == 1, done.output
    document = report(tmp_path / "out")
    assert {item["kind"] for item in document["differences"]} == {kind}
    for item in document["differences"]:
        vector = item["vector"]
        assert feature in vector["features"]
        assert words in vector["sentence"]
        assert len(vector["question"].get("slices", [])) <= 2
    counts = document["features"]
    assert counts[feature]["wrongYes"] == counts["all questions"]["wrongYes"] > 0


def test_a_difference_is_a_vector_that_is_asked_again(tmp_path: Path) -> None:
    program = python("wrong.py", "taints-ignored")
    taint = {"key": "k", "effect": "NoSchedule", "timeAdded": "2100-01-01T00:00:00Z"}
    asked = write(tmp_path, [question("q", devices=1, gpu0={"taints": [taint]})])
    assert run("--program", program, "--questions", asked, "-o", tmp_path / "a").exit_code == 1
    vectors = tmp_path / "a" / "differences.ndjson"
    (vector,) = map(json.loads, vectors.read_text().splitlines())
    answer = json.loads(answer_allocate(json.dumps(vector["question"])))
    assert [node["outcome"] == "allocated" for node in answer["nodes"]] == [False]
    assert vector["expected"] == {"node-0": False}
    again = run("--program", program, "--questions", vectors, "-o", tmp_path / "b")
    assert again.exit_code == 1
    right = run(
        "--program", python("wrong.py", "none"), "--questions", vectors, "-o", tmp_path / "c"
    )
    assert right.exit_code == 0


def test_a_vector_that_says_otherwise_than_the_reference_judges_nobody(tmp_path: Path) -> None:
    vector = {
        "id": "q",
        "kubernetes": [LATEST],
        "features": [],
        "sentence": "of another version",
        "question": question("q"),
        "expected": {"node-0": False},
    }
    asked = write(tmp_path, [vector, question("fine")])
    done = run(
        "--program", python("wrong.py", "none"), "--questions", asked, "-o", tmp_path / "out"
    )
    assert done.exit_code == 3, done.output
    (unanswered,) = report(tmp_path / "out")["unanswered"]
    assert unanswered["id"] == "q"
    assert "the vector says otherwise than the reference of this version" in unanswered["unjudged"]


@pytest.mark.parametrize(("level", "code"), [("fits", 0), ("admissible", 0), ("identical", 1)])
def test_other_devices_are_wrong_for_those_who_claim_to_take_the_same(
    tmp_path: Path, level: str, code: int
) -> None:
    asked = write(tmp_path, [question("q")])
    done = run(
        "--program", python("wrong.py", "last-device"), "--questions", asked, "--level", level,
        "-o", tmp_path / "out",
    )  # fmt: skip
    assert done.exit_code == code, done.output


def test_a_difference_in_devices_is_a_vector_with_those_of_kubernetes(tmp_path: Path) -> None:
    last, none = python("wrong.py", "last-device"), python("wrong.py", "none")
    asked = write(tmp_path, [question("q")])
    done = run(
        "--program", last, "--questions", asked, "--level", "identical", "-o", tmp_path / "o"
    )
    assert done.exit_code == 1, done.output
    difference = tmp_path / "o" / "differences.ndjson"
    vector = json.loads(difference.read_text())
    assert vector["devices"] == {"node-0": [[f"{GPU}/node-0/gpu-0"]]}
    assert vector["level"] == "identical"
    for level, program, code in (
        ("identical", last, 1),
        ("identical", none, 0),
        ("admissible", last, 0),  # others are right, too
    ):
        folder = tmp_path / f"{level}-{code}"
        done = run("--program", program, "--questions", difference, "--level", level, "-o", folder)
        assert done.exit_code == code, done.output


def test_the_devices_of_a_row_are_written_pod_by_pod() -> None:
    others = [{"claims": question(name)["claims"]} for name in ("next", "last")]
    for pod, name in zip(others, "de", strict=True):
        pod["claims"][0]["metadata"]["name"] = name
    answer = answer_of_reference(question("row", following=others))
    assert write_devices(answer) == {
        "devices": {"node-0": [[f"{GPU}/node-0/gpu-0"]]},
        "followingDevices": {"node-0": [[[f"{GPU}/node-0/gpu-1"]], []]},
    }


@pytest.mark.parametrize(
    ("fields", "fault", "level", "code"),
    [
        ({"devices": ["gpu-0"]}, "none", "identical", 0),
        ({"devices": ["gpu-1"]}, "none", "fits", 3),
        ({"devices": ["gpu-0"]}, "last-device", "fits", 0),
        ({"devices": ["gpu-0"]}, "last-device", "admissible", 1),
        ({"devices": ["gpu-0"], "level": "identical"}, "last-device", "admissible", 0),
        ({"devices": ["gpu-0"], "level": "identical"}, "last-device", "identical", 1),
    ],
)
def test_devices_of_a_vector_are_compared(
    tmp_path: Path, fields: dict[str, Any], fault: str, level: str, code: int
) -> None:
    """Those that the reference does not take judge nobody."""
    named = [f"{GPU}/node-0/{name}" for name in fields["devices"]]
    vector = {
        "id": "q",
        "kubernetes": [LATEST],
        "features": [],
        "sentence": "the first device is right",
        "question": question("q"),
        "expected": {"node-0": True},
        **fields,
        "devices": {"node-0": [named]},
    }
    asked, out = write(tmp_path, [vector]), tmp_path / "out"
    done = run(
        "--program", python("wrong.py", fault), "--questions", asked, "--level", level, "-o", out
    )
    assert done.exit_code == code, done.output
    kinds = [item["kind"] for item in report(out)["differences"]]
    assert kinds == ["other devices"] * (code == 1)


def test_what_a_pod_was_given_must_be_told_where_another_follows(tmp_path: Path) -> None:
    row = question("row")
    row["following"] = [{"claims": question("next")["claims"]}]
    row["following"][0]["claims"][0]["metadata"]["name"] = "d"
    asked = write(tmp_path, [row])
    program = python("wrong.py", "devices-of-a-row-untold")
    assert run("--program", program, "--questions", asked, "-o", tmp_path / "a").exit_code == 1
    (difference,) = report(tmp_path / "a")["differences"]
    assert "gives out what it must not on node-0: allocations" in difference["vector"]["sentence"]


def test_any_right_choice_of_a_pod_before_is_taken_for_those_that_follow(tmp_path: Path) -> None:
    """With the last device instead of the first, the second pod, which wants that, fits or not."""
    row = question("row", gpu1={"attributes": {"x": {"string": "x"}}})
    wants = question("next")["claims"][0]
    wants["metadata"]["name"] = "d"
    chosen = f'"x" in device.attributes["{GPU}"]'
    wants["spec"]["devices"]["requests"][0]["exactly"]["selectors"] = [
        {"cel": {"expression": chosen}}
    ]
    row["following"] = [{"claims": [wants]}]
    asked = write(tmp_path, [row])
    for fault in ("none", "last-device"):
        folder = tmp_path / fault
        done = run(
            "--program", python("wrong.py", fault), "--questions", asked, "--level", "admissible",
            "-o", folder,
        )  # fmt: skip
        assert done.exit_code == 0, done.output


def test_a_simulated_kubernetes_is_judged_through_the_same_door(tmp_path: Path) -> None:
    program = shlex.join([sys.executable, "-m", "tests.allocators.programs.simulated", LATEST])
    done = run(
        "--program", program, "--count", 40, "--seed", "simulated", "--level", "admissible",
        "--without", "deviceBindingAndStatus", "--timeout", 60, "-o", tmp_path / "out",
    )  # fmt: skip
    assert done.exit_code == 0, done.output
    asked = report(tmp_path / "out")["features"]
    assert {"severalPods", "extendedResources", "allocatedClaims"} <= asked.keys()


def test_devices_that_break_a_rule_are_wrong_though_the_claims_fit(tmp_path: Path) -> None:
    taint = {"key": "k", "effect": "NoSchedule", "timeAdded": "2100-01-01T00:00:00Z"}
    asked = write(tmp_path, [question("q", gpu0={"taints": [taint]})])
    program = python("wrong.py", "taints-ignored")
    for level, code in (("fits", 0), ("admissible", 1)):
        folder = tmp_path / level
        done = run("--program", program, "--questions", asked, "--level", level, "-o", folder)
        assert done.exit_code == code, done.output
    (difference,) = report(tmp_path / "admissible")["differences"]
    assert difference["kind"] == "inadmissible"
    assert "gives out what it must not on node-0: taint" in difference["vector"]["sentence"]


@pytest.mark.needs_go
@pytest.mark.skipif(shutil.which("go") is None, reason="needs the go command")
def test_a_fault_of_a_go_program_is_found_beside_what_it_does_not_support(tmp_path: Path) -> None:
    program = tmp_path / "small"
    subprocess.run(["go", "build", "-o", program, PROGRAMS / "small.go"], check=True, timeout=600)
    asked = write(
        tmp_path,
        [
            question("one-of-two"),
            question("three-of-two", count=3),
            question("incomplete-pool", slices_of_pool=2),
        ],
    )
    done = run("--program", program, "--questions", asked, "-o", tmp_path / "out")
    assert done.exit_code == 1, done.output
    (difference,) = report(tmp_path / "out")["differences"]
    assert difference["questions"] == ["incomplete-pool"]
    assert "is being updated" in difference["vector"]["sentence"]
    right = run(
        "--program", program, "--questions", asked, "--without", "updating", "-o", tmp_path / "w"
    )
    assert right.exit_code == 0
    assert "without updating: 1 question not asked" in right.stdout
    held = question("held", allocated=[{"metadata": {"name": "h", "namespace": "default"}}])
    done = run("--program", program, "--questions", write(tmp_path, [held]), "-o", tmp_path / "u")
    assert done.exit_code == 4
    assert "unsupported: devices in use (1 question, first held)" in done.stdout
