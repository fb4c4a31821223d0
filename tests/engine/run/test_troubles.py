"""A pod that does not start: the failure says why, and a refused preparation is not waited for."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from conformance.engine.run.awaiting import await_expectation
from conformance.engine.run.ending import Divergence
from conformance.engine.run.refusals import ANNOTATION, CERTAIN_SECONDS, CERTAIN_TIMES
from conformance.targets.reference import ReferenceTarget
from conformance.targets.reference.nvml import NvmlDriver
from conformance.targets.reference.scope import ReferenceScope
from kube.errors import ApiError
from kube.values import Obj, Query
from kubesim.nodes import kubelet
from kubesim.nodes.dra_manager import DRAManager, NotPreparedError
from kubesim.nodes.driver import DriverError
from tests.engine.miniature import attempt_in, scenario
from tests.kubesim import kit
from tests.kubesim.conftest import new_scope

RUNNING = {"pod": "p", "phase": "Running"}
REFUSED = "NodePrepareResources failed for ResourceClaim"


@pytest.fixture
def target() -> Iterator[ReferenceTarget]:
    target = ReferenceTarget()
    yield target
    target.close()


@pytest.fixture
def scope(target: ReferenceTarget) -> ReferenceScope:
    scope = new_scope(target)
    scope.create(kit.device_class())
    return scope


def make(scope: ReferenceScope) -> None:
    """A pod with a claim."""
    scope.create(kit.claim("c"))
    scope.create(kit.pod("p", claims={"g": "c"}))


def wait_for(target: ReferenceTarget, scope: ReferenceScope, expectation: Obj) -> str:
    """What is said when it does not come to hold."""
    loaded = scenario({"expect": [expectation]})
    [step] = loaded.scenario.spec.steps
    attempt = attempt_in(scope, loaded, target)
    with pytest.raises(Divergence) as caught:
        await_expectation((step.expect or ())[0], attempt)
    return str(caught.value)


def refuse(
    monkeypatch: pytest.MonkeyPatch, say: Callable[[int], str], times: int = 1000
) -> list[str]:
    """Have the driver refuse so; what it has said."""
    said: list[str] = []
    prepare = NvmlDriver.prepare

    def failing(self: NvmlDriver, claim: Obj) -> Any:
        if len(said) == times:
            return prepare(self, claim)
        said.append(say(len(said)))
        raise DriverError(said[-1])

    monkeypatch.setattr(NvmlDriver, "prepare", failing)
    return said


def test_a_pod_whose_claim_the_driver_goes_on_to_refuse_is_given_up(
    target: ReferenceTarget, scope: ReferenceScope, monkeypatch: pytest.MonkeyPatch
) -> None:
    said = refuse(monkeypatch, lambda _: "no luck")
    make(scope)
    start = target.now()
    message = wait_for(target, scope, RUNNING)
    assert len(said) == CERTAIN_TIMES
    assert 25 <= target.now() - start < 100
    assert "expected pod p in phase Running within 180 s; found pod p: phase Pending" in message
    assert f"{REFUSED} c: no luck" in message
    assert "that is the driver's answer" in message


def test_a_kubelet_that_asks_often_is_believed_no_sooner(
    target: ReferenceTarget, scope: ReferenceScope, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kubelet, "_MAX_RETRY_SECONDS", 1.0)
    said = refuse(monkeypatch, lambda _: "no luck")
    make(scope)
    start = target.now()
    assert "that is the driver's answer" in wait_for(target, scope, RUNNING)
    assert len(said) > CERTAIN_TIMES
    assert target.now() - start == CERTAIN_SECONDS


def test_a_job_whose_pods_claim_is_refused_is_given_up(
    target: ReferenceTarget, scope: ReferenceScope, monkeypatch: pytest.MonkeyPatch
) -> None:
    refuse(monkeypatch, lambda _: "no luck")
    scope.create(kit.claim("c"))
    pod = kit.pod("p", claims={"g": "c"})
    pod["metadata"]["labels"] = {"batch.kubernetes.io/job-name": "j"}
    scope.create(pod)
    devices = {"pods": {"job": "j"}, "containers": ["ctr0"], "count": 1}
    assert "that is the driver's answer" in wait_for(target, scope, {"devices": devices})


def test_a_driver_that_stays_unregistered_is_given_up(
    target: ReferenceTarget, scope: ReferenceScope, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A kubelet waits 30 s for one that went away, so no less is waited here."""

    def away(_manager: DRAManager, _name: str) -> None:
        raise NotPreparedError("DRA driver d.example.com is not registered")

    monkeypatch.setattr(DRAManager, "_find_registered_driver", away)
    make(scope)
    start = target.now()
    message = wait_for(target, scope, RUNNING)
    assert 30 <= target.now() - start < 180
    assert "has no driver of that name: its log" in message
    assert "whether d.example.com registers there" in message


@pytest.mark.parametrize(
    "said", ["skipped 1 ResourceClaims", "returned result for unknown claim UID u"]
)
def test_an_answer_that_is_none_is_the_drivers_too(
    target: ReferenceTarget, scope: ReferenceScope, monkeypatch: pytest.MonkeyPatch, said: str
) -> None:
    def answer(_manager: DRAManager, _driver: object, _claim: Obj) -> None:
        raise NotPreparedError(f"NodePrepareResources {said}")

    monkeypatch.setattr(DRAManager, "_prepare", answer)
    make(scope)
    assert "that is the driver's answer" in wait_for(target, scope, RUNNING)


def test_a_driver_that_says_something_new_each_time_is_waited_for(
    target: ReferenceTarget, scope: ReferenceScope, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It may be getting on: NVIDIA's driver for compute domains refuses until they are there."""
    refuse(monkeypatch, lambda number: f"{number} of 9 nodes")
    make(scope)
    start = target.now()
    message = wait_for(target, scope, RUNNING)
    assert target.now() - start == 180
    assert "that is the driver's answer" not in message
    assert "1 of 9 nodes" in message


def test_a_refusal_of_another_pod_ends_no_wait(
    target: ReferenceTarget, scope: ReferenceScope, monkeypatch: pytest.MonkeyPatch
) -> None:
    refuse(monkeypatch, lambda _: "no luck")
    scope.create(kit.claim("c"))
    scope.create(kit.pod("other", claims={"g": "c"}))
    start = target.now()
    message = wait_for(target, scope, RUNNING)
    assert target.now() - start == 180
    assert "no pod p; pod other: FailedPrepareDynamicResources" in message
    assert ANNOTATION not in kit.get(scope, kit.pod_ref("other"))["metadata"].get("annotations", {})


def test_a_pod_that_no_node_has_a_device_for_is_explained_once(
    target: ReferenceTarget, scope: ReferenceScope
) -> None:
    scope.create(kit.claim("c", kit.request(count=30)))
    scope.create(kit.pod("p", claims={"g": "c"}))
    message = wait_for(target, scope, {**RUNNING, "eventually": "20s"})
    assert message.count("cannot allocate all claims") == 1


def test_who_may_not_read_events_is_told_what_the_pod_says(
    target: ReferenceTarget, scope: ReferenceScope, monkeypatch: pytest.MonkeyPatch
) -> None:
    find = ReferenceScope.find

    def forbidden(self: ReferenceScope, query: Query) -> Any:
        if query.kind == "Event":
            raise ApiError(403, "Forbidden", "no")
        return find(self, query)

    monkeypatch.setattr(ReferenceScope, "find", forbidden)
    refuse(monkeypatch, lambda _: "no luck")
    make(scope)
    # No kubelet says more in a pod's status.
    assert wait_for(target, scope, {**RUNNING, "eventually": "20s"}).endswith(
        "phase Pending (ctr0 waiting: ContainerCreating)"
    )
