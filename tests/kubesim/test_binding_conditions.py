"""Pods that have devices which must be made ready before they are bound."""

from __future__ import annotations

import pytest

from conformance.targets.reference.scope import ReferenceScope
from tests.kubesim import kit
from tests.kubesim.conftest import Open, new_scope
from tests.kubesim.situations import claim, is_bound, publish, report, run

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


def test_waiting_pod_takes_its_room_on_the_node(scope: ReferenceScope) -> None:
    publish(scope, DEVICE)
    scope.create(claim("c"))
    container = kit.container("ctr0", "g")
    container["resources"]["requests"] = {"cpu": "60"}
    scope.create(kit.pod("c", container, claims={"g": "c"}))
    assert not is_bound(scope, "c")
    scope.create(kit.pod("other", kit.container(resources={"requests": {"cpu": "5"}})))
    assert "Insufficient cpu" in kit.why_pending(scope, "other")


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


def test_without_the_gate_nobody_waits(open_target: Open) -> None:
    scope = new_scope(open_target(kubernetes_version="1.35.0"))
    publish(scope, DEVICE)
    run(scope, claim("c"))
    assert is_bound(scope, "c")
