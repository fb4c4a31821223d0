from __future__ import annotations

from typing import Any

import pytest

from conformance import probe
from conformance.scenario.shape import ShapeNode
from conformance.targets.reference.nodes.nvml import NvmlDriver
from conformance.targets.reference.scope import ReferenceScope
from conformance.targets.reference.target import ReferenceTarget
from conformance.targets.seam.values import Obj
from nvml_driver.errors import PrepareError
from tests.targets.reference import kit
from tests.targets.reference.conftest import Open, new_scope


def status_of(scope: ReferenceScope, pod: str, container: str = "ctr0") -> Obj:
    status = kit.get(scope, kit.pod_ref(pod))["status"]
    both = [*status.get("initContainerStatuses", []), *status.get("containerStatuses", [])]
    found: Obj = next(item for item in both if item["name"] == container)
    return found


def test_environment_of_the_container_itself_is_there(scope: ReferenceScope) -> None:
    env = [{"name": "A", "value": "b"}, {"name": "EMPTY"}]
    scope.create(kit.pod("p", kit.container(env=env)))
    kit.runs(scope, "p")
    view = scope.observe.container("p", "ctr0")
    assert view is not None
    assert (view.environment["A"], view.environment["EMPTY"]) == ("b", "")
    assert view.environment["HOSTNAME"] == "p"
    assert "/dev/null" in view.device_nodes


def test_command_may_be_split_into_command_and_args(scope: ReferenceScope) -> None:
    split = kit.container(command=probe.HOLD[:2], args=list(probe.HOLD[2:]))
    scope.create(kit.pod("p", split))
    kit.runs(scope, "p")


@pytest.mark.parametrize("command", [("sleep", "inf"), ()])
def test_other_commands_cannot_be_run_and_the_pod_says_so(
    scope: ReferenceScope, command: tuple[str, ...]
) -> None:
    scope.create(kit.pod("p", kit.container(command=command)))
    scope.pause(10)
    assert kit.phase(scope, "p") == "Pending"
    waiting = status_of(scope, "p")["state"]["waiting"]
    assert waiting["reason"] == "CreateContainerError"
    assert "only knows the probe commands" in waiting["message"]
    assert scope.observe.container("p", "ctr0") is None


def test_running_pod_has_the_status_of_one(scope: ReferenceScope) -> None:
    scope.create(kit.pod("p"))
    kit.runs(scope, "p")
    status = kit.get(scope, kit.pod_ref("p"))["status"]
    conditions = {item["type"]: item["status"] for item in status["conditions"]}
    assert conditions == dict.fromkeys(
        ("PodScheduled", "PodReadyToStartContainers", "Initialized", "ContainersReady", "Ready"),
        "True",
    )
    assert status_of(scope, "p")["state"] == {"running": {"startedAt": "2026-01-01T00:00:00Z"}}


@pytest.mark.parametrize("policy", ["Never", "OnFailure"])
def test_probe_that_ends_makes_the_pod_succeed(scope: ReferenceScope, policy: str) -> None:
    once = kit.container(command=probe.EXIT)
    scope.create(kit.pod("p", once, restartPolicy=policy))
    assert kit.phase(scope, "p") == "Running"
    kit.until(scope, lambda: kit.phase(scope, "p") == "Succeeded", 5)
    assert status_of(scope, "p")["state"]["terminated"]["exitCode"] == 0
    assert kit.seen(scope, "p") == []


def test_probe_that_ends_is_started_again_where_the_policy_says_so(scope: ReferenceScope) -> None:
    scope.create(kit.pod("p", kit.container(command=probe.EXIT)))
    kit.until(scope, lambda: status_of(scope, "p")["restartCount"] == 2)
    assert kit.phase(scope, "p") == "Running"


def test_init_containers_run_one_after_the_other_before_the_rest(scope: ReferenceScope) -> None:
    scope.create(kit.claim("c"))
    init = [kit.container(name, "g", command=probe.EXIT) for name in ("i0", "i1")]
    scope.create(kit.pod("p", claims={"g": "c"}, initContainers=init))
    assert scope.observe.container("p", "i1") is None
    assert kit.phase(scope, "p") == "Pending"
    scope.pause(1)
    assert scope.observe.container("p", "i1") is not None
    assert scope.observe.container("p", "ctr0") is None
    kit.runs(scope, "p")
    assert kit.seen(scope, "p", "i0") == kit.seen(scope, "p", "ctr0") == ["/dev/nvidia0"]


def test_deleted_pod_ends_before_its_claim_is_unprepared(scope: ReferenceScope) -> None:
    scope.create(kit.claim("c"))
    scope.create(kit.pod("p", claims={"g": "c"}))
    kit.runs(scope, "p")
    scope.delete(kit.pod_ref("p"))
    pod = kit.get(scope, kit.pod_ref("p"))
    assert pod["metadata"]["deletionGracePeriodSeconds"] == 30
    assert len(scope.observe.cdi_claims()) == 1
    kit.gone(scope, kit.pod_ref("p"))
    assert scope.observe.cdi_claims() == {}


def test_pod_deleted_by_force_is_cleaned_up_on_the_node(scope: ReferenceScope) -> None:
    scope.create(kit.claim("c"))
    scope.create(kit.pod("p", claims={"g": "c"}))
    kit.runs(scope, "p")
    scope.delete(kit.pod_ref("p"), grace_seconds=0)
    assert scope.get(kit.pod_ref("p")) is None
    scope.pause(0)
    assert scope.observe.cdi_claims() == {}


def test_pod_of_the_same_name_is_not_taken_for_the_old_one(scope: ReferenceScope) -> None:
    scope.create(kit.pod("p"))
    kit.runs(scope, "p")
    scope.delete(kit.pod_ref("p"))
    kit.gone(scope, kit.pod_ref("p"))
    assert scope.observe.container("p", "ctr0") is not None
    scope.create(kit.pod("p", claims={"g": "missing"}))
    assert scope.observe.container("p", "ctr0") is None


def test_failed_preparation_is_said_and_tried_again(
    scope: ReferenceScope, monkeypatch: pytest.MonkeyPatch
) -> None:
    prepare = NvmlDriver.prepare
    attempts: list[float] = []

    def failing(self: NvmlDriver, claim: Obj) -> Any:
        attempts.append(1)
        if len(attempts) < 3:
            raise PrepareError("no luck")
        return prepare(self, claim)

    monkeypatch.setattr(NvmlDriver, "prepare", failing)
    scope.create(kit.claim("c"))
    scope.create(kit.pod("p", claims={"g": "c"}))
    message = (
        "Failed to prepare dynamic resources: NodePrepareResources failed for ResourceClaim c: "
        "no luck"
    )
    assert status_of(scope, "p")["state"]["waiting"]["message"] == message
    kit.runs(scope, "p")
    assert len(attempts) == 3
    assert kit.events(scope, "FailedPrepareDynamicResources") == [message]


def test_failed_unpreparation_keeps_the_pod_and_is_tried_again(
    scope: ReferenceScope, monkeypatch: pytest.MonkeyPatch
) -> None:
    unprepare = NvmlDriver.unprepare
    failures = ["x", "y"]

    def failing(self: NvmlDriver, uid: str) -> None:
        if failures:
            raise PrepareError(failures.pop())
        unprepare(self, uid)

    monkeypatch.setattr(NvmlDriver, "unprepare", failing)
    scope.create(kit.claim("c"))
    scope.create(kit.pod("p", claims={"g": "c"}))
    kit.runs(scope, "p")
    scope.delete(kit.pod_ref("p"))
    scope.pause(1)
    assert scope.get(kit.pod_ref("p")) is not None
    kit.gone(scope, kit.pod_ref("p"))
    assert scope.observe.cdi_claims() == {}


def test_devices_of_a_driver_that_does_not_run_there_are_not_prepared(
    scope: ReferenceScope,
) -> None:
    published = kit.resource_slice("s", kit.NODE, "d.example.com", {"name": "d0"})
    scope.create(published)
    scope.create({**kit.device_class("other"), "spec": {}})
    selector = {"cel": {"expression": "device.driver == 'd.example.com'"}}
    scope.create(kit.claim("c", kit.request("r", "other", selectors=[selector])))
    scope.create(kit.pod("p", claims={"g": "c"}))
    scope.pause(30)
    assert kit.phase(scope, "p") == "Pending"
    [event] = kit.events(scope, "FailedPrepareDynamicResources")
    assert event.endswith("DRA driver d.example.com is not registered")


def test_each_node_has_devices_of_its_own(open_target: Open) -> None:
    target: ReferenceTarget = open_target(nodes=(ShapeNode(name="n0"), ShapeNode(name="n1")))
    scope = new_scope(target)
    scope.create(kit.device_class())
    scope.create(kit.template("all", kit.request(allocationMode="All")))
    for name in ("a", "b"):
        scope.create(kit.pod(name, templates={"g": "all"}))
    kit.runs(scope, "a", "b")
    nodes = [kit.get(scope, kit.pod_ref(name))["spec"]["nodeName"] for name in ("a", "b")]
    assert nodes == ["n0", "n1"]
    assert len(kit.seen(scope, "a")) == len(kit.seen(scope, "b")) == 4
    assert len(scope.observe.cdi_claims()) == 2
