"""The folder for reports: what is wrong with it is told before a run, and it has one user."""

from __future__ import annotations

import errno
import os
import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest

from conformance.report import folder
from conformance.report.allure import AllureResults
from conformance.report.ci import JUnitFile
from conformance.report.files import DiagnosticsFolder
from conformance.report.folder import OutputFolder
from conformance.results.write import ResultFile
from kube.base.errors import UsageError
from tests.report.builders import finished, play, sample, started, stream


def test_it_is_made_and_nothing_is_left_in_it(tmp_path: Path) -> None:
    with OutputFolder(tmp_path / "a" / "b"):
        assert list((tmp_path / "a" / "b").iterdir()) == []
    assert not (tmp_path / "a" / "b").exists()
    (tmp_path / "mine").mkdir()
    with OutputFolder(tmp_path / "mine"):
        pass
    assert (tmp_path / "mine").exists()


def test_older_reports_are_not_touched(tmp_path: Path) -> None:
    (tmp_path / folder.RESULTS).write_text("older")
    (tmp_path / folder.ALLURE).mkdir()
    with OutputFolder(tmp_path):
        pass
    assert (tmp_path / folder.RESULTS).read_text() == "older"
    assert list((tmp_path / folder.ALLURE).iterdir()) == []


def a_file(path: Path) -> Path:
    path.write_text("")
    return path


def blocked(name: str, make: Callable[[Path], object]) -> Callable[[Path], Path]:
    def prepare(path: Path) -> Path:
        make(path / name)
        return path

    return prepare


@pytest.mark.parametrize(
    ("prepare", "says"),
    [
        (lambda path: a_file(path / "f"), "f: reports cannot be written there: "),
        (lambda path: a_file(path / "f") / "sub", "Not a directory"),
        (lambda path: Path("/proc/foo"), "/proc/foo: reports cannot be written there"),
        (lambda path: path / ("x" * 5000), "File name too long"),
        (blocked(folder.RESULTS, Path.mkdir), f"{folder.RESULTS}: .*it is a folder"),
        (blocked(folder.JUNIT, Path.mkdir), f"{folder.JUNIT}: .*it is a folder"),
        (blocked(folder.HTML, Path.mkdir), f"{folder.HTML}: .*it is a folder"),
        (blocked(folder.ALLURE, a_file), f"{folder.ALLURE}: .*it is not a folder"),
        (blocked(folder.DIAGNOSTICS, a_file), f"{folder.DIAGNOSTICS}: .*it is not a folder"),
    ],
)
def test_what_is_in_the_way_is_named(
    tmp_path: Path, prepare: Callable[[Path], Path], says: str
) -> None:
    with pytest.raises(UsageError, match=says) as raised, OutputFolder(prepare(tmp_path)):
        pass
    assert "choose another folder with -o" in str(raised.value)
    assert len(str(raised.value)) < 600


def test_a_full_disk_is_found_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Full:
        def __enter__(self) -> Full:
            return self

        def __exit__(self, *_: object) -> None:
            pass

        def write(self, data: bytes) -> int:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(tempfile, "TemporaryFile", lambda **_: Full())
    with pytest.raises(UsageError, match="No space left"), OutputFolder(tmp_path):
        pass


def test_a_second_run_is_reported_that_another_one_writes_there(tmp_path: Path) -> None:
    with OutputFolder(tmp_path):
        with pytest.raises(UsageError, match="another run writes its reports there"):
            OutputFolder(tmp_path).__enter__()
        with OutputFolder(tmp_path / "other"):
            pass
    with OutputFolder(tmp_path):
        pass


def test_a_refused_folder_is_not_kept_locked(tmp_path: Path) -> None:
    (tmp_path / folder.JUNIT).mkdir()
    with pytest.raises(UsageError), OutputFolder(tmp_path):
        pass
    (tmp_path / folder.JUNIT).rmdir()
    with OutputFolder(tmp_path):
        pass


def run_left(path: Path) -> None:
    """What a run leaves in its folder."""
    scenarios, events, items = sample()
    play(ResultFile(path / folder.RESULTS), stream(scenarios, events, items))
    play(JUnitFile(path / folder.JUNIT), stream(scenarios, events, items))
    play(AllureResults(path / folder.ALLURE), stream(scenarios, events, items))
    play(DiagnosticsFolder(path / folder.DIAGNOSTICS), stream(scenarios, events, items))
    (path / folder.HTML).write_text("green")
    (path / f"{folder.JUNIT}.tmp").write_text("")


def test_nothing_of_an_earlier_run_is_left_when_a_run_begins(tmp_path: Path) -> None:
    run_left(tmp_path)
    said: list[str] = []
    with OutputFolder(tmp_path, said.append) as output:
        assert (tmp_path / folder.HTML).exists()  # the run may still be refused
        output.handle(started([]))
        (tmp_path / folder.HTML).write_text("this run's")
        output.handle(finished())
    left = [path.name for path in tmp_path.rglob("*") if path.is_file()]
    assert sorted(left) == [
        "categories.json",
        "environment.properties",
        "executor.json",
        folder.HTML,
    ]
    assert said == [f"removing the reports of an earlier run from {tmp_path}"]


def test_what_no_run_made_is_left_alone(tmp_path: Path) -> None:
    run_left(tmp_path)
    others = [tmp_path / "notes.txt", tmp_path / folder.ALLURE / "1234-result.json"]
    for path in others:
        path.write_text("mine")
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "kept").write_text("mine")
    (tmp_path / folder.DIAGNOSTICS / "link").symlink_to(elsewhere)
    with OutputFolder(tmp_path) as output:
        output.handle(started([]))
    assert [path.read_text() for path in (*others, elsewhere / "kept")] == ["mine"] * 3


def test_diagnostics_that_no_run_made_are_not_mixed_with_those_of_one(tmp_path: Path) -> None:
    (tmp_path / folder.DIAGNOSTICS).mkdir()
    (tmp_path / folder.DIAGNOSTICS / "mine").write_text("")
    refused = pytest.raises(UsageError, match="contains files that no run wrote")
    with OutputFolder(tmp_path) as output, refused:
        output.handle(started([]))
    assert (tmp_path / folder.DIAGNOSTICS / "mine").exists()
