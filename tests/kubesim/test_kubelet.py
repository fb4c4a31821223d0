from __future__ import annotations

import pytest

from conformance import probe
from conformance.targets.reference.nvml import NvmlDriver
from conformance.targets.reference.scope import ReferenceScope
from kube.values import Obj, Query
from kubesim.nodes.driver import DriverError
from tests.kubesim import kit
from tests.kubesim.conftest import Open, new_scope


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


def told(scope: ReferenceScope, pod: str) -> dict[str, tuple[str, str, str]]:
    """What a pod's conditions say: type -> status, reason and message."""
    return {
        item["type"]: (item["status"], item.get("reason", ""), item.get("message", ""))
        for item in kit.get(scope, kit.pod_ref(pod))["status"]["conditions"]
    }


@pytest.mark.parametrize(
    ("version", "sandbox"),
    [
        ("1.37.1", ("False", "PodSandboxNotReady", "no pod sandbox exists")),
        ("1.34.0", ("False", "", "")),
    ],
)
def test_pod_that_waits_for_its_claim_says_what_is_missing_and_in_the_end_that_nothing_ran(
    open_target: Open, version: str, sandbox: tuple[str, str, str]
) -> None:
    scope = new_scope(open_target(kubernetes_version=version))
    waiting = kit.pod("p", kit.container("a"), kit.container("b"), claims={"g": "nope"})
    waiting["spec"]["nodeName"] = kit.NODE
    begins = kit.pod("q", initContainers=[kit.container("first", command=probe.EXIT)])
    scope.create(waiting)
    scope.create(begins)
    unready = ("False", "ContainersNotReady", "containers with unready status: [a b]")
    assert told(scope, "p") == {
        "PodReadyToStartContainers": sandbox,
        "Initialized": ("True", "", ""),
        "ContainersReady": unready,
        "Ready": unready,
        "PodScheduled": ("True", "", ""),
    }
    text = "containers with incomplete status: [first]"
    assert told(scope, "q")["Initialized"] == ("False", "ContainersNotInitialized", text)
    assert status_of(scope, "q")["state"] == {"waiting": {"reason": "PodInitializing"}}
    states = scope.watch(Query("v1", "Pod"))
    scope.delete(kit.pod_ref("p"), grace_seconds=1)
    kit.gone(scope, kit.pod_ref("p"))
    last = [pod for _, pod in states.events() if pod["metadata"]["name"] == "p"][-1]["status"]
    assert last["phase"] == "Failed"
    ended = [item["state"]["terminated"]["reason"] for item in last["containerStatuses"]]
    assert ended == ["ContainerStatusUnknown", "ContainerStatusUnknown"]


def test_pod_that_runs_for_too_long_says_so(scope: ReferenceScope) -> None:
    scope.create(kit.pod("p", activeDeadlineSeconds=5))
    scope.pause(10)
    status = kit.get(scope, kit.pod_ref("p"))["status"]
    text = "Pod was active on the node longer than the specified deadline"
    assert (status["phase"], status["reason"], status["message"]) == (
        "Failed",
        "DeadlineExceeded",
        text,
    )
    assert kit.events(scope, "DeadlineExceeded") == [text]


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
