from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from conformance.compare.dumps import read_dump
from conformance.compare.evidence import Obj
from conformance.compare.replay import WhatIf, replay, replay_if, replay_results
from conformance.results.events.comparison import Judgement, Verdict
from conformance.results.events.scenario import KnownFailure, Outcome
from conformance.results.write import ResultFile
from kube.base.errors import UsageError
from tests.compare.cluster import (
    allocated,
    allocation,
    claim,
    decision,
    pod,
    resource_slice,
    snapshot,
)
from tests.report.builders import finished, planned, play, stream


def judge_file(path: Path) -> tuple[Judgement, ...]:
    return replay(read_dump(path), path)


def saved(folder: Path, document: Any) -> Path:
    path = folder / "saved.json"
    path.write_text(json.dumps(document))
    return path


def test_a_saved_decision_is_judged_again_without_a_cluster(tmp_path: Path) -> None:
    [judgement] = judge_file(saved(tmp_path, decision([claim()], [allocation("gpu-1")])))
    assert judgement.verdict is Verdict.ADMISSIBLE


def test_a_saved_snapshot_of_a_pending_pod_is_judged_again(tmp_path: Path) -> None:
    [judgement] = judge_file(saved(tmp_path, snapshot(claims=(claim(),))))
    assert judgement.verdict is Verdict.MISSED
    state = snapshot(claims=(claim(),), allocated=(allocated("other", "gpu-0", "gpu-1"),))
    assert judge_file(saved(tmp_path, state)) == ()


def waits(name: str, *claims: str, **spec: Any) -> Obj:
    entries = [{"name": one, "resourceClaimName": one} for one in claims]
    return pod(name, resourceClaims=entries, **spec)


def test_each_pod_of_a_clusters_snapshot_is_judged_with_its_own_claims(tmp_path: Path) -> None:
    state = snapshot(
        claims=(claim("few", 2), claim("many", 3), claim("away")),
        pods=(waits("a", "few"), waits("b", "many"), waits("c", "away", nodeSelector={"x": "y"})),
    )
    judged = judge_file(saved(tmp_path, state))
    assert [(item.verdict, item.pod) for item in judged] == [(Verdict.MISSED, "a")]


NODE = """
apiVersion: v1
kind: Node
metadata: {name: new}
---
apiVersion: resource.k8s.io/v1
kind: ResourceSlice
metadata: {name: new-gpus}
spec:
  driver: gpu.example.com
  nodeName: new
  pool: {name: new, generation: 1, resourceSliceCount: 1}
  devices: [{name: gpu-0}, {name: gpu-1}, {name: gpu-2}]
"""


@pytest.mark.parametrize(
    ("what_if", "fits"),
    [
        ({}, ["small"]),
        ({"cordon": ("node-a",)}, []),
        ({"end": ("ns/holder",)}, ["small", "middle"]),
        ({"nodes": (Path("node.yaml"),)}, ["small", "middle", "large"]),
        ({"kubernetes": "1.34"}, ["small", "middle", "tainted"]),
        ({"gates": {"DRADeviceTaints": False}}, ["small", "middle", "tainted"]),
    ],
)
def test_it_is_told_what_would_fit_if(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, what_if: dict[str, Any], fits: list[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("node.yaml").write_text(NODE)
    published = resource_slice(sizes=("40Gi", "40Gi", "80Gi"))
    published["spec"]["devices"][2]["taints"] = [{"key": "hot", "effect": "NoSchedule"}]
    held = allocated("held", "gpu-0")
    held["status"]["reservedFor"] = [{"resource": "pods", "name": "holder", "uid": "u"}]
    state = snapshot(
        slices=(published,),
        claims=(
            claim("small"),
            claim("middle", 2, memory="40Gi"),
            claim("large", 3),
            claim("tainted", memory="80Gi"),
        ),
        allocated=(held,),
        pods=(
            pod("holder", nodeName="node-a"),
            *(waits(name, name) for name in ("small", "middle", "large", "tainted")),
        ),
    )
    if "nodes" in what_if:
        state["claims"][1] = claim("middle", 2)
    told = replay_if(saved(tmp_path, state), WhatIf(**what_if))
    assert [item.subject.removeprefix("ns/") for item in told if item.fits] == fits


@pytest.mark.parametrize(
    ("what_if", "message"),
    [
        ({"end": ("ns/nobody",)}, "--end ns/nobody: the snapshot has no such pod"),
        ({"cordon": ("nowhere",)}, "--cordon nowhere: the snapshot has no such node"),
        ({"gates": {"DRADeviceTaintRules": False}}, "have the rules' taints"),
        ({"nodes": (Path("node.yaml"),)}, "node.yaml: the snapshot has Node node-a already"),
        ({"nodes": (Path("pod.yaml"),)}, "pod.yaml: Pod: give Nodes and ResourceSlices only"),
        ({"nodes": (Path("none.yaml"),)}, "none.yaml: cannot be read"),
        ({"nodes": (Path("slice.yaml"),)}, r"slices\[0\]"),
    ],
)
def test_a_change_of_what_is_not_there_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, what_if: dict[str, Any], message: str
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("node.yaml").write_text("kind: Node\nmetadata: {name: node-a}\n")
    Path("pod.yaml").write_text("kind: Pod\nmetadata: {name: p}\n")
    Path("slice.yaml").write_text("kind: ResourceSlice\nmetadata: {name: p}\nspec: {driver: 3}\n")
    with pytest.raises(UsageError, match=message):
        replay_if(saved(tmp_path, snapshot()), WhatIf(**what_if))


def test_a_result_file_is_judged_again_and_gives_the_same_verdicts(tmp_path: Path) -> None:
    event = finished(
        decisions=(
            decision([claim()], [allocation("gpu-0")]),
            decision([claim()], [allocation("gpu-7")]),
        )
    )
    path = tmp_path / "results"
    issue = KnownFailure("scheduler-frees-device-of-two-claims", "docs/found/x.md")
    known = finished("core/two", Outcome.KNOWN, "no", known_issues=(issue,))
    play(ResultFile(path), stream([planned(), planned("core/two")], [event, known]))
    run = replay_results(path)
    [compared, _] = run.compared
    assert run.known == {"core/two": (issue,)}
    assert (compared.scenario, compared.verdict) == ("core/one", Verdict.INADMISSIBLE)


def test_a_snapshot_that_leaves_nothing_open_is_not_called_right(tmp_path: Path) -> None:
    held = snapshot(claims=(allocated("claim-0", "gpu-0"),))
    for document in (held, snapshot(), {"snapshot": held, "pod": None}):
        with pytest.raises(UsageError, match="no claim without an allocation, so there is nothing"):
            judge_file(saved(tmp_path, document))


def test_a_pod_that_waits_for_something_else_is_not_judged(tmp_path: Path) -> None:
    gated = waits("p", "claim-0", schedulingGates=[{"name": "quota"}])
    state = snapshot(claims=(claim(),), pods=(gated,))
    with pytest.raises(UsageError, match="not by devices alone wait ns/p; `dra-conformance expl"):
        judge_file(saved(tmp_path, state))


@pytest.mark.parametrize("make", ["fifo", "zero"])
def test_what_is_no_regular_file_is_refused_at_once(tmp_path: Path, make: str) -> None:
    path = tmp_path / "saved.json"
    os.mkfifo(path) if make == "fifo" else path.symlink_to("/dev/zero")
    with pytest.raises(UsageError, match="it is not a regular file"):
        judge_file(path)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        pytest.param("{", r"saved\.json:1: is not JSON", id="no JSON"),
        pytest.param("[]", r"saved\.json:1: \$: must be an object", id="no object"),
        pytest.param("{}", r"saved\.json: is neither a decision", id="something else"),
        pytest.param('{"allocations": []}', r"saved\.json: \$\.claims", id="half a decision"),
        pytest.param('{"kind": "Snapshot"}', r"saved\.json: \$\.apiVersion", id="half a snapshot"),
        pytest.param("[" * 100_000, r"saved\.json: is not read, it is nested", id="too deep"),
    ],
)
def test_another_file_is_a_usage_error(tmp_path: Path, content: str, message: str) -> None:
    path = tmp_path / "saved.json"
    path.write_text(content)
    with pytest.raises(UsageError, match=message):
        judge_file(path)


def test_a_missing_file_is_a_usage_error(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="No such file"):
        judge_file(tmp_path / "none.json")
