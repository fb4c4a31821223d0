"""The reference refuses what a real API server refuses, in the same words."""

from __future__ import annotations

from typing import Any

import pytest

from conformance.targets.reference.scope import ReferenceScope
from conformance.targets.reference.target import ReferenceTarget
from kube.errors import ApiError
from kube.values import Ref, Request
from tests.kubesim import kit
from tests.kubesim.conftest import Open, new_scope
from tests.kubesim.record import CASES, NAMESPACE


def refused(scope: ReferenceScope, obj: dict[str, Any]) -> dict[str, Any]:
    with pytest.raises(ApiError) as caught:
        scope.create(obj)
    error = caught.value
    causes = [{"reason": c.reason, "message": c.message, "field": c.field} for c in error.causes]
    return {"code": error.code, "reason": error.reason, "message": error.message, "causes": causes}


@pytest.mark.parametrize("case", CASES)
def test_is_refused_as_kubernetes_1_37_refuses_it(target: ReferenceTarget, case: str) -> None:
    scope = new_scope(target, NAMESPACE)
    assert refused(scope, CASES[case]["request"]) == CASES[case]["answer"]


def test_second_object_of_a_name_is_refused(scope: ReferenceScope) -> None:
    scope.create(kit.claim("c"))
    answer = refused(scope, kit.claim("c"))
    assert (answer["code"], answer["reason"]) == (409, "AlreadyExists")
    assert answer["message"] == 'resourceclaims.resource.k8s.io "c" already exists'


def test_nothing_is_created_in_a_namespace_that_is_being_deleted(scope: ReferenceScope) -> None:
    scope.create(kit.pod("p"))
    scope.delete(Ref("v1", "Namespace", "ns"))
    answer = refused(scope, kit.claim("c"))
    assert answer["code"] == 403
    assert answer["causes"][0]["reason"] == "NamespaceTerminating"


def test_cluster_scoped_object_loses_a_namespace(scope: ReferenceScope) -> None:
    obj = kit.device_class("other")
    obj["metadata"]["namespace"] = "ns"
    assert "namespace" not in scope.create(obj)["metadata"]


@pytest.mark.parametrize(
    ("name", "version", "code", "text"),
    [
        ("c", "1", 409, "the object has been modified"),
        ("d", "", 404, 'resourceclaims.resource.k8s.io "d" not found'),
    ],
)
def test_a_patch_of_what_has_changed_or_is_not_there_is_refused(
    scope: ReferenceScope, name: str, version: str, code: int, text: str
) -> None:
    scope.create(kit.claim("c"))
    meta = {"labels": {"a": "b"}} | ({"resourceVersion": version} if version else {})
    with pytest.raises(ApiError, match=text) as caught:
        scope.patch(kit.claim_ref(name), {"metadata": meta})
    assert caught.value.code == code


def test_toleration_may_have_the_effect_none(scope: ReferenceScope) -> None:
    """Whatever the API's documentation says: ``validDeviceTaintEffects`` has it since 1.35."""
    tolerations = [{"key": "a", "operator": "Exists", "effect": "None"}]
    assert scope.create(kit.claim("c", kit.request(tolerations=tolerations)))
    tolerations[0]["effect"] = "Never"
    answer = refused(scope, kit.claim("d", kit.request(tolerations=tolerations)))
    assert '"NoExecute", "NoSchedule", "None"' in answer["message"]


def test_annotations_of_a_template_have_the_form_of_annotations(scope: ReferenceScope) -> None:
    template = kit.template("t")
    template["spec"]["metadata"] = {"annotations": {"Example.com/Note": "any text", "a b": ""}}
    answer = refused(scope, template)
    assert [cause["field"] for cause in answer["causes"]] == ["spec.metadata.annotations"]


@pytest.mark.parametrize(
    ("found", "field"),
    [
        ({"bindingConditions": ["a"]}, "bindingFailureConditions"),
        (
            {"bindingConditions": ["a", "a"], "bindingFailureConditions": ["b"]},
            "bindingConditions[1]",
        ),
        ({"skipNodeOperations": ["NodePrepareResources"]}, "skipNodeOperations"),
    ],
)
def test_what_an_allocation_copies_of_a_device_has_its_form(
    open_target: Open, found: dict[str, Any], field: str
) -> None:
    scope = new_scope(open_target(feature_gates={"DRAOptionalNodeOperations": True}))
    scope.create(kit.claim("c"))
    result = {"request": "gpu", "driver": kit.DRIVER, "pool": "p", "device": "d", **found}
    allocation = {"devices": {"results": [result]}}
    patch = Request("patch", kit.claim_ref("c"), {"status": {"allocation": allocation}}, "status")
    with pytest.raises(ApiError) as caught:
        scope.send(patch)
    (cause,) = caught.value.causes
    assert cause.field == f"status.allocation.devices.results[0].{field}"


def test_claim_is_not_made_of_a_template_that_is_no_longer_allowed(scope: ReferenceScope) -> None:
    """Admin access, after the label of the namespace was taken away."""
    namespace = Ref("v1", "Namespace", "ns")

    def label(value: str | None) -> None:
        labels = {"resource.kubernetes.io/admin-access": value}
        scope.patch(namespace, {"metadata": {"labels": labels}})

    label("true")
    scope.create(kit.template("t", kit.request(adminAccess=True)))
    label(None)
    scope.create(kit.pod("p", templates={"gpu": "t"}))
    assert kit.claims_of(scope) == []
    assert "admin access to devices requires" in kit.events(scope, "FailedResourceClaimCreation")[0]
    label("true")
    kit.runs(scope, "p")
