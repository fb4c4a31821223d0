"""A snapshot gets small, and what it shows stays what it is."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from conformance.fuzz.problem import pod_of
from conformance.fuzz.shrink_evidence import shrink_file, verdict_of
from kube.base.errors import UsageError
from reference_allocator.api.defaulting import default_claim
from reference_allocator.features import Features
from reference_allocator.snapshot import Snapshot


def device(name: str, size: int, *, tainted: bool = False) -> dict[str, Any]:
    taints = {"taints": [{"key": "a", "effect": "NoSchedule"}]} if tainted else {}
    return {"name": name, "attributes": {"size": {"int": size}}, **taints}


def snapshot(*devices: dict[str, Any]) -> dict[str, Any]:
    """Of three nodes with these devices each; a pod wants one that is large."""
    selector = {"cel": {"expression": 'device.attributes["d.example.com"].size > 4'}}
    body = {"deviceClassName": "c", "selectors": [selector]}
    claim = {
        "metadata": {"name": "one", "namespace": "default", "uid": "1"},
        "spec": {"devices": {"requests": [{"name": "r", "exactly": body}]}},
    }
    nodes = [f"node-{index}" for index in range(3)]
    return Snapshot(
        kubernetes="1.37.1",
        features=Features.for_version("1.37"),
        slices=tuple(
            {
                "metadata": {"name": node},
                "spec": {
                    "driver": "d.example.com",
                    "nodeName": node,
                    "pool": {"name": node, "generation": 1, "resourceSliceCount": 1},
                    "devices": list(devices),
                },
            }
            for node in nodes
        ),
        device_classes=({"metadata": {"name": "c"}, "spec": {}},),
        nodes=tuple({"metadata": {"name": node, "labels": {"a": "b"}}} for node in nodes),
        claims=(default_claim(claim),),
        pods=(pod_of("pod", {"resourceClaims": [{"name": "one", "resourceClaimName": "one"}]}),),
    ).to_dict()


SMALL_AND_TAINTED = [*(device(f"s{n}", n) for n in range(4)), device("t", 8, tainted=True)]


def test_every_rule_that_keeps_a_pod_waiting_stays(tmp_path: Path) -> None:
    file = tmp_path / "s.json"
    file.write_text(json.dumps(snapshot(*SMALL_AND_TAINTED)))
    verdict, small = shrink_file(file)
    assert verdict == ("waits", "fail selector", "none", "tainted")
    assert verdict_of(small, "default/pod") == verdict
    assert len(small["nodes"]) == len(small["slices"]) == 1
    [left, tainted] = small["slices"][0]["spec"]["devices"]
    assert (left["name"][0], tainted["name"]) == ("s", "t")
    assert "labels" not in small["nodes"][0]["metadata"]


def test_the_broken_rule_of_a_decision_stays(tmp_path: Path) -> None:
    document = snapshot(*SMALL_AND_TAINTED)
    result = {"request": "r", "driver": "d.example.com", "pool": "node-1", "device": "s1"}
    decision = {
        "pod": "pod",
        "node": "node-1",
        "claims": document["claims"],
        "allocations": [{"devices": {"results": [result]}}],
        "snapshot": document,
    }
    file = tmp_path / "d.json"
    file.write_text(json.dumps(decision))
    verdict, small = shrink_file(file)
    assert verdict[0] == "impossible"
    assert "selector" in verdict
    assert [item["name"] for item in small["snapshot"]["slices"][0]["spec"]["devices"]] == ["s1"]


def test_what_fits_or_what_does_not_wait_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "s.json"
    file.write_text(json.dumps(snapshot(device("l", 8))))
    with pytest.raises(UsageError, match="finds devices for it"):
        shrink_file(file)
    file.write_text(json.dumps({**snapshot(), "pods": [], "claims": []}))
    with pytest.raises(UsageError, match="nothing waits in it"):
        shrink_file(file)
    with pytest.raises(UsageError) as refused:
        shrink_file(tmp_path)
    assert str(refused.value).count(str(tmp_path)) == 1
