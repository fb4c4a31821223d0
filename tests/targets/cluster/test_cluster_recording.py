from __future__ import annotations

from dataclasses import asdict
from typing import Any

import pytest

from conformance.compare.judging import judge
from conformance.targets.cluster import ClusterTarget
from conformance.targets.cluster import recorder as recorder_module
from conformance.targets.cluster.capture import capture
from conformance.targets.cluster.scope import ClusterScope
from kube.base.errors import TargetError, UsageError
from kube.nodes import RUN_LABEL
from kubesim.apiserver.patches import merge
from reference_allocator.snapshot import Snapshot
from tests.compare import cluster
from tests.kube.fake_api import FakeApi
from tests.targets.cluster.conftest import MakeTarget, until

SLICE = {
    "metadata": {"name": "s", "managedFields": [{"manager": "x"}]},
    "spec": {
        "driver": "gpu.example.com",
        "nodeName": "n",
        "pool": {"name": "n", "generation": 1, "resourceSliceCount": 1},
        "devices": [{"name": "d0"}],
    },
}
NODE = {
    "metadata": {"name": "n", "labels": {"zone": "a"}},
    "spec": {"taints": [{"key": "k", "effect": "NoSchedule"}], "podCIDR": "10.0.0.0/24"},
    "status": {"declaredFeatures": ["X"], "images": [{"names": ["big"]}]},
}
CLAIM = {
    "metadata": {"name": "c", "namespace": "demo"},
    "spec": {
        "devices": {"requests": [{"name": "r", "exactly": {"deviceClassName": "gpu", "count": 1}}]}
    },
}
RESULT = {"request": "r", "driver": "gpu.example.com", "pool": "n", "device": "d0"}
ALLOCATED = {
    "status": {
        "allocation": {"devices": {"results": [RESULT]}},
        "reservedFor": [{"resource": "pods", "name": "pod0", "uid": "uid-pod0"}],
    }
}


def inventory(api: FakeApi) -> None:
    api.put("resourceslices", SLICE)
    api.put("nodes", NODE)
    api.put("deviceclasses", {"metadata": {"name": "gpu"}, "spec": {}})


@pytest.fixture
def recorded(api: FakeApi, make_target: MakeTarget) -> ClusterScope:
    inventory(api)
    return make_target(record=True).scope("demo")


def test_a_decision_holds_what_it_was_made_from_also_when_all_is_gone(
    api: FakeApi, recorded: ClusterScope
) -> None:
    api.put("pods", {"metadata": {"name": "pod0", "namespace": "demo", "uid": "uid-pod0"}})
    claim = api.put("resourceclaims", CLAIM)
    api.put("resourceclaims", merge(claim, ALLOCATED))
    bound = {"name": "pod0", "namespace": "demo", "uid": "uid-pod0"}
    api.put("pods", {"metadata": bound, "spec": {"nodeName": "n"}})
    # Pods have a watch of their own, which nothing that is asked later waits for.
    until(lambda: [one.node for one in recorded.decisions()] == ["n"])
    api.drop("pods", "demo", "pod0")
    api.drop("resourceclaims", "demo", "c")
    api.drop("resourceslices", "", "s")
    (decision,) = recorded.decisions()
    assert (decision.pod, decision.node) == ("pod0", "n")
    snapshot = decision.snapshot
    assert Snapshot.from_dict(snapshot).to_dict() == snapshot
    assert [s["spec"] for s in snapshot["slices"]] == [SLICE["spec"]]
    assert "managedFields" not in snapshot["slices"][0]["metadata"]
    (node,) = snapshot["nodes"]
    assert node["metadata"]["labels"] == {"zone": "a"}
    assert node["spec"] == {"taints": [{"key": "k", "effect": "NoSchedule"}]}
    assert node["status"] == {"declaredFeatures": ["X"]}
    recorded.close()


def test_how_long_a_claim_waited_is_measured_while_it_is_recorded(
    api: FakeApi, recorded: ClusterScope
) -> None:
    claim = api.put("resourceclaims", CLAIM)
    api.put("pods", {"metadata": {"name": "pod0", "namespace": "demo", "uid": "uid-pod0"}})
    recording = recorded._recording
    assert recording is not None
    until(lambda: "uid-pod0" in recording.latencies._since)  # they are two watches
    api.put("resourceclaims", merge(claim, ALLOCATED))
    until(recorded.latencies)
    assert len(recorded.latencies()) == 1
    recorded.close()


def test_decisions_wait_for_what_the_server_has_said_already(
    api: FakeApi, recorded: ClusterScope, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(recorder_module, "CATCH_UP_SECONDS", 0.2)
    api.mute = True
    api.put("resourceclaims", merge(CLAIM, ALLOCATED))
    with pytest.raises(TargetError, match="behind the API server"):
        recorded.decisions()
    api.unmute()
    monkeypatch.setattr(recorder_module, "CATCH_UP_SECONDS", 5)
    assert len(recorded.decisions()) == 1
    recorded.close()


def test_without_recording_there_are_no_decisions_and_only_claims_are_followed(
    api: FakeApi, scope: ClusterScope
) -> None:
    api.put("resourceclaims", merge(CLAIM, ALLOCATED))
    assert scope.decisions() == []
    assert scope.latencies() == ()
    followed = {
        path.partition("?")[0].rpartition("/")[2]
        for _, path, *_ in api.requests
        if path.count("/") > 3
    }
    assert followed == {"resourceclaims"}


@pytest.mark.parametrize("recording", [False, True])
def test_a_device_in_two_claims_is_found_with_and_without_recording(
    api: FakeApi, make_target: MakeTarget, recording: bool
) -> None:
    inventory(api)
    scope = make_target(record=recording).scope("demo")
    api.put("resourceclaims", merge(CLAIM, ALLOCATED))
    api.put("resourceclaims", merge(CLAIM, {"metadata": {"name": "second"}} | ALLOCATED))
    until(scope.overlaps)
    (found,) = scope.overlaps()
    assert (found.device, found.claim, found.holder) == ("d0", "demo/second", "demo/c")
    watches = [path for _, path, *_ in api.requests if "watch" in path and "claims" in path]
    assert len(watches) <= 1


def test_a_closed_scenario_leaves_no_history_behind(api: FakeApi, make_target: MakeTarget) -> None:
    inventory(api)
    target = make_target(record=True)
    assert target.recorder is not None
    for turn in range(3):
        scope = target.scope("demo")
        for name in range(5):
            api.put("resourceclaims", merge(CLAIM, {"metadata": {"name": f"c{name}"}}))
        for name in range(5):
            api.drop("resourceclaims", "demo", f"c{name}")
        scope.decisions()
        scope.close()
        assert len(list(target.recorder.history.states("ResourceClaim"))) == 0, turn


def test_the_present_snapshot_tells_waiting_from_allocated_claims(
    api: FakeApi, scope: ClusterScope
) -> None:
    inventory(api)
    api.metrics = 'kubernetes_feature_enabled{name="DRAAdminAccess",stage="BETA"} 0\n'
    api.put("resourceclaims", CLAIM)
    api.put("resourceclaims", merge(CLAIM, {"metadata": {"name": "x", "namespace": "else"}}))
    taken = merge(CLAIM, {"metadata": {"name": "y", "namespace": "else"}, **ALLOCATED})
    api.put("resourceclaims", taken)
    snapshot = scope.snapshot()
    assert Snapshot.from_dict(snapshot).to_dict() == snapshot
    assert [c["metadata"]["name"] for c in snapshot["claims"]] == ["c"]
    assert [c["metadata"]["name"] for c in snapshot["allocated"]] == ["y"]
    assert snapshot["kubernetes"] == "1.37.1"
    assert snapshot["features"]["adminAccess"] is False
    assert snapshot["features"]["prioritizedList"] is True


def test_the_snapshot_of_a_failure_is_a_capture_with_its_own_claims(
    api: FakeApi, target: ClusterTarget, scope: ClusterScope
) -> None:
    inventory(api)
    for namespace in ("demo", "else"):
        api.put("resourceclaims", merge(CLAIM, {"metadata": {"namespace": namespace}}))
        wants = cluster.pod(resourceClaims=[{"name": "c", "resourceClaimName": "c"}])
        api.put("pods", merge(wants, {"metadata": {"namespace": namespace}}))
    snapshot = scope.snapshot(pods=True)
    whole = capture(target.api, print)
    assert [claim["metadata"]["namespace"] for claim in whole["claims"]] == ["demo", "else"]
    assert snapshot == {**whole, "claims": whole["claims"][:1]}


RULE = {
    "apiVersion": "resource.k8s.io/v1",
    "kind": "DeviceTaintRule",
    "metadata": {"name": "rule"},
    "spec": {
        "deviceSelector": {"driver": "gpu.example.com"},
        "taint": {"key": "broken", "effect": "NoSchedule"},
    },
}


def taints(snapshot: dict[str, Any]) -> list[str]:
    devices = snapshot["slices"][0]["spec"]["devices"]
    return [taint["key"] for device in devices for taint in device.get("taints") or ()]


def test_a_decision_has_the_taints_of_the_rules_of_its_moment(
    api: FakeApi, recorded: ClusterScope
) -> None:
    api.put("devicetaintrules", RULE)
    api.put("resourceclaims", merge(api.put("resourceclaims", CLAIM), ALLOCATED))
    api.drop("devicetaintrules", "", "rule")
    second = merge(CLAIM, {"metadata": {"name": "later"}})
    other_pod = {"resource": "pods", "name": "pod1", "uid": "uid-pod1"}
    later = merge(merge(second, ALLOCATED), {"status": {"reservedFor": [other_pod]}})
    api.put("resourceclaims", merge(api.put("resourceclaims", second), later))
    first, last = recorded.decisions()
    assert taints(first.snapshot) == ["broken"]
    assert taints(last.snapshot) == []
    recorded.close()


@pytest.mark.parametrize(("on", "found"), [("1", ["broken"]), ("0", [])])
def test_rules_count_in_the_present_snapshot_unless_their_gate_is_off(
    api: FakeApi, scope: ClusterScope, on: str, found: list[str]
) -> None:
    inventory(api)
    api.metrics = f'kubernetes_feature_enabled{{name="DRADeviceTaintRules",stage=""}} {on}\n'
    api.put("devicetaintrules", RULE)
    assert taints(scope.snapshot()) == found


def test_where_rules_are_not_served_nothing_is_asked_of_them(
    api: FakeApi, make_target: MakeTarget
) -> None:
    del api.served["resource.k8s.io/v1"]["devicetaintrules"]
    inventory(api)
    target = make_target(record=True)
    scope = target.scope("demo")
    assert scope.decisions() == []
    assert taints(scope.snapshot()) == []
    assert target.owned() == []
    assert not [path for _, path, _, _ in api.requests if "devicetaintrules" in path]
    scope.close()


def test_rules_of_a_run_are_found_for_cleanup(api: FakeApi, make_target: MakeTarget) -> None:
    api.put("devicetaintrules", merge(RULE, {"metadata": {"labels": {RUN_LABEL: "r"}}}))
    assert [str(ref) for ref in make_target().owned("r")] == ["DeviceTaintRule rule"]


def test_what_is_decided_while_the_record_has_a_gap_is_not_judged(
    api: FakeApi, recorded: ClusterScope
) -> None:
    held = merge(CLAIM, {"metadata": {"name": "held", "namespace": "other"}} | ALLOCATED)
    api.put("resourceclaims", held)
    recorded.decisions()
    with api.changed:
        api.mute = True
        api.drop("resourceclaims", "other", "held")
        api.put("resourceclaims", merge(CLAIM, ALLOCATED))
        api.forget()
        api.mute = False
    (decision,) = recorded.decisions()
    assert "nothing of it is known between" in decision.unknown
    with pytest.raises(UsageError, match="the record has a gap"):
        judge(asdict(decision))
    assert recorded.overlaps() == []
    recorded.close()


@pytest.mark.parametrize("status", [403, 429, 500, 503])
def test_a_refused_watch_goes_on_where_it_was_and_leaves_no_gap(
    api: FakeApi, recorded: ClusterScope, status: int
) -> None:
    api.put("resourceclaims", CLAIM)
    recorded.decisions()
    with api.changed:
        api.mute = True
        api.fail("GET", "resourceclaims?watch=true", status)
        api.cut()
        api.put("resourceclaims", merge(CLAIM, ALLOCATED))
        api.mute = False
    (decision,) = recorded.decisions()
    assert decision.unknown == ""
    recorded.close()
