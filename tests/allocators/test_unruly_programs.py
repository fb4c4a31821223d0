"""Programs that hang, die, flood or answer something else are named, and asked on."""

from __future__ import annotations

import json
import os
import xml.etree.ElementTree as ET
from pathlib import Path
from unittest import mock

import pytest

from conformance.allocators.program import Program
from kube.base.errors import UsageError
from tests.allocators.asking import python, question, report, run, write
from tests.cli.plain_client import eventually

FAULTS = {
    "hangs": "hung: gave no answer within 3.1 s (0.1 s for each node and 3 s for the question)",
    "dies": "ended: ended with exit code 7: out of cheese",
    "leaves": "ended: closed its output",
    "floods": "flooded: wrote more than",
    "logs-without-end": "hung: gave no answer within",
    "says-nothing": "malformed: Invalid JSON: EOF while parsing a value at line 1 column 0; it"
    " wrote an empty line",
    "babbles": "out of order: wrote more than one line",
    "repeats": "out of order: wrote more than one line",
    "answers-another": "out of order: answered 'something-else' when 'answers-another' was asked",
    "answers-for-a-stranger": "malformed: answers for node 'stranger', which was not asked",
    "answers-for-nobody": "malformed: does not answer for node 'node-0'",
    "answers-twice": "malformed: answers for a node twice",
    "invents-an-outcome": "malformed: nodes.0.outcome: Input should be 'allocated'",
    "allocates-too-much": "malformed: node node-0: 2 allocations for 1 claims",
    "cannot-read": "malformed: cannot read the question: what?",
}


@pytest.mark.parametrize("fault", FAULTS)
def test_what_is_no_answer_is_named_and_the_next_question_is_asked(
    tmp_path: Path, fault: str
) -> None:
    asked = write(tmp_path, [question(fault), question("fine", count=3)])
    with (
        mock.patch("conformance.allocators.program.OVERHEAD", 3.0),
        mock.patch("conformance.allocators.program.MAX_ANSWER", 1 << 20),
    ):
        done = run(
            "--program", python("unruly.py"), "--questions", asked, "--timeout", "0.1",
            "-o", tmp_path / "out",
        )  # fmt: skip
    assert done.exit_code == 3, done.output
    assert f"{fault}: {FAULTS[fault]}" in " ".join(done.stderr.split())
    assert max(map(len, done.stderr.replace(str(tmp_path), "").splitlines())) <= 80
    document = report(tmp_path / "out")
    assert [item["id"] for item in document["unanswered"]] == [fault]
    counts = document["features"]["all questions"]
    assert (counts["asked"], counts["errors"], counts["wrongNo"]) == (2, 1, 0)
    suite = ET.parse(tmp_path / "out" / "junit.xml").getroot()[0]
    assert [[item.tag for item in case] for case in suite] == [["error"], []]


def test_a_program_that_answers_once_is_told_to_read_on(tmp_path: Path) -> None:
    ids = ("leaves-after-one", "fine")
    asked = write(tmp_path, [question(name, count=3) for name in ids])
    done = run("--program", python("unruly.py"), "--questions", asked, "-o", tmp_path / "out")
    assert done.exit_code == 3, done.output
    assert (
        "fine: ended: ended with exit code 0; it must read on until its input ends" in done.stderr
    )


def test_more_devices_than_a_claim_can_have_are_counted_and_not_looked_at(tmp_path: Path) -> None:
    asked = write(tmp_path, [question("has-it-all")])
    done = run(
        "--program", python("unruly.py"), "--questions", asked, "--level", "admissible",
        "--small", 0, "-o", tmp_path / "out",
    )  # fmt: skip
    assert done.exit_code == 1, done.output
    suite = ET.parse(tmp_path / "out" / "junit.xml").getroot()[0]
    assert "has 100000 devices; a claim has at most 32" in str(suite[0][0].get("message"))


def test_a_program_that_never_answers_is_given_up(tmp_path: Path) -> None:
    asked = write(tmp_path, [question("dies") for _ in range(20)])
    done = run("--program", python("unruly.py"), "--questions", asked, "-o", tmp_path / "out")
    assert done.exit_code == 3
    assert "gave no answer 5 times in a row" in done.stdout.replace("\n ", "")
    assert report(tmp_path / "out")["asked"] == 5


@pytest.mark.parametrize(("said", "code"), [("does-not-do-that", 4), ("gives-up", 3)])
def test_no_answer_that_is_an_answer_is_neither_right_nor_wrong(
    tmp_path: Path, said: str, code: int
) -> None:
    asked = write(tmp_path, [question(said), question("fine", count=3)])
    done = run("--program", python("unruly.py"), "--questions", asked, "-o", tmp_path / "out")
    assert done.exit_code == code, done.output
    assert report(tmp_path / "out")["differences"] == []


def test_what_a_program_started_ends_with_it(tmp_path: Path) -> None:
    pid_file = tmp_path / "pid"
    script = tmp_path / "parent"
    script.write_text(f"#!/bin/sh\nsleep 60 &\necho $! > {pid_file}\nread line\nsleep 60\n")
    script.chmod(0o755)
    with (
        mock.patch("conformance.allocators.program.OVERHEAD", 3.0),
        Program([script], 0.1) as program,
        pytest.raises(Exception, match="gave no answer"),
    ):
        program.ask({"id": "q"})
    child = int(pid_file.read_text())
    assert child != os.getpid()
    # A signal is on its way when kill returns, and what it ended may stay as a zombie.
    eventually(lambda: state_of(child) in ("", "Z"), f"the end of process {child}", seconds=30)


def state_of(pid: int) -> str:
    """The letter of proc_pid_stat(5); empty where there is no such process."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return ""


def test_a_program_that_is_not_there_is_a_usage_error(tmp_path: Path) -> None:
    file = tmp_path / "program"
    file.write_text("no program")
    assert "give --program" in str(run("-o", tmp_path / "out").exception)
    for command in ("no-such-program-here", str(file)):
        done = run("--program", command, "-o", tmp_path / "out")
        assert isinstance(done.exception, UsageError)
        assert "does not exist or is not executable" in str(done.exception)
    file.chmod(0o755)
    done = run("--program", file, "-o", tmp_path / "out")
    assert isinstance(done.exception, UsageError)
    assert "cannot be started" in str(done.exception)


def test_a_check_that_was_cut_off_goes_on_where_it_was(tmp_path: Path) -> None:
    folder = tmp_path / "out"
    questions = [question(f"q{number}", count=1 + number % 3) for number in range(6)]
    asked = write(tmp_path, questions)
    whole = run("--program", python("wrong.py", "none"), "--questions", asked, "-o", folder)
    assert whole.exit_code == 0, whole.output
    journal = folder / "journal.ndjson"
    lines = journal.read_text().splitlines(keepends=True)
    journal.write_text("".join(lines[:4]) + lines[4][:20])  # cut off in the middle of a line
    resumed = run("--resume", folder)
    assert resumed.exit_code == 0, resumed.output
    ids = [json.loads(line)["id"] for line in journal.read_text().splitlines()[1:]]
    assert ids == [item["id"] for item in questions]
    assert lines[:4] == journal.read_text().splitlines(keepends=True)[:4]


def test_a_check_goes_on_with_its_own_questions_only(tmp_path: Path) -> None:
    folder = tmp_path / "out"
    asked = write(tmp_path, [question("a"), question("b")])
    run("--program", python("wrong.py", "none"), "--questions", asked, "-o", folder)
    again = run("--program", python("wrong.py", "none"), "--questions", asked, "-o", folder)
    assert "holds a check already; go on with it with --resume" in str(again.exception)
    write(tmp_path, [question("other"), question("b")])
    assert "question 0 is other now; it was a" in str(run("--resume", folder).exception)
    (folder / "journal.ndjson").write_text("nonsense\n")
    assert "is not the journal of a check, is damaged, or is of a newer version" in str(
        run("--resume", folder).exception
    )
    assert "cannot be read" in str(run("--resume", tmp_path / "nowhere").exception)


BAD_LINES = {
    "nonsense": "questions.ndjson:1: is no JSON",
    "[]": "questions.ndjson:1: Input should be a valid dictionary",
    '{"slices": []}': "questions.ndjson:1: id: Field required",
    '{"id": "q", "nodess": []}': "nodess: is not known; a newer version of dra-conformance may",
    json.dumps({"id": "q" * 254}): "id: String should have at most 253 characters",
    '{"id": "q", "nodes": [{}]}': "questions.ndjson:1: $.nodes[0].metadata.name: required value",
    '{"id": "q", "claims": [{"spec": 5}]}': "$.claims[0].spec: expected an object, got 5",
    '{"id": "q", "following": [{"claims": [{}]}]}': "$.following[0].claims[0].metadata.name: requ",
    '{"id": "q", "pod": {"spec": []}}': "$.pod.spec: expected an object, got a list",
    '{"question": 5}': "id: Field required",
    '{"question": {"expression": "true"}}': "is about a selector, which `dra-conformance cel`",
    json.dumps(
        {"kubernetes": ["1.99"], "features": [], "sentence": "", "expected": {}}
        | {"id": "q", "question": {"id": "q", "claims": [{"spec": {"newer": 5}}]}}
    ): "has no questions for Kubernetes 1.37, but for 1.99",
    '{"id": "q", "contract": "allocation/v9"}': "the contract 'allocation/v9' is not known",
    '{"id": "q", "contract": "allocation/v9", "question": {}}': "this version knows allocation/v1",
    '{"id": "q", "question": {"id": "q"}}': "kubernetes: Field required",
    "": "has no questions",
}


@pytest.mark.parametrize("line", BAD_LINES)
def test_bad_questions_are_a_usage_error_that_names_the_line(tmp_path: Path, line: str) -> None:
    file = tmp_path / "questions.ndjson"
    file.write_text(line + "\n")
    done = run("--program", python("unruly.py"), "--questions", file, "-o", tmp_path / "out")
    assert isinstance(done.exception, UsageError)
    assert BAD_LINES[line] in str(done.exception)


def test_a_line_without_an_end_is_read_as_far_as_a_line_may_be(tmp_path: Path) -> None:
    with mock.patch("conformance.allocators.questions.MAX_LINE", 1 << 16):
        done = run(
            "--program", python("unruly.py"), "--questions", "/dev/zero", "-o", tmp_path / "out"
        )
    assert "/dev/zero:1: is longer than 65536 bytes" in str(done.exception)


def test_a_feature_that_is_not_known_is_a_usage_error(tmp_path: Path) -> None:
    done = run("--program", "true", "--without", "deviceTaint", "-o", tmp_path / "out")
    assert "did you mean deviceTaints?" in str(done.exception)
    done = run("--program", "true", "--level", "same", "-o", tmp_path / "out")
    assert "expected one of fits, admissible, identical" in str(done.exception)
    done = run("--program", "true", "--timeout", "inf", "-o", tmp_path / "out")
    assert done.exit_code == 2
    assert isinstance(done.exception, SystemExit)
