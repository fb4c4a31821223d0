from __future__ import annotations

from pathlib import Path

from conformance.report.files import DiagnosticsFolder
from conformance.report.folder import OURS
from conformance.results.events.scenario import Diagnostics


def test_each_item_is_a_file_below_the_scenario(tmp_path: Path) -> None:
    folder = DiagnosticsFolder(tmp_path / "diagnostics")
    folder.handle(Diagnostics("core/one", {"pods.yaml": "a", "scheduler log": "token: abc"}))
    place = folder.folder_of("core/one")
    assert place == tmp_path / "diagnostics" / "core" / "one"
    assert {path.name: path.read_text() for path in place.iterdir()} == {
        "pods.yaml": "a",
        "scheduler_log.txt": "token: <redacted>",
    }
    assert folder.folder_of("core/two") is None


def test_no_name_leads_out_of_the_folder(tmp_path: Path) -> None:
    root = tmp_path / "diagnostics"
    names = ["../../up", "/etc/passwd", "..", "", "a/../../b", "x" * 500, "\x00\n"]
    DiagnosticsFolder(root).handle(Diagnostics("../../../core/..", dict.fromkeys(names, "x")))
    files = [path for path in tmp_path.rglob("*") if path.is_file() and path.name != OURS]
    assert len(files) == len(names)
    assert all(root in path.resolve().parents for path in files)


def test_names_that_become_the_same_are_kept_apart(tmp_path: Path) -> None:
    folder = DiagnosticsFolder(tmp_path)
    folder.handle(Diagnostics("one", {"a/b.log": "1", "a b.log": "2", "A_B.log": "3"}))
    place = folder.folder_of("one")
    assert place is not None
    assert sorted(path.read_text() for path in place.iterdir()) == ["1", "2", "3"]


def test_nothing_is_made_without_items(tmp_path: Path) -> None:
    DiagnosticsFolder(tmp_path / "none").handle(Diagnostics("one", {}))
    assert not (tmp_path / "none").exists()
