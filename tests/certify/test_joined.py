"""A result file that joins runs must fit the runs that it names."""

from __future__ import annotations

import re
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from conformance.certify.build import build_believed_report
from conformance.certify.contradictions import find_contradictions
from conformance.certify.verify import verify_report
from conformance.engine.options import Shard
from conformance.engine.plan import shard_of
from conformance.engine.setup import Setup, planned
from conformance.engine.suite import run_suite
from conformance.results.events.result import retold
from conformance.results.events.run import Merged
from conformance.results.merge import merge, merged_id
from conformance.results.read import load_results
from conformance.results.write import ADAPTERS, ResultFile
from conformance.scenario.selection import Selection, select
from conformance.targets.opening.options import TargetOptions
from conformance.targets.opening.target import open_reference
from tests.certify.evidence import CORE, IMPLEMENTATION, PROFILES, SHARED, Forgery

Part = dict[str, Any]


@pytest.fixture(scope="module")
def merged(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The joined result file of two shards."""
    folder = tmp_path_factory.mktemp("shards")
    scenarios = select((), Selection(only=("core/exact", "core/two")))
    files = []
    for index in (1, 2):
        mine, plan = shard_of(scenarios, Shard(index, 2))
        files.append(folder / f"{index}.ndjson")
        with open_reference(TargetOptions()) as opened, closing(ResultFile(files[-1])) as file:
            run_suite(mine, Setup(f"r{index}", opened), [file], shard=plan)
    joined = folder / "joined.ndjson"
    with closing(ResultFile(joined)) as file:
        for event in retold(merge([load_results(path) for path in files])):
            file.handle(event)
    return joined


@pytest.fixture
def joined(merged: Path, tmp_path: Path) -> Forgery:
    return Forgery(merged, tmp_path, [planned(item) for item in select()])


def parts(it: Forgery) -> list[Part]:
    shards: list[Part] = it.header["merged"]["parts"]
    return shards


def rename(it: Forgery) -> None:
    """Give the run, and its footer, the id that its shards' digests make."""
    header = ADAPTERS["header"].validate_python(
        {k: v for k, v in it.header.items() if k not in ("record", "apiVersion", "kind")}
    )
    merged: Merged | None = getattr(header, "merged", None)
    assert merged is not None
    it.header["run"] = it.footer["run"] = merged_id(merged)


def runs_that_never_were(it: Forgery) -> None:
    for part, run in zip(parts(it), ("ffffffff", "eeeeeeee"), strict=True):
        part["run"] = run


def digests_of_nothing(it: Forgery) -> None:
    for part in parts(it):
        part["digest"] = "sha256:" + "0" * 64
    rename(it)


def another_id(it: Forgery) -> None:
    it.header["run"] = it.footer["run"] = "merged-00000000"


def a_scenario_less(it: Forgery) -> None:
    parts(it)[0]["scenarios"].pop()


def a_scenario_of_both(it: Forgery) -> None:
    parts(it)[0]["scenarios"].append(parts(it)[1]["scenarios"][0])


def a_scenario_that_nobody_planned(it: Forgery) -> None:
    parts(it)[0]["scenarios"].append("core/none")


def one_shard_twice(it: Forgery) -> None:
    parts(it)[1]["index"] = 1


def one_run_twice(it: Forgery) -> None:
    parts(it)[1]["run"] = parts(it)[0]["run"]


def no_shards(it: Forgery) -> None:
    parts(it).clear()
    rename(it)


def a_namespace_of_somebody_else(it: Forgery) -> None:
    it.scenarios[0]["namespace"] = "dra-01234567"


def a_changed_result(it: Forgery) -> None:
    it.scenarios[0]["message"] = "as it should be"


def kept_by_the_wrong_shard(it: Forgery) -> None:
    theirs = parts(it)[1]["scenarios"][:1]
    parts(it)[0]["resumed"] = [
        {"run": "r0", "digest": "sha256:0", "scenarios": theirs, "seconds": 1.0, "left": []}
    ]


@pytest.mark.parametrize(
    ("change", "code", "message"),
    [
        (runs_that_never_were, "namespace-of-another-run", "; of run ffffffff it would be dra-"),
        (digests_of_nothing, "joined-runs", "the digest of shard 1 is sha256:000"),
        (another_id, "joined-runs", "is run merged-00000000, of its shards' digests it would be"),
        (a_scenario_less, "joined-runs", "no shard has core/"),
        (a_scenario_less, "joined-runs", "there are results of core/"),
        (a_scenario_of_both, "joined-runs", "is a scenario of two shards"),
        (a_scenario_that_nobody_planned, "joined-runs", "shards have core/none, which the run"),
        (one_shard_twice, "joined-runs", "its shards are 1, 1, of 2, each to be there once"),
        (one_run_twice, "joined-runs", "run r1 is joined twice"),
        (no_shards, "joined-runs", "its shards are none, of 2"),
        (a_namespace_of_somebody_else, "namespace-of-another-run", "ran in dra-01234567; of run r"),
        (a_changed_result, "joined-runs", "the digest of shard"),
        (kept_by_the_wrong_shard, "joined-runs", "shard 1 kept core/.*, which it has not"),
    ],
)
def test_shards_that_do_not_fit_their_results_are_refused(
    joined: Forgery, change: Callable[[Forgery], None], code: str, message: str
) -> None:
    change(joined)
    joined.write()
    wrong = find_contradictions(load_results(joined.results), joined.catalogue)
    assert [item for item in wrong if item.code == code and re.search(message, item.message)], wrong


def test_a_report_on_joined_runs_says_so(joined: Forgery) -> None:
    joined.write()
    result = load_results(joined.results)
    assert find_contradictions(result, joined.catalogue) == ()
    report = build_believed_report(
        result, IMPLEMENTATION, PROFILES.select([CORE]), joined.catalogue
    )
    assert report.evidence.joined == ("r1", "r2")
    joined.report.write_text(report.to_yaml())
    verification = verify_report(joined.report, joined.results, PROFILES, joined.catalogue)
    assert verification.discrepancies == ()
    assert "the results of 2 runs were joined: r1, r2" in verification.notes


@pytest.mark.parametrize(
    ("runs", "scenarios", "message"),
    [
        (("r0", "r0"), ([SHARED], []), "run r0 is joined twice"),
        (("r1", "r2"), ([SHARED], []), "run r1 is joined twice"),
        (("p0", "p1"), ([SHARED], [SHARED]), f"{SHARED} was kept of two runs that the run resumed"),
    ],
)
def test_a_run_or_a_scenario_that_was_resumed_twice_is_refused(
    forgery: Forgery, runs: tuple[str, str], scenarios: tuple[list[str], list[str]], message: str
) -> None:
    forgery.header["resumed"] = [
        {"run": run, "digest": "sha256:0", "scenarios": kept, "seconds": 1.0, "left": []}
        for run, kept in zip(runs, scenarios, strict=True)
    ]
    assert forgery.header["run"] == "r1"
    forgery.write()
    wrong = find_contradictions(load_results(forgery.results), forgery.catalogue)
    assert message in [item.message for item in wrong]
