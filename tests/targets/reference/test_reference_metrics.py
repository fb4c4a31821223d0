"""What the reference's components count: as Kubernetes' do, and from 0 after a restart."""

from __future__ import annotations

from conformance.scenario.observation import CALLS, CLAIMS, CREATES, OPERATIONS, PREPARED, total
from conformance.scenario.observation import Component as Name
from conformance.targets.reference.scope import ReferenceScope
from conformance.targets.reference.target import ReferenceTarget
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
