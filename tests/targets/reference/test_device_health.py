"""``allocatedResourcesStatus`` of containers: the health of the devices that they use.

Source of the rules: pkg/kubelet/cm/dra/manager.go, UpdateAllocatedResourcesStatus.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest

from conformance.targets.reference import ReferenceTarget
from conformance.targets.reference.scope import ReferenceScope
from conformance.targets.seam.values import Obj, Query, TargetError
from tests.targets.reference import kit
from tests.targets.reference.conftest import new_scope

Open = Callable[..., ReferenceTarget]


def shown(scope: ReferenceScope, pod: str) -> list[Obj]:
    """What the first container of a pod shows."""
    found = scope.get(kit.pod_ref(pod))
    assert found is not None
    status: list[Obj] = found["status"]["containerStatuses"][0].get("allocatedResourcesStatus", [])
    return status


def health(scope: ReferenceScope, pod: str) -> dict[str, list[str]]:
    return {
        item["name"]: [each["health"] for each in item["resources"]] for item in shown(scope, pod)
    }


def device_of(scope: ReferenceScope, claim: str) -> Obj:
    """The device that a claim has, as its slice has it."""
    found = scope.get(kit.claim_ref(claim))
    assert found is not None
    [result] = found["status"]["allocation"]["devices"]["results"]
    [published] = scope.find(Query(kit.DRA, "ResourceSlice"))
    [device] = [each for each in published["spec"]["devices"] if each["name"] == result["device"]]
    return dict(device)


@pytest.fixture
def one(scope: ReferenceScope) -> ReferenceScope:
    """A scope where pod p runs with a device."""
    scope.create(kit.claim("a"))
    scope.create(kit.pod("p", claims={"c": "a"}))
    kit.runs(scope, "p")
    return scope


def test_a_device_is_told_by_its_first_cdi_device_with_a_message(one: ReferenceScope) -> None:
    device = device_of(one, "a")
    one.faults.set_health(kit.NODE, device, "Unhealthy")
    [entry] = shown(one, "p")
    [told] = entry["resources"]
    assert entry["name"] == "claim:c"
    assert told["resourceID"].startswith("k8s.gpu.nvidia.com/claim=")
    assert (told["health"], told["message"]) == ("Unhealthy", "XID 79")
    one.faults.set_health(kit.NODE, device, "Healthy")
    [told] = shown(one, "p")[0]["resources"]
    assert {name: told[name] for name in told if name != "resourceID"} == {"health": "Healthy"}


@pytest.mark.parametrize("component", ["driver", "kubelet"])
def test_a_driver_that_ends_tells_nothing(one: ReferenceScope, component: str) -> None:
    one.faults.set_health(kit.NODE, device_of(one, "a"), "Unhealthy")
    one.faults.disturb(component, "stop")
    before = {"claim:c": ["Unhealthy"]} if component == "kubelet" else {"claim:c": ["Unknown"]}
    assert health(one, "p") == before
    one.faults.disturb(component, "start")
    # Events are not told twice: who begins to listen hears of those that come.
    after = {"claim:c": ["Unhealthy" if component == "kubelet" else "Healthy"]}
    assert health(one, "p") == after


def test_what_is_not_watched_is_unknown_and_offered_as_before(one: ReferenceScope) -> None:
    device = device_of(one, "a")
    one.faults.set_health(kit.NODE, device, "Unknown")
    assert health(one, "p") == {"claim:c": ["Unknown"]}
    assert [taint["effect"] for taint in device_of(one, "a").get("taints", ())] == ["None"]


def test_containers_without_a_claim_and_pods_that_have_ended_show_none(one: ReferenceScope) -> None:
    one.create(kit.pod("bare", kit.container()))
    kit.runs(one, "bare")
    assert shown(one, "bare") == []


@pytest.mark.parametrize(
    ("gates", "keys"),
    [
        ({"ResourceHealthStatus": False, "ResourceHealthStatusMessage": False}, set()),
        ({"ResourceHealthStatusMessage": False}, {"resourceID", "health"}),
        ({}, {"resourceID", "health", "message"}),
    ],
    ids=["no status", "no message", "the defaults"],
)
def test_gates_say_what_is_shown(open_target: Open, gates: dict[str, bool], keys: set[str]) -> None:
    scope = new_scope(open_target(feature_gates=gates))
    scope.create(kit.device_class())
    scope.create(kit.claim("a"))
    scope.create(kit.pod("p", claims={"c": "a"}))
    kit.runs(scope, "p")
    scope.faults.set_health(kit.NODE, device_of(scope, "a"), "Unhealthy")
    assert {key for item in shown(scope, "p") for each in item["resources"] for key in each} == keys


def test_the_minors_before_136_show_none(open_target: Open) -> None:
    scope = new_scope(open_target(kubernetes_version="1.35.4"))
    scope.create(kit.device_class())
    scope.create(kit.claim("a"))
    scope.create(kit.pod("p", claims={"c": "a"}))
    kit.runs(scope, "p")
    assert shown(scope, "p") == []


def test_a_node_without_a_driver_cannot_be_told(one: ReferenceScope) -> None:
    with pytest.raises(TargetError, match="no driver on nowhere that takes device health"):
        one.faults.set_health("nowhere", device_of(one, "a"), "Unhealthy")
