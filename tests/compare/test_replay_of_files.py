from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from conformance.compare.replay import replay, replay_results
from conformance.engine.events.comparison import Verdict
from conformance.errors import UsageError
from conformance.resultfile.write import ResultFile
from tests.compare.cluster import allocated, allocation, claim, decision, snapshot
from tests.report.builders import finished, planned, play, stream


def saved(folder: Path, document: Any) -> Path:
    path = folder / "saved.json"
    path.write_text(json.dumps(document))
    return path


def test_a_saved_decision_is_judged_again_without_a_cluster(tmp_path: Path) -> None:
    judgement = replay(saved(tmp_path, decision([claim()], [allocation("gpu-1")])))
    assert judgement is not None
    assert judgement.verdict is Verdict.ADMISSIBLE


def test_a_saved_snapshot_of_a_pending_pod_is_judged_again(tmp_path: Path) -> None:
    judgement = replay(saved(tmp_path, snapshot(claims=(claim(),))))
    assert judgement is not None
    assert judgement.verdict is Verdict.MISSED
    state = snapshot(claims=(claim(),), allocated=(allocated("other", "gpu-0", "gpu-1"),))
    assert replay(saved(tmp_path, state)) is None


def test_a_result_file_is_judged_again_and_gives_the_same_verdicts(tmp_path: Path) -> None:
    event = finished(
        decisions=(
            decision([claim()], [allocation("gpu-0")]),
            decision([claim()], [allocation("gpu-7")]),
        )
    )
    path = tmp_path / "results"
    play(ResultFile(path), stream([planned()], [event]))
    [compared] = replay_results(path)
    assert (compared.scenario, compared.verdict) == ("core/one", Verdict.INADMISSIBLE)


def test_a_snapshot_that_leaves_nothing_open_is_not_called_right(tmp_path: Path) -> None:
    held = snapshot(claims=(allocated("claim-0", "gpu-0"),))
    for document in (held, snapshot(), {"snapshot": held, "pod": None}):
        with pytest.raises(UsageError, match="no claim without an allocation, so there is nothing"):
            replay(saved(tmp_path, document))


@pytest.mark.parametrize("make", ["fifo", "zero"])
def test_what_is_no_regular_file_is_refused_at_once(tmp_path: Path, make: str) -> None:
    path = tmp_path / "saved.json"
    os.mkfifo(path) if make == "fifo" else path.symlink_to("/dev/zero")
    with pytest.raises(UsageError, match="it is not a regular file"):
        replay(path)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        pytest.param("{", r"saved\.json:1: is not JSON", id="no JSON"),
        pytest.param("[]", r"saved\.json: \$: must be an object", id="no object"),
        pytest.param("{}", r"saved\.json: is neither a decision", id="something else"),
        pytest.param('{"allocations": []}', r"saved\.json: \$\.claims", id="half a decision"),
        pytest.param('{"kind": "Snapshot"}', r"saved\.json: \$\.apiVersion", id="half a snapshot"),
        pytest.param("[" * 100_000, r"saved\.json: is not JSON", id="too deep"),
    ],
)
def test_another_file_is_a_usage_error(tmp_path: Path, content: str, message: str) -> None:
    path = tmp_path / "saved.json"
    path.write_text(content)
    with pytest.raises(UsageError, match=message):
        replay(path)


def test_a_missing_file_is_a_usage_error(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="No such file"):
        replay(tmp_path / "none.json")
