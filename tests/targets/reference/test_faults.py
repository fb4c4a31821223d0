"""Each fault can be seen from outside, and only with the fault."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from conformance.targets.base import ApiError, Obj, Ref
from conformance.targets.reference import Fault
from conformance.targets.reference.faults import parse
from conformance.targets.reference.scope import ReferenceScope
from tests.targets.reference import kit

CONFIG = [
    {
        "opaque": {
            "driver": kit.DRIVER,
            "parameters": {
                "apiVersion": "resource.nvidia.com/v1beta1",
                "kind": "GpuConfig",
                "sharing": {"strategy": "TimeSlicing"},
            },
        }
    }
]
NEVER = [{"cel": {"expression": "false"}}]


def accept_invalid_pod_claim(scope: ReferenceScope) -> bool:
    pod = kit.pod("p")
    pod["spec"]["resourceClaims"] = [{"name": "g"}]
    try:
        scope.create(pod)
    except ApiError:
        return False
    return True


def run(scope: ReferenceScope, claim: Obj, seconds: float = 10) -> Obj:
    """A pod with one claim, after some time; returns the claim."""
    scope.create(claim)
    name = claim["metadata"]["name"]
    scope.create(kit.pod(name, claims={"g": name}))
    scope.pause(seconds)
    return kit.get(scope, kit.claim_ref(name))


def all_takes_one(scope: ReferenceScope) -> bool:
    return len(kit.devices(run(scope, kit.claim("c", kit.request(allocationMode="All"))))) == 1


def double_allocation(scope: ReferenceScope) -> bool:
    return kit.devices(run(scope, kit.claim("a"))) == kit.devices(run(scope, kit.claim("b")))


def forgets_reservation(scope: ReferenceScope) -> bool:
    claim = run(scope, kit.claim("c"))
    return "allocation" in claim["status"] and "reservedFor" not in claim["status"]


def ignore_match_attribute(scope: ReferenceScope) -> bool:
    constraints = [{"matchAttribute": f"{kit.DRIVER}/uuid"}]
    return bool(
        kit.devices(run(scope, kit.claim("c", kit.request(count=2), constraints=constraints)))
    )


def ignore_selectors(scope: ReferenceScope) -> bool:
    return bool(kit.devices(run(scope, kit.claim("c", kit.request(selectors=NEVER)))))


def ignores_count(scope: ReferenceScope) -> bool:
    return len(kit.devices(run(scope, kit.claim("c", kit.request(count=3))))) == 1


def after_deletion(scope: ReferenceScope) -> Obj:
    run(scope, kit.claim("c"))
    scope.delete(kit.pod_ref("c"))
    scope.pause(60)
    return kit.get(scope, kit.claim_ref("c"))


def leak_cdi(scope: ReferenceScope) -> bool:
    after_deletion(scope)
    return bool(scope.cdi_claims())


def never_release(scope: ReferenceScope) -> bool:
    return "allocation" in after_deletion(scope)["status"]


def loses_config(scope: ReferenceScope) -> bool:
    run(scope, kit.claim("c", config=CONFIG))
    view = scope.observe("c", "ctr0")
    assert view is not None
    return not any(name.endswith("SHARING_STRATEGY") for name in view.environment)


def no_finalizer(scope: ReferenceScope) -> bool:
    return "finalizers" not in run(scope, kit.claim("c"))["metadata"]


def generated(scope: ReferenceScope) -> list[Obj]:
    scope.create(kit.template("t"))
    for name in ("a", "b"):
        scope.create(kit.pod(name, templates={"g": "t"}))
    scope.pause(10)
    assert kit.phase(scope, "a") == "Running"
    return kit.claims_of(scope)


def no_owner_reference(scope: ReferenceScope) -> bool:
    return all("ownerReferences" not in claim["metadata"] for claim in generated(scope))


def no_pod_claim_annotation(scope: ReferenceScope) -> bool:
    return not any(claim["metadata"].get("annotations") for claim in generated(scope))


def shares_template_claim(scope: ReferenceScope) -> bool:
    return len(generated(scope)) == 1


def other_namespace(scope: ReferenceScope) -> bool:
    scope.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "other"}})
    claim = kit.claim("c")
    claim["metadata"]["namespace"] = "other"
    scope.create(claim)
    scope.create(kit.pod("p", claims={"g": "c"}))
    scope.pause(10)
    return scope.observe("p", "ctr0") is not None and bool(kit.seen(scope, "p"))


def request_filter_ignored(scope: ReferenceScope) -> bool:
    scope.create(kit.claim("c", kit.request("one"), kit.request("two")))
    container = kit.container("ctr0", {"name": "g", "request": "one"})
    scope.create(kit.pod("p", container, claims={"g": "c"}))
    kit.runs(scope, "p")
    return len(kit.seen(scope, "p")) == 2


def sees_all_claims(scope: ReferenceScope) -> bool:
    scope.create(kit.claim("c"))
    scope.create(kit.pod("p", kit.container(), claims={"g": "c"}))
    kit.runs(scope, "p")
    return bool(kit.seen(scope, "p"))


def wrong_device_in_container(scope: ReferenceScope) -> bool:
    [device] = kit.devices(run(scope, kit.claim("c")))
    return kit.seen(scope, "c") != [f"/dev/nvidia{device.removeprefix('gpu-')}"]


def wrong_version_conversion(scope: ReferenceScope) -> bool:
    flat = kit.claim("c", {"name": "r", "deviceClassName": kit.CLASS, "selectors": NEVER})
    flat["apiVersion"] = "resource.k8s.io/v1beta1"
    scope.create(flat)
    found = kit.get(scope, Ref(kit.DRA, "ResourceClaim", "c"))
    return "selectors" not in found["spec"]["devices"]["requests"][0]["exactly"]


SYMPTOMS: dict[Fault, Callable[[ReferenceScope], bool]] = {
    Fault.ACCEPT_INVALID_POD_CLAIM: accept_invalid_pod_claim,
    Fault.ALL_TAKES_ONE: all_takes_one,
    Fault.DOUBLE_ALLOCATION: double_allocation,
    Fault.FORGETS_RESERVATION: forgets_reservation,
    Fault.IGNORE_MATCH_ATTRIBUTE: ignore_match_attribute,
    Fault.IGNORE_SELECTORS: ignore_selectors,
    Fault.IGNORES_COUNT: ignores_count,
    Fault.LEAK_CDI: leak_cdi,
    Fault.LOSES_CONFIG: loses_config,
    Fault.NEVER_RELEASE: never_release,
    Fault.NO_FINALIZER: no_finalizer,
    Fault.NO_OWNER_REFERENCE: no_owner_reference,
    Fault.NO_POD_CLAIM_ANNOTATION: no_pod_claim_annotation,
    Fault.OTHER_NAMESPACE: other_namespace,
    Fault.REQUEST_FILTER_IGNORED: request_filter_ignored,
    Fault.SEES_ALL_CLAIMS: sees_all_claims,
    Fault.SHARES_TEMPLATE_CLAIM: shares_template_claim,
    Fault.WRONG_DEVICE_IN_CONTAINER: wrong_device_in_container,
    Fault.WRONG_VERSION_CONVERSION: wrong_version_conversion,
}


def test_every_fault_has_a_symptom() -> None:
    assert set(SYMPTOMS) == set(Fault)


@pytest.mark.parametrize("fault", Fault, ids=lambda fault: fault.title)
def test_fault_shows(faulty: Callable[[Fault], ReferenceScope], fault: Fault) -> None:
    assert SYMPTOMS[fault](faulty(fault))


@pytest.mark.parametrize("fault", Fault, ids=lambda fault: fault.title)
def test_reference_without_the_fault_does_not_show_it(scope: ReferenceScope, fault: Fault) -> None:
    assert not SYMPTOMS[fault](scope)


@pytest.mark.parametrize("fault", Fault, ids=lambda fault: fault.title)
def test_cleanup_works_in_spite_of_the_fault(
    faulty: Callable[[Fault], ReferenceScope], fault: Fault
) -> None:
    scope = faulty(fault)
    scope.create(kit.claim("c"))
    scope.create(kit.template("t"))
    scope.create(kit.pod("p", claims={"g": "c"}))
    scope.create(kit.pod("q", templates={"g": "t"}))
    old = kit.resource_slice("s", "n", "d.example.com", {"name": "d0", "basic": {}})
    scope.create({**old, "apiVersion": "resource.k8s.io/v1beta1"})
    scope.pause(10)
    namespace = Ref("v1", "Namespace", "ns")
    scope.delete(namespace)
    kit.gone(scope, namespace)


def test_faults_are_found_by_their_titles() -> None:
    assert parse(["double-allocation", "leak-cdi"]) == {Fault.DOUBLE_ALLOCATION, Fault.LEAK_CDI}
    with pytest.raises(ValueError, match="unknown fault 'nope'; known are accept-invalid-pod"):
        parse(["nope"])
