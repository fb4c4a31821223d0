"""The pages about minors and mixtures of two, from result files made here."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

from ci.matrix_page import PAIRS, UPGRADES, Column, minors_page, read_columns, skew_page
from conformance.results.events.scenario import (
    KnownFailure,
    Outcome,
    PlannedScenario,
    ScenarioFinished,
)
from conformance.results.write import ResultFile
from localkube.binaries.versions import PINNED
from tests import programs
from tests.report.builders import compared, ended, finished, planned, play, started

ROOT = Path(__file__).resolve().parents[2]


def record(
    folder: Path,
    version: str,
    *events: ScenarioFinished,
    verdict: str,
    missed: tuple[PlannedScenario, ...] = (),
) -> None:
    """The result file of a run whose first scenario was compared.

    Where scenarios were missed, it was broken off before them.
    """
    scenarios = [*(item.scenario for item in events), *missed]
    header = started(scenarios, kubernetes_version=version.split(maxsplit=1)[0], compared=True)
    judged = compared(events[0].scenario.id, verdict)
    minor, _, more = version.partition(" ")
    where = folder / " ".join([".".join(minor.split(".")[:2]), more]).strip()
    where.mkdir()
    play(
        ResultFile(where / "results.ndjson"),
        [header, judged, *events, ended(events, interrupted=bool(missed))],
    )


def keep(folder: Path) -> tuple[int, str]:
    done = programs.ended(
        [sys.executable, str(ROOT / "ci/matrix_page.py"), str(folder), str(folder / "kept.json")],
        env=dict(os.environ) | {"PYTHONPATH": str(ROOT)},
        timeout=120,
    )
    return done.returncode, done.stderr


def kept(folder: Path) -> dict[str, Column]:
    code, said = keep(folder)
    assert code == 0, said
    return read_columns(folder / "kept.json")


def test_the_page_has_a_column_for_each_run_and_says_why_something_was_skipped(
    tmp_path: Path,
) -> None:
    skipped = "needs Kubernetes >=1.35, this is 1.34.4"
    record(
        tmp_path,
        "1.37.1",
        finished("core/one"),
        finished("core/late-class-starts-waiting-pod"),
        finished("extended/f/two", Outcome.FAILED, "no\n  luck"),
        verdict="identical",
    )
    record(
        tmp_path,
        "1.34.4",
        finished("core/one"),
        finished("extended/f/two", Outcome.SKIPPED, skipped),
        verdict="inadmissible",
    )
    text = minors_page(kept(tmp_path))
    lines = text.splitlines()
    assert "| 1.34.4 | 2026-11-21 10:00 | 2 | 0 | 1 | 0 | 1 | 1 inadmissible |" in lines
    assert "| 1.37.1 | 2026-11-21 10:00 | 3 | 2 | 0 | 0 | 1 | 1 identical |" in lines
    assert "No run here: 1.35, 1.36." in lines
    assert "| core | 1.34 | 1.37 |" in lines
    assert "| one (gone since) | ✗ | ✓ |" in lines
    name = "late-class-starts-waiting-pod"
    assert f"| [{name}](../scenarios/core/{name}.yaml) | · | ✓ |" in lines
    assert "| two (gone since) | a | ✗ |" in lines
    assert "- `a`: needs Kubernetes >=1.35" in lines
    assert "- 1.34, core/one: inadmissible: why inadmissible" in lines
    assert "- 1.37, extended/f/two: failed: no luck" in lines


def test_mixtures_of_versions_have_a_page_of_their_own(tmp_path: Path) -> None:
    reason = "needs Kubernetes >=1.36, the oldest kubelet is 1.35.4"
    record(tmp_path, "1.37.1", finished("core/one"), verdict="identical")
    skipped = finished("core/two", Outcome.SKIPPED, reason)
    record(tmp_path, "1.37.1 nodes 1.35", finished("core/one"), skipped, verdict="identical")
    text = skew_page(kept(tmp_path))
    assert "| core | 1.37 nodes 1.35 |" in text
    assert "| 1.37 nodes 1.35 | 2026-11-21 10:00 | 2 | 1 | 1 | 0 | 0 | 1 identical |" in text
    assert "- `a`: needs Kubernetes >=1.36\n" in text
    assert "No run here: 1.37 nodes 1.36, 1.37 nodes 1.34" in text


def test_a_known_issue_is_neither_a_success_nor_a_failure(tmp_path: Path) -> None:
    issue = KnownFailure("it-is-known", "docs/found/it.md")
    known = finished("core/two", Outcome.KNOWN, "twice", known_issues=(issue,))
    record(tmp_path, "1.37.1", finished("core/one"), known, verdict="identical")
    text = minors_page(kept(tmp_path))
    assert "| 1.37.1 | 2026-11-21 10:00 | 2 | 1 | 0 | 1 | 0 | 1 identical |" in text
    assert "| two (gone since) | ! |" in text
    assert "- 1.37, core/two: [it-is-known](found/it.md)" in text
    assert "Not passed, or not judged\n\nNothing.\n" in text


def test_what_a_run_did_not_come_to_is_no_failure(tmp_path: Path) -> None:
    missed = (planned("core/two"),)
    record(tmp_path, "1.36.3", finished("core/one"), verdict="identical", missed=missed)
    text = minors_page(kept(tmp_path))
    where = "2026-11-21 10:00, broken off after 1 of 2"
    assert f"| 1.36.3 | {where} | 2 | 1 | 0 | 0 | 0 | 1 identical |" in text
    assert "| one (gone since) | ✓ |" in text
    assert "core/two" not in text


def test_a_run_replaces_its_own_column_and_keeps_the_others(tmp_path: Path) -> None:
    record(tmp_path, "1.36.3", finished("core/one"), verdict="identical")
    record(tmp_path, "1.37.1", finished("core/one"), finished("core/two"), verdict="identical")
    first = kept(tmp_path)
    shutil.rmtree(tmp_path / "1.36")
    shutil.rmtree(tmp_path / "1.37")
    skipped = finished("core/one", Outcome.SKIPPED, "needs Kubernetes >=1.38, this is 1.37.1")
    record(tmp_path, "1.37.1", skipped, verdict="identical")
    second = kept(tmp_path)
    assert second["1.36"] == first["1.36"]
    assert second["1.37"].outcomes == {"core/one": "needs Kubernetes >=1.38"}


def test_what_is_kept_has_a_column_for_each_minor_and_each_mixture() -> None:
    columns = read_columns()
    assert list(columns) == [*PINNED, *PAIRS, *UPGRADES]
    assert all(len(column.outcomes) == column.scenarios for column in columns.values())


def test_without_a_run_there_is_a_message_and_nothing_is_kept(tmp_path: Path) -> None:
    code, said = keep(tmp_path)
    assert code == 2
    assert "no run below" in said
    assert list(tmp_path.iterdir()) == []
