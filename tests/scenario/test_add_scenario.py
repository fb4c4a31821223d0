"""`make scenario` writes the row of a scenario, or says what the scenario lacks."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from kube.base.errors import UsageError
from tests.mutants import DEFECTS
from tests.scenario import add_scenario as command
from tests.scenario import kill_matrix
from tests.scenario.add_scenario import add_scenario, find_problems, with_row
from tests.scenario.kill_matrix import read_kills
from tests.scenario.shipped import ROOT, on_reference

KILLS = {"first": ["core/a"], "second": ["core/a", "core/b"], "third": ["core/b"]}
SHARE = "core/generated-claim-containers-share-device"
OTHER = "core/container-sees-only-its-request"
NEW, OLD = "first-container-only", "generated-claim-for-one-container"


def test_a_row_is_what_the_scenario_notices_now_and_leaves_the_others() -> None:
    assert with_row(KILLS, "core/b", ["first", "fourth"]) == {
        "first": ["core/a", "core/b"],
        "fourth": ["core/b"],
        "second": ["core/a"],
        "third": [],
    }


@pytest.mark.parametrize(
    ("scenario", "noticed", "reasons", "problems"),
    [
        pytest.param("core/c", ["fourth"], {}, [], id="alone"),
        pytest.param("core/c", ["second"], {"core/c": "why"}, [], id="not alone, and says why"),
        pytest.param(
            "core/c",
            ["second"],
            {},
            ["core/c notices 1 defect, and none alone; all of these core/a, core/b too\n  second:"],
            id="not alone",
        ),
        pytest.param(
            "core/c",
            ["fourth"],
            {"core/c": "why"},
            ["core/c alone notices fourth, and needs no reason: leave out REASON"],
            id="alone, and yet a reason",
        ),
        pytest.param(
            "core/c",
            ["first", "fourth"],
            {},
            ["core/a alone noticed first, which core/c notices, too: make one scenario of both"],
            id="another is not alone any more",
        ),
        pytest.param(
            "core/b",
            ["second", "fourth"],
            {},
            ["third was noticed by core/b alone, and is not any more"],
            id="its own defect goes unseen",
        ),
    ],
)
def test_what_the_table_would_lack(
    scenario: str, noticed: list[str], reasons: dict[str, str], problems: list[str]
) -> None:
    told = list(find_problems(scenario, KILLS, with_row(KILLS, scenario, noticed), reasons))
    assert len(told) == len(problems), told
    assert all(text.startswith(start) for text, start in zip(told, problems, strict=True)), told


@pytest.fixture
def table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where the table is written; of two defects one is new, and of scenarios there are two."""
    file = tmp_path / "kills.yaml"
    before = {
        title: sorted({*names} - {SHARE}) for title, names in read_kills().items() if title != NEW
    }
    scenarios = tuple(each for each in on_reference() if each.id in (SHARE, OTHER))
    monkeypatch.setattr(kill_matrix, "KILLS", file)
    monkeypatch.setattr(command, "read_kills", lambda: before)
    monkeypatch.setattr(command, "on_reference", lambda: scenarios)
    monkeypatch.setattr(command, "DEFECTS", {title: DEFECTS[title] for title in (NEW, OLD)})
    monkeypatch.chdir(ROOT.parent)
    return file


def test_the_row_of_a_scenario_and_all_that_notice_its_new_defect_are_written(table: Path) -> None:
    told = add_scenario(ROOT / f"{SHARE}.yaml", "it is the example")
    assert told.startswith(f"{SHARE} notices 2 defects, alone: none; its row is in tests/scenario/")
    rows = yaml.safe_load(table.read_text())
    assert rows[SHARE] == {"not alone": "it is the example", "notices": [NEW, OLD]}
    assert NEW in rows[OTHER]["notices"]
    assert [name for name, row in rows.items() if NEW in row["notices"]] == [OTHER, SHARE]


def test_nothing_is_written_where_others_notice_all_and_no_reason_is_given(
    table: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(command, "read_not_alone", dict)
    with pytest.raises(UsageError, match=r"(?s)2 defects, and none alone.*nothing was written"):
        add_scenario(ROOT / f"{SHARE}.yaml", "")
    assert not table.exists()


def test_nothing_is_written_of_a_scenario_that_is_not_shipped(table: Path, tmp_path: Path) -> None:
    file = tmp_path / "scenarios/core/new.yaml"
    file.parent.mkdir(parents=True)
    file.write_text((ROOT / f"{SHARE}.yaml").read_text().replace(SHARE.split("/")[1], "new"))
    for path, problem in (
        (file, "is not below"),
        (tmp_path, "is no file; name one: make scenario FILE=scenarios/core/NAME.yaml"),
        (ROOT / "features.yaml", "is no scenario"),
    ):
        with pytest.raises(UsageError, match=problem):
            add_scenario(path, "")
    file.write_text(file.read_text().removeprefix("#"))
    with pytest.raises(UsageError, match="cannot be shipped as it is; nothing was run"):
        add_scenario(file, "")
    assert not table.exists()
