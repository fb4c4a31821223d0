"""The check of names counts what is assigned, and what can be called from elsewhere."""

from __future__ import annotations

from pathlib import Path

import pytest

from ci import words

MODULE = """
total = 1
for found in (): pass


class Box:
    left: int = 0

    @property
    def size(self): return 0

    def empty(self): return 0

    def _quiet(self):
        def inner(): return 0
        told = inner()


def fill_box(box): return box
"""


def test_generic_names_and_functions_of_one_word_are_counted(tmp_path: Path) -> None:
    (tmp_path / "package").mkdir()
    (tmp_path / "package/module.py").write_text(MODULE)
    (tmp_path / "package/module_pb2.py").write_text("found = told = 1\n")
    counted = words.count_words(tmp_path / "package")
    assert [text.split(": ")[1] for text in counted.generic] == ["found", "left", "told"]
    assert (counted.names, counted.functions) == (4, 2)
    assert counted.single == ["package/module.py:12: empty"]


def test_too_many_are_named_with_their_place(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    (tmp_path / "package").mkdir()
    (tmp_path / "package/module.py").write_text(MODULE)
    monkeypatch.setattr(words, "ROOT", tmp_path)
    monkeypatch.setattr(words, "MOST", {"package": (80.0, 50.0)})
    assert words.main() == 0
    monkeypatch.setattr(words, "MOST", {"package": (50.0, 50.0)})
    assert words.main() == 1
    assert "package/module.py:3: found" in capsys.readouterr().out
