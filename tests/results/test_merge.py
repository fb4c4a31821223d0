"""Shards of a plan, and their result files joined: nothing is lost unnoticed."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from conformance.certify.contradictions import find_contradictions
from conformance.compare.conclude import conclude_run, explain_uncertified
from conformance.engine.options import Shard
from conformance.engine.plan import shard_of
from conformance.engine.setup import Setup, planned
from conformance.engine.suite import run_suite
from conformance.results.events.result import retold
from conformance.results.events.scenario import Outcome, PlannedScenario
from conformance.results.merge import merge
from conformance.results.read import RecordedRun, load_results
from conformance.results.write import ResultFile, result_schema
from conformance.scenario.loader import LoadedScenario
from conformance.scenario.selection import Selection, select
from conformance.targets.opening.options import TargetOptions
from conformance.targets.opening.target import open_reference
from kube.base.errors import ExitCode, UsageError
from tests.certify.evidence import Forgery

COUNT = 3


@pytest.fixture(scope="module")
def scenarios() -> list[LoadedScenario]:
    return select((), Selection(only=("core/exact", "core/two")))


@pytest.fixture(scope="module")
def files(scenarios: list[LoadedScenario], tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """The result files of all shards, each of a run of its own."""
    folder = tmp_path_factory.mktemp("shards")
    return [_run(scenarios, Shard(i, COUNT), folder / f"{i}.ndjson") for i in (1, 2, 3)]


def _run(scenarios: list[LoadedScenario], shard: Shard, path: Path, version: str = "") -> Path:
    mine, plan = shard_of(scenarios, shard)
    with open_reference(TargetOptions(kubernetes_version=version)) as opened:
        run_suite(mine, Setup(f"r{shard.index}", opened), [ResultFile(path)], shard=plan)
    return path


def _loaded(files: list[Path]) -> list[RecordedRun]:
    return [load_results(path, truncated_ok=True) for path in files]


def _written(files: list[Path], path: Path) -> RecordedRun:
    file = ResultFile(path)
    for event in retold(merge(_loaded(files))):
        file.handle(event)
    return load_results(path)


@pytest.mark.parametrize("count", [1, 3, 31])
def test_each_scenario_is_in_exactly_one_shard_whatever_the_order(count: int) -> None:
    everything = select()[:31]
    dealt = [shard_of(everything, Shard(i + 1, count))[0] for i in range(count)]
    assert sorted(item.id for part in dealt for item in part) == [item.id for item in everything]
    assert all(dealt)
    again, _ = shard_of(everything[::-1], Shard(1, count))
    assert {item.id for item in again} == {item.id for item in dealt[0]}


def test_a_shard_knows_what_the_others_run(
    scenarios: list[LoadedScenario], files: list[Path]
) -> None:
    for result in _loaded(files):
        assert {item.id for item in result.run.whole_plan} == {item.id for item in scenarios}
        assert "is shard" in explain_uncertified(result)[0]


def test_more_shards_than_scenarios_are_refused(scenarios: list[LoadedScenario]) -> None:
    with pytest.raises(UsageError, match="cannot be dealt to 100 shards"):
        shard_of(scenarios, Shard(1, 100))


def test_the_joined_file_is_a_run_of_all(
    scenarios: list[LoadedScenario], files: list[Path], tmp_path: Path
) -> None:
    result = _written(files, tmp_path / "all.ndjson")
    assert result.outcomes[Outcome.PASSED] == tuple(item.id for item in scenarios)
    assert conclude_run(result).code is ExitCode.CONFORMANT
    assert not any("shard" in reason for reason in explain_uncertified(result))
    assert find_contradictions(result, [planned(item) for item in select()]) == ()
    _written(files[::-1], tmp_path / "again.ndjson")
    assert (tmp_path / "again.ndjson").read_bytes() == (tmp_path / "all.ndjson").read_bytes()


def test_lines_of_shards_are_kept_as_they_are(files: list[Path], tmp_path: Path) -> None:
    _written(files, tmp_path / "all.ndjson")
    there = set((tmp_path / "all.ndjson").read_text().splitlines()[1:-1])
    assert there == {line for path in files for line in path.read_text().splitlines()[1:-1]}


def test_what_a_missing_shard_was_to_run_is_lost(files: list[Path], tmp_path: Path) -> None:
    result = _written([files[0], files[2]], tmp_path / "all.ndjson")
    missing = load_results(files[1]).run.planned
    assert result.outcomes[Outcome.LOST] == tuple(sorted(item.id for item in missing))
    conclusion = conclude_run(result)
    assert conclusion.code is ExitCode.INCONCLUSIVE
    assert "1 shard missing: 2" in conclusion.reasons
    assert find_contradictions(result, ()) == ()


def test_what_a_killed_shard_did_not_reach_is_lost(files: list[Path], tmp_path: Path) -> None:
    lines = files[1].read_bytes().splitlines(keepends=True)
    cut = tmp_path / "cut.ndjson"
    cut.write_bytes(b"".join(lines[:-2]) + lines[-2][:40])
    result = _written([files[0], cut, files[2]], tmp_path / "all.ndjson")
    assert len(result.outcomes[Outcome.LOST]) == 1
    assert result.interrupted
    assert conclude_run(result).code is ExitCode.INCONCLUSIVE


def test_a_shard_twice_a_whole_run_and_a_merged_one_are_refused(
    scenarios: list[LoadedScenario], files: list[Path], tmp_path: Path
) -> None:
    with pytest.raises(UsageError, match="is of shard 1, and so is"):
        merge(_loaded([files[0], files[0]]))
    with open_reference(TargetOptions()) as opened:
        run_suite(scenarios, Setup("r", opened), [ResultFile(tmp_path / "whole")])
    with pytest.raises(UsageError, match="is a whole run's"):
        merge(_loaded([tmp_path / "whole"]))
    with pytest.raises(UsageError, match="is a merged result"):
        merge([_written(files, tmp_path / "all")])


@pytest.mark.parametrize("path", ["scenarios", "kubernetesVersion", "shards"])
def test_shards_of_other_plans_are_refused(
    path: str, scenarios: list[LoadedScenario], files: list[Path], tmp_path: Path
) -> None:
    other = _run(
        scenarios[1:] if path == "scenarios" else scenarios,
        Shard(2, 2 if path == "shards" else COUNT),
        tmp_path / "other",
        "1.35" if path == "kubernetesVersion" else "",
    )
    with pytest.raises(UsageError, match=rf"other:1: \$\.{path}.* only shards of one plan"):
        merge(_loaded([files[0], other]))


def test_a_scenario_in_two_shards_is_refused(files: list[Path], tmp_path: Path) -> None:
    record = _forged(files[1], tmp_path / "two.ndjson")
    record.header["shard"]["others"].append(record.header["planned"].pop())
    moved = load_results(files[0]).run.planned[0].id
    [item] = [one for one in record.header["shard"]["others"] if one["id"] == moved]
    record.header["shard"]["others"].remove(item)
    record.header["planned"].append(item)
    planned_ids = {one["id"] for one in record.header["planned"]}
    record.records[1:-1] = [
        one for one in record.records[1:-1] if one.get("scenario") in planned_ids
    ]
    record.write()
    with pytest.raises(UsageError, match=f"has {moved}, and so has"):
        merge(_loaded([files[0], record.results, files[2]]))


def _forged(source: Path, results: Path) -> Forgery:
    results.parent.mkdir(exist_ok=True)
    catalogue: list[PlannedScenario] = []
    forged = Forgery(source, results.parent, catalogue)
    forged.results = results
    return forged


def test_the_schema_knows_shards_and_merged_files(files: list[Path], tmp_path: Path) -> None:
    jsonschema = pytest.importorskip("jsonschema")
    _written(files, tmp_path / "all.ndjson")
    validator = jsonschema.Draft202012Validator(result_schema())
    for path in (*files, tmp_path / "all.ndjson"):
        for line in path.read_text().splitlines():
            validator.validate(json.loads(line))
