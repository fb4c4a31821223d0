"""Of snapshots that repeat one another, a result file that is read keeps what differs."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from conformance.certify.build import build_report
from conformance.cli.reporters import retell
from conformance.report.files import DiagnosticsFolder, file_reporters
from conformance.report.pages import write_pages
from conformance.results.events.result import retold
from conformance.results.events.scenario import ScenarioFinished
from conformance.results.read import RecordedRun, ResultFileError, load_results
from conformance.results.sharing import Sharing
from conformance.results.write import ResultFile
from tests.certify.evidence import IMPLEMENTATION, PROFILES, genuine
from tests.report.builders import finished, planned, play, stream

Snapshot = dict[str, Any]


def slice_of(node: str, **changes: Any) -> Snapshot:
    devices = [
        {"name": f"gpu-{index}", "attributes": {"uuid": {"string": f"GPU-{node}-{index}" * 20}}}
        for index in range(8)
    ]
    return {"metadata": {"name": node}, "spec": {"nodeName": node, "devices": devices, **changes}}


def snapshot(*slices: Snapshot, claim: str = "c") -> Snapshot:
    return {"kind": "Snapshot", "slices": list(slices), "claims": [{"metadata": {"name": claim}}]}


def written(path: Path, *decisions: Sequence[Mapping[str, Any]], **changes: Any) -> Path:
    """A result file with a scenario for each of the sequences of decisions."""
    scenarios = [planned(f"core/s{number}") for number in range(len(decisions))]
    events: list[ScenarioFinished] = [
        finished(scenario, decisions=tuple(each), **changes)
        for scenario, each in zip(scenarios, decisions, strict=True)
    ]
    play(ResultFile(path), stream(scenarios, events))
    return path


def test_equal_objects_of_snapshots_are_one_in_all_scenarios(tmp_path: Path) -> None:
    first = {"snapshot": snapshot(slice_of("a"), slice_of("b"), claim="one")}
    second = {"snapshot": snapshot(slice_of("a"), slice_of("b", generation=2), claim="two")}
    path = written(tmp_path / "r", [first], [second], undecided=(first, second["snapshot"]))
    one, two = load_results(path).finished
    assert [dict(item) for item in (*one.decisions, *two.decisions)] == [first, second]
    mine, yours = one.decisions[0]["snapshot"], two.decisions[0]["snapshot"]
    assert mine["slices"][0] is yours["slices"][0]
    changed = [item["slices"][1]["spec"] for item in (mine, yours)]
    assert changed[0] is not changed[1]
    assert changed[0]["devices"] is changed[1]["devices"]
    assert one.undecided[0]["snapshot"] is mine
    assert two.undecided[1]["slices"] is yours["slices"]


@pytest.mark.parametrize("others", [(True, 1), (1, 1.0), (0, False), ({"a": 1}, [["a", 1]])])
def test_what_json_distinguishes_stays_different(tmp_path: Path, others: tuple[Any, Any]) -> None:
    parts = [{"snapshot": {"long": "x" * 1000, "value": value}} for value in others]
    [event] = load_results(written(tmp_path / "r", parts)).finished
    assert json.dumps([dict(item) for item in event.decisions]) == json.dumps(parts)


def test_what_differs_is_bounded_and_repetitions_are_not(tmp_path: Path) -> None:
    def kept(path: Path) -> None:
        load_results(path, sharing=Sharing(300_000))

    same = [[{"snapshot": snapshot(slice_of("a"))}] * 50] * 4
    kept(written(tmp_path / "same", *same))
    different = [
        [{"snapshot": snapshot(slice_of(f"{line}-{number}"))} for number in range(20)]
        for line in range(4)
    ]
    path = written(tmp_path / "different", *different)
    assert path.stat().st_size < (tmp_path / "same").stat().st_size
    with pytest.raises(ResultFileError, match=r"different:3: is not read, what differs in it"):
        kept(path)


@pytest.mark.parametrize(
    "changes",
    [
        {"message": "x" * 300_000},
        {"left": ("Pod a",) * 4_000},
        {"decisions": ({},) * 5_000},
        {"decisions": ({"snapshot": [[]] * 5_000},)},
        {"undecided": ({"x" * 300_000: 1},)},
        {"overlaps": ()},
    ],
    ids=["text", "texts", "decisions", "lists", "key", "nothing"],
)
def test_all_that_a_line_has_is_counted(tmp_path: Path, changes: dict[str, Any]) -> None:
    scenario = planned()
    path = tmp_path / "r"
    play(ResultFile(path), stream([scenario], [finished(scenario, **changes)]))
    if changes == {"overlaps": ()}:
        load_results(path, sharing=Sharing(200_000))
        return
    with pytest.raises(ResultFileError, match="r:2: is not read, what differs in it takes more"):
        load_results(path, sharing=Sharing(200_000))


def test_files_that_are_kept_together_are_counted_together(tmp_path: Path) -> None:
    paths = [
        written(tmp_path / name, [{"snapshot": snapshot(*map(slice_of, four))}])
        for name, four in (("a", "abcd"), ("b", "efgh"))
    ]
    together = Sharing(70_000)
    load_results(paths[0], sharing=together)
    load_results(paths[1], sharing=Sharing(70_000))
    with pytest.raises(ResultFileError, match="what differs in it takes more"):
        load_results(paths[1], sharing=together)


def test_nobody_changes_what_is_shared(tmp_path: Path) -> None:
    path = tmp_path / "results.ndjson"
    catalogue = genuine(path)
    run = load_results(path)
    before = snapshots(run)
    build_report(run, IMPLEMENTATION, PROFILES.profiles, catalogue)
    retell(retold(run), file_reporters(tmp_path, DiagnosticsFolder(tmp_path / "diagnostics")))
    retell(retold(run), [ResultFile(tmp_path / "again.ndjson")])
    write_pages(tmp_path, run)
    assert "ResourceSlice" in before
    assert snapshots(run) == before


def snapshots(run: RecordedRun) -> str:
    return json.dumps(
        [[dict(item) for item in (*row.decisions, *row.undecided)] for row in run.finished]
    )
