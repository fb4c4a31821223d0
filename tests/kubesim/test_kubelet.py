from __future__ import annotations

import pytest

from conformance import probe
from conformance.targets.reference.nvml import NvmlDriver
from conformance.targets.reference.scope import ReferenceScope
from kube.values import Obj
from kubesim.nodes.driver import DriverError
from tests.kubesim import kit


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


def test_failed_unpreparation_keeps_the_pod_and_is_tried_again(
    scope: ReferenceScope, monkeypatch: pytest.MonkeyPatch
) -> None:
    unprepare = NvmlDriver.unprepare
    failures = ["x", "y"]

    def failing(self: NvmlDriver, uid: str) -> None:
        if failures:
            raise DriverError(failures.pop())
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
