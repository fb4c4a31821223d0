from __future__ import annotations

import json
from typing import Any

from conformance.report.drawing import MAX_DEVICES, MAX_NODES, Drawing, drawings_of
from conformance.report.pages import MAX_EVENTS, warnings_of
from conformance.results.events.comparison import Judgement, ScenarioCompared, Verdict
from conformance.results.events.result import ScenarioResult
from tests.compare.cluster import DRIVER, claim, node, resource_slice
from tests.report.builders import finished, planned

Obj = dict[str, Any]


def result(device: str, pool: str = "node-a", **more: Any) -> Obj:
    return {"request": "gpu", "driver": DRIVER, "pool": pool, "device": device, **more}


def held(name: str, *results: Obj, pod: str = "") -> Obj:
    reserved = [{"resource": "pods", "name": pod, "uid": "u"}] if pod else []
    status = {"allocation": {"devices": {"results": list(results)}}, "reservedFor": reserved}
    return claim(name) | {"status": status}


def snapshot(**changes: Any) -> Obj:
    return {
        "apiVersion": "dra-conformance/v1",
        "kind": "Snapshot",
        "kubernetes": "1.37.1",
        "slices": [resource_slice("node-a", ["40Gi"] * 3), resource_slice("node-b")],
        "nodes": [node("node-a"), node("node-b"), node("node-c")],
        "claims": [],
        "allocated": [],
    } | changes


def drawings(document: object, **changes: Any) -> list[Drawing]:
    text = document if isinstance(document, str) else json.dumps(document)
    row = ScenarioResult(
        scenario=planned(),
        outcome=finished().outcome,
        finished=changes.get("finished", finished()),
        compared=changes.get("compared"),
        diagnostics={"snapshot.json": text} if text else {},
    )
    return list(drawings_of(row))


def states(drawing: Drawing) -> dict[str, str]:
    return {
        f"{one.name}/{item.id.device}": item.state for one in drawing.nodes for item in one.devices
    }


def test_devices_are_drawn_on_their_nodes_with_who_holds_them() -> None:
    [drawn] = drawings(
        snapshot(
            allocated=[
                held("one", result("gpu-0"), pod="pod0"),
                held("two", result("gpu-1")),
                held("three", result("gpu-1"), result("gpu-2", adminAccess=True)),
                held("b", result("gpu-0", "node-b", shareID="1"), pod="p"),
                held("c", result("gpu-0", "node-b", shareID="2"), pod="q"),
            ],
            claims=[claim("waiting")],
        )
    )
    assert states(drawn) == {
        "node-a/gpu-0": "held",
        "node-a/gpu-1": "twice",
        "node-a/gpu-2": "free",  # admin access takes nothing away
        "node-b/gpu-0": "held",  # shared, as it is meant to be
        "node-b/gpu-1": "free",
    }
    by_name = {item.id.device: item for item in drawn.nodes[0].devices}
    assert by_name["gpu-0"].holders == ("pod0",)
    assert by_name["gpu-1"].holders == ("two", "three")
    assert [item.name for item in drawn.nodes] == ["node-a", "node-b", "node-c"]
    assert [name.rpartition("/")[2] for name in drawn.waiting] == ["waiting"]


def test_what_a_decision_took_is_reported_apart_and_only_bad_ones_are_drawn() -> None:
    def decision(device: str) -> Obj:
        return {
            "pod": "p",
            "node": "node-a",
            "claims": [claim("new")],
            "allocations": [{"devices": {"results": [result(device)]}}],
            "snapshot": snapshot(allocated=[held("old", result("gpu-0"))]),
        }

    event = finished(decisions=(decision("gpu-1"), decision("gpu-0"), decision("gpu-2")))
    verdicts = (Verdict.IDENTICAL, Verdict.IMPOSSIBLE, Verdict.INADMISSIBLE)
    compared = ScenarioCompared(
        event.scenario.id,
        tuple(Judgement(verdict, "", pod="p", node="node-a") for verdict in verdicts),
    )
    first, second = drawings("", finished=event, compared=compared)
    assert first.title == "impossible: pod p on node-a"
    assert states(first)["node-a/gpu-0"] == "twice"
    assert states(second)["node-a/gpu-2"] == "chosen"
    assert states(second)["node-a/gpu-0"] == "held"


def test_devices_of_several_nodes_and_of_none_are_named_so() -> None:
    everywhere = resource_slice("fabric")
    everywhere["spec"] |= {"allNodes": True}
    del everywhere["spec"]["nodeName"]
    tainted = resource_slice("node-gone", ["1Gi"])
    tainted["spec"]["devices"][0]["taints"] = [{"key": "k", "effect": "NoSchedule"}]
    [drawn] = drawings(snapshot(slices=[everywhere, tainted]))
    assert set(states(drawn)) == {
        "every node/gpu-0",
        "every node/gpu-1",
        "node-gone (not in the snapshot)/gpu-0",
    }
    gone = next(one for one in drawn.nodes if one.name.startswith("node-gone"))
    assert [item.who for item in gone.devices] == ["free, tainted"]


def test_only_the_newest_slices_of_a_pool_are_drawn() -> None:
    old, new = resource_slice("node-a", ["1Gi"] * 3), resource_slice("node-a", ["1Gi"])
    new["spec"]["pool"] |= {"generation": 2}
    new["metadata"]["name"] = "newer"
    [drawn] = drawings(snapshot(slices=[old, new]))
    assert list(states(drawn)) == ["node-a/gpu-0"]


def test_a_large_cluster_is_cut_and_what_is_held_is_kept() -> None:
    many = [resource_slice(f"n{number}", ["1Gi"] * 60) for number in range(30)]
    [drawn] = drawings(
        snapshot(
            slices=many,
            nodes=[node(f"n{number}") for number in range(30)],
            allocated=[held("one", result("gpu-59", "n29"))],
        )
    )
    assert len(drawn.nodes) == MAX_NODES
    assert drawn.nodes_left_out == 30 - MAX_NODES
    assert len(drawn.nodes[0].devices) == MAX_DEVICES
    assert drawn.nodes[0].devices_left_out == 60 - MAX_DEVICES
    assert states(drawn)["n29/gpu-59"] == "held"


def test_what_is_no_snapshot_is_not_drawn() -> None:
    for document in ("", "{", "[]", "null", "[" * 100_000, {"kind": "Snapshot"}, snapshot(nodes=3)):
        assert drawings(document) == []


def warnings(events: object, message: str = "") -> list[str]:
    text = events if isinstance(events, str) else json.dumps(events)
    row = ScenarioResult(
        scenario=planned(),
        outcome=finished().outcome,
        finished=finished(message=message),
        compared=None,
        diagnostics={"events.json": text},
    )
    return warnings_of(row)


def event(message: str, at: str = "2026-01-01T00:00:00Z", kind: str = "Warning") -> Obj:
    return {
        "type": kind,
        "reason": "Failed",
        "message": message,
        "involvedObject": {"kind": "Pod", "name": "p"},
        "reportingComponent": "kubelet",
        "lastTimestamp": at,
    }


def test_the_last_warnings_that_the_message_does_not_quote_are_reported() -> None:
    many = [event(f"m{number}", f"2026-01-01T00:00:0{number}Z") for number in range(6)]
    assert warnings(many[::-1]) == [f"Failed, Pod p (kubelet): m{n}" for n in (5, 4, 3)]
    assert len(warnings(many)) == MAX_EVENTS
    assert warnings([event("seen"), event("fine", kind="Normal")], "and so: seen") == []
    assert warnings([event("twice"), event("twice")]) == ["Failed, Pod p (kubelet): twice"]


def test_events_that_are_none_are_passed_over() -> None:
    for text in ("{", "3", '["x", {"type": "Warning"}]', "[" * 100_000):
        assert warnings(text) == []
    assert warnings([{"type": "Warning", "message": "m", "involvedObject": 3, "series": []}]) == [
        "None, ? (?): m"
    ]
