"""What the reference's components count: as Kubernetes' do, and from 0 after a restart."""

from __future__ import annotations

from conformance.scenario.observation import CALLS, CLAIMS, CREATES, OPERATIONS, PREPARED, total
from conformance.scenario.observation import Component as Name
from conformance.targets.reference.scope import ReferenceScope
from conformance.targets.reference.target import ReferenceTarget
from conformance.targets.seam.values import Obj
from nvml_driver.errors import PrepareError
from tests.mutants.replacing import replace
from tests.targets.reference import kit

MANAGER: Name = "kube-controller-manager"


def read(scope: ReferenceScope, name: str, component: Name = "kubelet", **labels: str) -> float:
    found = scope.observe.samples(component, name, kit.NODE if component == "kubelet" else None)
    assert found is not None
    return total(found, labels)


def use(scope: ReferenceScope, pod: str, *claims: str) -> None:
    for claim in claims:
        scope.create(kit.claim(claim))
    entries = {f"c{number}": claim for number, claim in enumerate(claims)}
    scope.create(kit.pod(pod, kit.container("ctr0", *entries), claims=entries))


def test_a_driver_is_asked_once_for_all_claims_of_a_pod(scope: ReferenceScope) -> None:
    use(scope, "p", "a", "b")
    assert read(scope, CALLS, driver_name=kit.DRIVER, grpc_status_code="OK") == 1
    assert read(scope, OPERATIONS, is_error="false") == 1
    assert read(scope, PREPARED, driver_name=kit.DRIVER) == 2 == read(scope, CLAIMS, MANAGER)


def test_what_a_driver_refuses_is_an_error_of_the_operation_and_none_of_the_call(
    target: ReferenceTarget, scope: ReferenceScope
) -> None:
    def refuse(*_: object) -> None:
        raise PrepareError("no")

    [kubelet] = target.world.kubelets
    assert kubelet.driver is not None
    replace(kubelet.driver, "prepare", refuse)
    use(scope, "p", "a")
    assert (
        read(scope, OPERATIONS, is_error="false"),
        read(scope, OPERATIONS, is_error="true"),
    ) == (0, 1)
    assert read(scope, CALLS, grpc_status_code="OK") == 1


def test_who_is_stopped_tells_nothing_and_who_starts_counts_from_0(scope: ReferenceScope) -> None:
    use(scope, "p", "a")
    assert read(scope, OPERATIONS) == 1
    scope.faults.disturb("kubelet", "stop")
    assert scope.observe.samples("kubelet", OPERATIONS, kit.NODE) is None
    scope.faults.disturb("kubelet", "start")
    assert read(scope, OPERATIONS) == 0


def test_claims_made_for_pods_are_counted_with_admin_access(scope: ReferenceScope) -> None:
    scope.create(kit.template("own"))
    for name in ("p", "q"):
        scope.create(kit.pod(name, kit.container("ctr0", "c"), templates={"c": "own"}))
    assert read(scope, CREATES, MANAGER, status="success", admin_access="false") == 2
    assert read(scope, CREATES, "kube-scheduler") == 0
    scope.faults.disturb(MANAGER, "restart")
    assert read(scope, CREATES, MANAGER) == 0
    assert read(scope, CLAIMS, MANAGER, allocated="true", source="resource_claim_template") == 2


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
