"""`ci/test`: runs parts, goes on where it was ended, and says what a change touches."""

from __future__ import annotations

import fnmatch
import os
import re
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from ci.testing import __main__ as program
from ci.testing import record, running
from ci.testing.affected import imported_from, touched
from ci.testing.part import ROOT, Part
from ci.testing.parts import parts
from ci.testing.record import RecordError

PASSES, FAILS = ("true",), ("sh", "-c", "echo it broke; exit 3")


def part(name: str, command: tuple[str, ...] = PASSES, ring: str = "everything") -> Part:
    return Part(name, ring, "a thing", (command,), 1)  # type: ignore[arg-type]


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """All that is written goes to a folder of the test."""
    for name in ("ROOT", "OUT"):
        monkeypatch.setattr(record, name, tmp_path)
    monkeypatch.setattr(record, "RECORD", tmp_path / "last-run.json")
    monkeypatch.setattr(record, "KEPT", tmp_path / "kept.json")
    monkeypatch.setattr(running, "ROOT", tmp_path)
    monkeypatch.setattr(running, "LOGS", tmp_path / "logs")
    monkeypatch.delenv("CI", raising=False)
    git = ("git", "-c", "user.name=t", "-c", "user.email=t@example.com")
    subprocess.run([*git, "init", "-q"], cwd=tmp_path, check=True)
    (tmp_path / ".gitignore").write_text("logs\n*.json\ntest.lock\n")
    subprocess.run([*git, "add", "."], cwd=tmp_path, check=True)
    subprocess.run([*git, "commit", "-q", "-m", "t"], cwd=tmp_path, check=True)
    return tmp_path


def run(monkeypatch: pytest.MonkeyPatch, made: list[Part], *asked: str) -> int:
    monkeypatch.setattr(program, "parts", lambda: {one.name: one for one in made})
    return program.main(asked)


def test_a_failure_says_what_it_said_and_how_to_run_just_that(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    made = [part("good", ring="test"), part("bad", FAILS, ring="test"), part("other")]
    assert run(monkeypatch, made) == 1
    said = capsys.readouterr().out
    assert "it broke" in said
    assert "FAILED bad: exit code 3; all it said: logs/bad.log" in said
    assert "again, only this: ci/test bad" in said
    assert said.index("passed  good") < said.index("FAILED  bad")
    assert "other" not in said


def test_what_passed_on_this_state_is_not_run_again_and_what_failed_is(
    monkeypatch: pytest.MonkeyPatch, elsewhere: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    count = ("sh", "-c", "echo ran >> logs/count")
    made = [part("one", count), part("two", FAILS)]
    assert run(monkeypatch, made, "everything") == 1
    assert run(monkeypatch, made, "everything") == 1
    assert (elsewhere / "logs/count").read_text() == "ran\n"
    assert "one: passed already on this state" in capsys.readouterr().out
    (elsewhere / "new.py").write_text("changed")
    assert run(monkeypatch, made, "everything") == 1
    assert (elsewhere / "logs/count").read_text() == "ran\nran\n"


def test_a_part_under_which_the_tree_was_changed_has_to_run_again(
    monkeypatch: pytest.MonkeyPatch, elsewhere: Path
) -> None:
    made = [part("one", ("sh", "-c", "echo ran >> logs/count; date +%N > changed"))]
    assert run(monkeypatch, made, "everything") == 0
    assert run(monkeypatch, made, "everything") == 0
    assert (elsewhere / "logs/count").read_text() == "ran\nran\n"


def test_what_a_change_touches_is_said_with_whether_it_ran(
    monkeypatch: pytest.MonkeyPatch, elsewhere: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(program, "changed", lambda base: [base])
    made = [
        Part(name, "everything", "a thing", (PASSES,), 1, paths=("a/*",)) for name in ("one", "two")
    ]
    assert run(monkeypatch, made, "one") == 0
    capsys.readouterr()
    assert run(monkeypatch, made, "--affected", "a/b") == 0
    assert [line.split() for line in capsys.readouterr().out.splitlines()] == [
        ["one", "passed", "a/b"],
        ["two", "to", "run", "a/b"],
    ]


def test_of_two_records_of_a_part_the_newer_one_counts(elsewhere: Path) -> None:
    old, new = (record.Run("passed", "c", "s", f"2026-01-0{day}", day) for day in (1, 2))
    record.write(elsewhere / "last-run.json", record._text({"one": old, "two": new}))
    record.write(elsewhere / "kept.json", record._text({"one": new, "two": old}))
    assert record.read() == {"one": new, "two": new}


def test_a_part_that_is_named_runs_even_if_it_has_passed(
    monkeypatch: pytest.MonkeyPatch, elsewhere: Path
) -> None:
    made = [part("one", ("sh", "-c", "echo ran >> logs/count"))]
    assert run(monkeypatch, made, "one") == 0
    assert run(monkeypatch, made, "one") == 0
    assert (elsewhere / "logs/count").read_text() == "ran\nran\n"


@pytest.mark.parametrize(
    ("ci", "optional", "code"), [("", False, 0), ("true", False, 1), ("true", True, 0)]
)
def test_what_the_machine_lacks_is_left_out_and_named_but_not_in_ci(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    ci: str,
    optional: bool,
    code: int,
) -> None:
    monkeypatch.setenv("CI", ci)
    missing = ("echo", "root")
    made = [
        Part("one", "test", "x", (FAILS,), 1, missing=missing, optional=optional),
        part("two", ring="test"),
    ]
    assert run(monkeypatch, made) == code
    assert "left out  one: this machine lacks root" in capsys.readouterr().out


def test_what_cannot_be_prepared_fails_its_part_alone(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    made = [Part("one", "test", "x", (PASSES,), 1, prepare=FAILS), part("two", ring="test")]
    assert run(monkeypatch, made) == 1
    said = capsys.readouterr().out
    assert "all it said: logs/one-prepare.log" in said
    assert "passed  two" in said


def test_a_second_run_in_the_same_checkout_is_refused_and_the_first_goes_on(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with record.alone():
        assert run(monkeypatch, [part("one")], "one") == 2
    assert f"tests run in this checkout, begun by process {os.getpid()}" in capsys.readouterr().err
    assert run(monkeypatch, [part("one")], "one") == 0


def test_what_is_interrupted_ends_with_all_that_it_started(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    made = [part("one"), part("two", ("sh", "-c", "trap : INT; sleep 60"))]

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    assert run(monkeypatch, made, "one") == 0
    monkeypatch.setattr(running, "_SAY_SECONDS", 0.0)
    monkeypatch.setattr(running.Runner, "_say", interrupt)
    monkeypatch.setattr(running, "_END_SECONDS", 0.1)
    assert run(monkeypatch, made, "two") == 130
    assert "the parts that passed are recorded" in capsys.readouterr().out
    assert record.read().keys() == {"one"}
    with record.alone():  # nothing that was started holds the lock any longer
        pass


@pytest.mark.needs_go
@pytest.mark.slow
def test_a_cluster_that_a_part_leaves_running_is_removed(
    elsewhere: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    up = (sys.executable, "-m", "conformance", "cluster", "up", "--name", "left", "--nodes", "0")
    assert run(monkeypatch, [part("ups", up, ring="test")], "ups") == 0
    assert "removing the cluster left, which was left running" in capsys.readouterr().out
    log = (elsewhere / "logs/ups.log").read_text()
    [folder] = re.findall(r"export KUBECONFIG=(/tmp/dra-[^/]+)/", log)
    assert not any(folder in word for one in psutil.process_iter() for word in cmdline(one))
    assert not Path(folder).exists()


def cmdline(process: psutil.Process) -> list[str]:
    try:
        return process.cmdline()
    except psutil.Error:
        return []


def test_a_full_disk_loses_nothing_that_was_noted(
    monkeypatch: pytest.MonkeyPatch, elsewhere: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    made = [part("one"), part("two"), part("three", FAILS)]
    assert run(monkeypatch, made, "one") == 0

    def full(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(Path, "replace", full)
        assert run(patched, made, "two", "three") == 2
    said = capsys.readouterr()
    assert "No space left on device; two passed, which is not noted" in said.err
    assert "passed  two" in said.out
    assert "FAILED  three" in said.out
    assert record.read().keys() == {"one"}
    assert not list(elsewhere.glob(".last-run*"))


def test_a_damaged_record_is_told(elsewhere: Path) -> None:
    (elsewhere / "last-run.json").write_text("{")
    with pytest.raises(RecordError, match="remove it"):
        record.read()


def test_tests_are_counted_and_those_that_fail_are_named(tmp_path: Path) -> None:
    file = tmp_path / "x.xml"
    file.write_text(
        '<testsuites><testcase file="a.py" name="b"/><testcase file="a.py" name="c">'
        '<failure/></testcase><testcase file="a.py" name="d"><skipped/></testcase></testsuites>'
    )
    counts = running.Counts()
    counts.add(file)
    assert (counts.passed, counts.failed, counts.skipped) == (1, 1, 1)
    assert counts.names == ["a.py::c"]


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("ci/kind/test", {"kind"}),
        ("localkube/kind/cluster.py", {"kind", "machines"}),
        ("reference_allocator/gates.py", {"fuzz", "oldest", "defects"}),
        ("docs/README.md", {"site"}),
        ("LICENSE", set()),
    ],
)
def test_a_change_touches_what_is_about_it(path: str, expected: set[str]) -> None:
    assert expected <= touched(parts(), [path], imported_from()).keys()
    if not expected:
        assert touched(parts(), [path], imported_from()) == {}


def test_a_change_touches_what_imports_it() -> None:
    importers = {"kube/base/text.py": {"conformance/report/allure.py"}}
    assert "allure" in touched(parts(), ["kube/base/text.py"], importers)
    assert "allure" not in touched(parts(), ["kube/base/text.py"], {})


def tracked() -> list[str]:
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, check=True)
    return listed.stdout.decode().splitlines()


SHOWS_IN_MAKE_TEST = {
    *("action", "actionlint", "cel_implementations", "examples", "pin-kubernetes", "submissions"),
    *("last-run.json", "nvml_functions.py", "test", "testing", "words.py"),
}


def test_each_thing_below_ci_touches_a_part_or_shows_in_make_test() -> None:
    shows = {
        path.split("/")[1]
        for path in tracked()
        if path.startswith("ci/") and not touched(parts(), [path], {})
    }
    assert shows == SHOWS_IN_MAKE_TEST


def test_what_a_part_is_about_is_there() -> None:
    """A file that was moved would touch its part no longer."""
    files = tracked()
    gone = [
        f"{part.name}: {pattern}"
        for part in parts().values()
        for pattern in part.paths
        if not fnmatch.filter(files, pattern)
    ]
    assert gone == []
