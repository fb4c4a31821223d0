"""How faults of the API server and of controllers show.

Each function says whether the symptom of the fault of its name is there.
"""

from __future__ import annotations

from collections.abc import Callable

from conformance.targets.base import ApiError, Obj, Ref
from conformance.targets.reference.scope import ReferenceScope
from tests.mutants.faults import Fault
from tests.targets.reference import kit
from tests.targets.reference.situations import (
    NEVER,
    after_deletion,
    generated,
    goes_on_after,
    shared,
)


def accept_invalid_pod_claim(scope: ReferenceScope) -> bool:
    pod = kit.pod("p")
    pod["spec"]["resourceClaims"] = [{"name": "g"}]
    try:
        scope.create(pod)
    except ApiError:
        return False
    return True


def claims_outlive_pods(scope: ReferenceScope) -> bool:
    generated(scope)
    scope.delete(kit.pod_ref("a"))
    scope.pause(60)
    return len(kit.claims_of(scope)) == 2


def ignores_unknown_fields(scope: ReferenceScope) -> bool:
    claim = kit.claim("c")
    claim["spec"]["resourceClassName"] = "old"
    try:
        scope.create(claim)
    except ApiError:
        return False
    return "resourceClassName" not in kit.get(scope, kit.claim_ref("c"))["spec"]


def loses_capacity(scope: ReferenceScope) -> bool:
    device = {"name": "d", "capacity": {"memory": {"value": "1Gi"}}}
    made = kit.resource_slice("s", "n", "d.example.com", device)
    scope.create({**made, "apiVersion": "resource.k8s.io/v1beta2"})
    found = kit.get(scope, Ref(kit.DRA, "ResourceSlice", "s"))
    return "capacity" not in found["spec"]["devices"][0]


def misses_new_template(scope: ReferenceScope) -> bool:
    return not goes_on_after(scope, kit.pod("p", templates={"g": "t"}), kit.template("t"))


def never_release(scope: ReferenceScope) -> bool:
    return "allocation" in after_deletion(scope)["status"]


def no_owner_reference(scope: ReferenceScope) -> bool:
    return all("ownerReferences" not in claim["metadata"] for claim in generated(scope))


def no_pod_claim_annotation(scope: ReferenceScope) -> bool:
    return not any(claim["metadata"].get("annotations") for claim in generated(scope))


def no_request_defaults(scope: ReferenceScope) -> bool:
    scope.create(kit.claim("c"))
    [request] = kit.get(scope, kit.claim_ref("c"))["spec"]["devices"]["requests"]
    return "count" not in request["exactly"] and "allocationMode" not in request["exactly"]


def releases_too_early(scope: ReferenceScope) -> bool:
    shared(scope)
    scope.delete(kit.pod_ref("first"))
    scope.pause(60)
    return "allocation" not in kit.get(scope, kit.claim_ref("c"))["status"]


def returns_stored_form(scope: ReferenceScope) -> bool:
    scope.create(kit.claim("c"))
    found = kit.get(scope, Ref("resource.k8s.io/v1beta1", "ResourceClaim", "c"))
    return "exactly" in found["spec"]["devices"]["requests"][0]


def serves_retired_versions(scope: ReferenceScope) -> bool:
    old = {"apiVersion": "resource.k8s.io/v1alpha2", "metadata": {"name": "old"}}
    template = {"spec": {"resourceClassName": "c", "parametersRef": {"name": "p"}}}
    retired: list[Obj] = [
        {**old, "kind": "ResourceClass", "driverName": kit.DRIVER},
        {**old, "kind": "ResourceClaim", "spec": {"resourceClassName": "c"}},
        {**old, "kind": "ResourceClaimTemplate", "spec": template},
    ]
    try:
        for obj in retired:
            assert scope.create(obj)["kind"] == obj["kind"]
            assert scope.get(Ref.of(obj))
            scope.delete(Ref.of(obj))
            assert scope.get(Ref.of(obj)) is None
    except ApiError as error:
        assert error.code == 404  # noqa: PT017 - it is the answer that is being told apart
        return False
    return True


def shares_template_claim(scope: ReferenceScope) -> bool:
    return len(generated(scope)) == 1


def template_loses_selectors(scope: ReferenceScope) -> bool:
    scope.create(kit.template("t", kit.request(selectors=NEVER)))
    scope.create(kit.pod("p", templates={"g": "t"}))
    [claim] = kit.claims_of(scope)
    return "selectors" not in claim["spec"]["devices"]["requests"][0]["exactly"]


def wrong_version_conversion(scope: ReferenceScope) -> bool:
    flat = kit.claim("c", {"name": "r", "deviceClassName": kit.CLASS, "selectors": NEVER})
    flat["apiVersion"] = "resource.k8s.io/v1beta1"
    scope.create(flat)
    found = kit.get(scope, Ref(kit.DRA, "ResourceClaim", "c"))
    return "selectors" not in found["spec"]["devices"]["requests"][0]["exactly"]


SYMPTOMS: dict[Fault, Callable[[ReferenceScope], bool]] = {
    Fault.ACCEPT_INVALID_POD_CLAIM: accept_invalid_pod_claim,
    Fault.CLAIMS_OUTLIVE_PODS: claims_outlive_pods,
    Fault.IGNORES_UNKNOWN_FIELDS: ignores_unknown_fields,
    Fault.LOSES_CAPACITY: loses_capacity,
    Fault.MISSES_NEW_TEMPLATE: misses_new_template,
    Fault.NEVER_RELEASE: never_release,
    Fault.NO_OWNER_REFERENCE: no_owner_reference,
    Fault.NO_POD_CLAIM_ANNOTATION: no_pod_claim_annotation,
    Fault.NO_REQUEST_DEFAULTS: no_request_defaults,
    Fault.RELEASES_TOO_EARLY: releases_too_early,
    Fault.RETURNS_STORED_FORM: returns_stored_form,
    Fault.SERVES_RETIRED_VERSIONS: serves_retired_versions,
    Fault.SHARES_TEMPLATE_CLAIM: shares_template_claim,
    Fault.TEMPLATE_LOSES_SELECTORS: template_loses_selectors,
    Fault.WRONG_VERSION_CONVERSION: wrong_version_conversion,
}
