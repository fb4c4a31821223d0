"""What the reference's kubelet lists for containers, as a real one does."""

from __future__ import annotations

from conformance.targets.reference.scope import ReferenceScope
from conformance.targets.seam.values import Obj
from tests.targets.reference import kit


def named(scope: ReferenceScope, container: str, pod: str = "p") -> list[str] | None:
    found = scope.observe.pod_resources(pod, container)
    return None if found is None else [claim.name for claim in found]


def sidecar(name: str, *claims: str) -> Obj:
    return kit.container(name, *claims, restartPolicy="Always")


def test_a_claim_is_listed_as_a_whole_for_each_container_that_names_it(
    scope: ReferenceScope,
) -> None:
    scope.create(kit.claim("a", kit.request("x"), kit.request("y")))
    part = kit.container("part", {"name": "a", "request": "x"})
    scope.create(kit.pod("p", part, kit.container("bare"), claims={"a": "a"}))
    found = scope.observe.pod_resources("p", "part")
    assert found is not None
    [claim] = found
    assert (claim.namespace, claim.name) == ("ns", "a")
    assert len({(one.driver, one.pool, one.device) for one in claim.devices}) == 2
    assert {one.driver for one in claim.devices} == {kit.DRIVER}
    assert all(one.cdi for one in claim.devices)
    assert named(scope, "bare") == []


def test_sidecars_are_listed_and_other_init_containers_are_not(scope: ReferenceScope) -> None:
    scope.create(kit.claim("a"))
    first = kit.container("first", "a", command=("true",))
    scope.create(
        kit.pod(
            "p", kit.container("ctr0"), claims={"a": "a"}, initContainers=[first, sidecar("s", "a")]
        )
    )
    assert named(scope, "s") == ["a"]
    assert named(scope, "first") is None


def test_nothing_is_listed_while_the_kubelet_is_stopped(scope: ReferenceScope) -> None:
    scope.create(kit.claim("a"))
    scope.create(kit.pod("p", kit.container("ctr0", "a"), claims={"a": "a"}))
    scope.faults.disturb("kubelet", "stop")
    assert named(scope, "ctr0") is None
    scope.faults.disturb("kubelet", "start")
    assert named(scope, "ctr0") == ["a"]
    assert named(scope, "ctr0", "q") is None
