"""What the reference does while a component is stopped, and what it knows when that is started."""

from __future__ import annotations

import pytest

from conformance.targets.reference.scope import ReferenceScope
from conformance.targets.reference.target import ReferenceTarget
from kube.base.errors import TargetError
from kube.observations import OPERATIONS, sum_samples
from kube.values import Query
from tests.kubesim import kit

NODE = kit.NODE


def use(scope: ReferenceScope, pod: str, claim: str) -> None:
    scope.create(kit.pod(pod, kit.container("ctr0", "c"), claims={"c": claim}))


def slices(scope: ReferenceScope) -> list[str]:
    return [
        item["metadata"]["uid"] for item in scope.find(Query("resource.k8s.io/v1", "ResourceSlice"))
    ]


@pytest.mark.parametrize(
    "component", ["kube-scheduler", "kubelet", "driver", "containerd", f"{NODE}/node"]
)
def test_a_pod_does_not_run_before_the_component_is_started(
    scope: ReferenceScope, component: str
) -> None:
    scope.create(kit.claim("a"))
    scope.faults.disturb(component, "stop")
    use(scope, "p", "a")
    scope.pause(10)
    assert kit.phase(scope, "p") == "Pending"
    scope.faults.disturb(component, "start")
    kit.runs(scope, "p")


@pytest.mark.parametrize("component", ["etcd", "kube-apiserver"])
def test_without_an_api_server_nothing_is_answered(scope: ReferenceScope, component: str) -> None:
    scope.create(kit.claim("a"))
    scope.faults.disturb(component, "stop")
    with pytest.raises(TargetError, match="does not answer"):
        use(scope, "p", "a")
    scope.faults.disturb(component, "start")
    use(scope, "p", "a")
    kit.runs(scope, "p")


def test_after_a_reboot_containers_start_again_with_their_devices(
    target: ReferenceTarget, scope: ReferenceScope
) -> None:
    scope.create(kit.claim("a"))
    pod = kit.pod("p", kit.container("ctr0", "c"), claims={"c": "a"})
    pod["spec"]["restartPolicy"] = "Always"
    scope.create(pod)
    kit.runs(scope, "p")
    seen, specs = scope.observe.container("p", "ctr0"), dict(scope.observe.cdi_claims())
    scope.faults.disturb("node", "stop")
    assert not scope.observe.cdi_claims()
    scope.pause(60)
    node = target.world.cluster.store.get("Node", "", NODE)
    assert node is not None
    assert node["status"]["conditions"][0]["status"] == "Unknown"
    assert {taint["effect"] for taint in node["spec"]["taints"]} == {"NoSchedule", "NoExecute"}
    scope.faults.disturb("node", "start")
    scope.pause(60)
    found = scope.get(kit.pod_ref("p"))
    assert found is not None
    [container] = found["status"]["containerStatuses"]
    assert container["restartCount"] == 1
    assert "running" in container["state"]
    assert scope.observe.container("p", "ctr0") == seen
    assert dict(scope.observe.cdi_claims()) == specs
    assert not (target.world.cluster.store.get("Node", "", NODE) or {})["spec"].get("taints")


TWICE = ("start", "stop", "stop", "kill", "start", "start", "restart")


@pytest.mark.parametrize(
    "done",
    [[("kubelet", action) for action in TWICE], [("driver", "startNext"), ("node", "restart")]],
    ids=["what is done twice is done once", "a node loses both instances"],
)
def test_afterwards_pods_run(
    target: ReferenceTarget, scope: ReferenceScope, done: list[tuple[str, str]]
) -> None:
    for component, action in done:
        scope.faults.disturb(component, action)
    assert not target.world.components.next_drivers
    scope.create(kit.claim("a"))
    use(scope, "p", "a")
    kit.runs(scope, "p")


def test_a_component_that_is_not_there_is_refused(scope: ReferenceScope) -> None:
    with pytest.raises(TargetError, match="no cloud to stop; it has: etcd, kube-apiserver"):
        scope.faults.disturb("cloud", "stop")


def test_either_instance_of_a_driver_serves_when_the_other_ends(
    target: ReferenceTarget, scope: ReferenceScope
) -> None:
    before = slices(scope)
    scope.create(kit.claim("a"))
    scope.faults.disturb("driver", "startNext")
    scope.faults.disturb("driver", "kill")
    use(scope, "p", "a")
    kit.runs(scope, "p")
    scope.faults.disturb("driver", "start")
    assert not target.world.components.next_drivers
    scope.faults.disturb("driver", "startNext")
    scope.faults.disturb("driver", "killNext")
    use(scope, "q", "a")
    kit.runs(scope, "q")
    scope.pause(60)
    assert slices(scope) == before


def test_without_any_instance_nothing_is_served(scope: ReferenceScope) -> None:
    scope.create(kit.claim("a"))
    scope.faults.disturb("driver", "startNext")
    scope.faults.disturb("driver", "stop")
    scope.faults.disturb("driver", "killNext")
    use(scope, "p", "a")
    scope.pause(40)
    assert kit.phase(scope, "p") == "Pending"
    assert not slices(scope)
    scope.faults.disturb("driver", "startNext")
    kit.runs(scope, "p")
    assert slices(scope)


def test_an_instance_that_never_registers_serves_and_replaces_nothing(
    target: ReferenceTarget, scope: ReferenceScope
) -> None:
    scope.create(kit.claim("a"))
    scope.faults.disturb("driver", "startUnregistered")
    with pytest.raises(TargetError, match=f"{NODE}/driver: what runs beside it never registers"):
        scope.faults.disturb("driver", "replace")
    scope.faults.disturb("driver", "stop")
    use(scope, "p", "a")
    scope.pause(10)
    assert kit.phase(scope, "p") == "Pending"
    scope.faults.disturb("driver", "start")
    kit.runs(scope, "p")
    assert not target.world.components.next_drivers


def test_a_kubelet_that_is_stopped_tells_and_lists_nothing_and_one_that_starts_counts_from_0(
    scope: ReferenceScope,
) -> None:
    def told() -> tuple[float | None, list[str] | None]:
        found = scope.observe.samples("kubelet", OPERATIONS, NODE)
        listed = scope.observe.pod_resources("p", "ctr0")
        return (
            None if found is None else sum_samples(found, {}),
            None if listed is None else [claim.name for claim in listed],
        )

    scope.create(kit.claim("a"))
    use(scope, "p", "a")
    assert told() == (1, ["a"])
    scope.faults.disturb("kubelet", "stop")
    assert told() == (None, None)
    scope.faults.disturb("kubelet", "start")
    assert told() == (0, ["a"])
    assert scope.observe.pod_resources("q", "ctr0") is None
