"""Pods that have devices which must be made ready before they are bound."""

from __future__ import annotations

import pytest

from conformance.targets.reference.scope import ReferenceScope
from conformance.targets.seam.values import Ref
from tests.targets.reference import kit
from tests.targets.reference.conftest import Open, new_scope
from tests.targets.reference.situations import DRIVER, claim, is_bound, publish, report, run

READY, FAILED = "example.com/ready", "example.com/failed"
DEVICE = {"name": "d0", "bindingConditions": [READY], "bindingFailureConditions": [FAILED]}


@pytest.fixture
def waiting(scope: ReferenceScope) -> ReferenceScope:
    """The pod c has the device d0 and waits for it."""
    publish(scope, DEVICE)
    found = run(scope, claim("c"))
    assert kit.devices(found) == ["d0"]
    assert found["status"]["reservedFor"][0]["name"] == "c"
    assert not is_bound(scope, "c")
    return scope


def test_waiting_pod_says_so_and_has_no_condition(waiting: ReferenceScope) -> None:
    text = f"waiting for binding conditions for device on node {kit.NODE}"
    assert kit.events(waiting, "BindingConditionsPending") == [text]
    assert kit.why_pending(waiting, "c") == ""


def test_other_conditions_do_not_count(waiting: ReferenceScope) -> None:
    report(waiting, "c", "example.com/other")
    assert not is_bound(waiting, "c")
    report(waiting, "c", "example.com/other", READY)
    assert is_bound(waiting, "c")


def test_waiting_pod_takes_its_room_on_the_node(scope: ReferenceScope) -> None:
    publish(scope, DEVICE)
    scope.create(claim("c"))
    container = kit.container("ctr0", "g")
    container["resources"]["requests"] = {"cpu": "60"}
    scope.create(kit.pod("c", container, claims={"g": "c"}))
    assert not is_bound(scope, "c")
    scope.create(kit.pod("other", kit.container(resources={"requests": {"cpu": "5"}})))
    assert "Insufficient cpu" in kit.why_pending(scope, "other")


def test_deleted_pod_is_waited_for_no_longer(waiting: ReferenceScope) -> None:
    waiting.delete(kit.pod_ref("c"))
    waiting.pause(10)
    assert "allocation" not in kit.get(waiting, kit.claim_ref("c"))["status"]
    run(waiting, claim("next"))
    report(waiting, "next", READY)
    assert is_bound(waiting, "next")


def test_device_that_is_never_ready_is_given_up(waiting: ReferenceScope) -> None:
    before = kit.get(waiting, kit.claim_ref("c"))["status"]["allocation"]["allocationTimestamp"]
    waiting.pause(590)
    now = kit.get(waiting, kit.claim_ref("c"))["status"]["allocation"]["allocationTimestamp"]
    assert now == before
    waiting.pause(30)
    now = kit.get(waiting, kit.claim_ref("c"))["status"]["allocation"]["allocationTimestamp"]
    assert now > before
    assert "device binding timeout" in "".join(kit.events(waiting, "FailedScheduling"))


def test_claim_that_is_ready_serves_further_pods_at_once(waiting: ReferenceScope) -> None:
    report(waiting, "c", READY)
    waiting.create(kit.pod("other", claims={"g": "c"}))
    assert is_bound(waiting, "other")


def test_claim_for_extended_resources_is_waited_for_and_made_anew(scope: ReferenceScope) -> None:
    publish(scope, DEVICE)
    selectors = [{"cel": {"expression": f'device.driver == "{DRIVER}"'}}]
    name = "example.com/gpu"
    scope.create(kit.device_class("extended", selectors=selectors, extendedResourceName=name))
    scope.create(kit.pod("p", kit.container(resources={"limits": {name: 1}})))
    [first] = kit.claims_of(scope)
    assert not is_bound(scope, "p")
    scope.patch(Ref(kit.DRA, "ResourceSlice", "published"), {"spec": {"devices": [{"name": "d1"}]}})
    report(scope, first["metadata"]["name"], FAILED)
    [second] = kit.claims_of(scope)
    assert second["metadata"]["name"] != first["metadata"]["name"]
    assert kit.devices(second) == ["d1"]
    assert is_bound(scope, "p")
    made = kit.get(scope, kit.pod_ref("p"))["status"]["extendedResourceClaimStatus"]
    assert made["resourceClaimName"] == second["metadata"]["name"]


def test_without_the_gate_nobody_waits(open_target: Open) -> None:
    scope = new_scope(open_target(kubernetes_version="1.35.0"))
    publish(scope, DEVICE)
    run(scope, claim("c"))
    assert is_bound(scope, "c")
