from __future__ import annotations

import json
from contextlib import closing
from pathlib import Path

import pytest
from typer.testing import CliRunner

from conformance.cli.app import app
from conformance.report.files import DiagnosticsFolder, file_reporters
from conformance.report.pages import write_pages
from conformance.results.write import ResultFile
from kube.base.errors import UsageError
from tests.cli.conftest import Call
from tests.report.builders import compared, finished, play, sample, stream


def made(folder: Path, *, footer: bool = True) -> Path:
    """The reports of a run, as the run writes them."""
    scenarios, _, diagnostics = sample()
    events = [
        finished(item.scenario, item.outcome, item.message, started_at="2026-01-01T00:00:00.000Z")
        for item in sample()[1]
    ]
    judged = [compared("core/passing", "identical")]
    run = stream(scenarios, events, diagnostics, compared=judged, footer=footer)
    with closing(ResultFile(folder / "results.ndjson")) as results:
        play(results, run)
    for reporter in file_reporters(folder, DiagnosticsFolder(folder / "diagnostics")):
        play(reporter, run)
    if footer:
        write_pages(folder)
    return folder


def told(folder: Path) -> dict[str, object]:
    """What the files say, but for names that are drawn by lot and places."""
    files: dict[str, object] = {}
    for path in folder.rglob("*"):
        if path.is_file() and path.suffix in (".html", ".md", ".txt", ".yaml"):
            files[str(path.relative_to(folder))] = path.read_text()
    files["summary"] = json.loads((folder / "summary.json").read_text())
    junit = (folder / "junit.xml").read_text()
    files["junit"] = junit.replace(str(folder), "")
    for path in folder.glob("allure-results/*-result.json"):
        result = json.loads(path.read_text())
        for item in (result, *result.get("attachments", [])):
            item.pop("uuid", None)
            item.pop("source", None)
        if result["name"] == "lost":  # it has no time of its own
            result["start"] = result["stop"] = 0
        files[result["name"]] = result
    return {name: text for name, text in files.items() if not name.startswith("allure-results")}


def test_reports_made_again_are_those_of_the_run(tmp_path: Path) -> None:
    one = made(tmp_path / "one")
    again = CliRunner().invoke(app, ["render", str(one), "-o", str(tmp_path / "two")])
    assert again.exit_code == 1, again.output
    assert told(tmp_path / "two") == told(one)
    assert not (tmp_path / "two" / "results.ndjson").exists()


def test_a_run_that_was_cut_off_has_reports_in_which_the_rest_is_lost(tmp_path: Path) -> None:
    one = made(tmp_path / "one", footer=False)
    CliRunner().invoke(app, ["render", str(one / "results.ndjson"), "-o", str(tmp_path / "two")])
    assert 'type="lost"' in (tmp_path / "two" / "junit.xml").read_text()
    assert "the result file was cut off" in (tmp_path / "two" / "report.html").read_text()


def test_the_evidence_is_not_overwritten(tmp_path: Path) -> None:
    one = made(tmp_path / "one")
    again = CliRunner().invoke(app, ["render", str(one), "-o", str(one)])
    assert isinstance(again.exception, UsageError)
    assert "holds the result file" in str(again.exception)


@pytest.mark.parametrize("given", ["render loop -o two", "merge loop -o two", "render . -o loop"])
def test_a_link_to_itself_is_one_message(
    given: str, command: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(made(tmp_path))
    Path("loop").symlink_to("loop")
    code, _, err = command(*given.split())
    assert code == 2
    assert "loop" in err
    assert "unexpected" not in err


def test_only_the_formats_that_are_asked_for_are_made(tmp_path: Path) -> None:
    one, two = made(tmp_path / "one"), tmp_path / "two"
    CliRunner().invoke(app, ["render", str(one), "-o", str(two), "--format", "html,junit"])
    assert sorted(path.name for path in two.iterdir()) == [
        "diagnostics",
        "junit.xml",
        "report.html",
    ]
    assert (two / "report.html").read_text() == (one / "report.html").read_text()
    wrong = CliRunner().invoke(app, ["render", str(one), "-o", str(two), "--format", "htm"])
    assert isinstance(wrong.exception, UsageError)
    assert "unknown format 'htm'" in str(wrong.exception)
