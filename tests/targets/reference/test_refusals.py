"""The reference refuses what a real API server refuses, in the same words."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from conformance.targets.reference.scope import ReferenceScope
from conformance.targets.reference.target import ReferenceTarget
from conformance.targets.seam.values import ApiError, Ref
from tests.targets.reference import kit
from tests.targets.reference.conftest import new_scope
from tests.targets.reference.refusals import CASES, NAMESPACE

RECORDED: dict[str, Any] = json.loads(
    Path(__file__).with_name("refusals.json").read_text(encoding="utf-8")
)


def refused(scope: ReferenceScope, obj: dict[str, Any]) -> dict[str, Any]:
    with pytest.raises(ApiError) as caught:
        scope.create(obj)
    error = caught.value
    causes = [{"reason": c.reason, "message": c.message, "field": c.field} for c in error.causes]
    return {"code": error.code, "reason": error.reason, "message": error.message, "causes": causes}


@pytest.mark.parametrize("case", CASES)
def test_is_refused_as_kubernetes_1_37_refuses_it(target: ReferenceTarget, case: str) -> None:
    scope = new_scope(target, NAMESPACE)
    assert refused(scope, CASES[case]) == RECORDED[case]


def test_every_case_is_recorded_as_a_refusal() -> None:
    assert set(RECORDED) == set(CASES)
    assert all(answer["code"] >= 400 for answer in RECORDED.values())


def test_second_object_of_a_name_is_refused(scope: ReferenceScope) -> None:
    scope.create(kit.claim("c"))
    answer = refused(scope, kit.claim("c"))
    assert answer["code"] == 409
    assert answer["reason"] == "AlreadyExists"
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
    ("ref", "patch", "subresource", "message"),
    [
        pytest.param(
            kit.claim_ref("c"),
            {"spec": {"devices": {"requests": []}}},
            None,
            'ResourceClaim.resource.k8s.io "c" is invalid: spec: Invalid value: null: field is '
            "immutable",
            id="spec of a claim",
        ),
        pytest.param(
            kit.claim_ref("c"),
            {"status": {"reservedFor": [{"resource": "pods", "name": "p", "uid": "u"}]}},
            "status",
            'ResourceClaim.resource.k8s.io "c" is invalid: status.reservedFor: Forbidden: may not '
            "be specified when `allocated` is not set",
            id="reservation without allocation",
        ),
        pytest.param(
            Ref(kit.DRA, "ResourceSlice", f"00000-{kit.DRIVER}-{kit.NODE}"),
            {"spec": {"driver": "x.example.com"}},
            None,
            f'ResourceSlice.resource.k8s.io "00000-{kit.DRIVER}-{kit.NODE}" is invalid: '
            'spec.driver: Invalid value: "x.example.com": field is immutable',
            id="driver of a slice",
        ),
    ],
)
def test_change_is_refused_as_kubernetes_1_37_refuses_it(
    scope: ReferenceScope, ref: Ref, patch: dict[str, Any], subresource: str, message: str
) -> None:
    scope.create(kit.claim("c"))
    with pytest.raises(ApiError) as caught:
        scope.patch(ref, patch, subresource)
    assert (caught.value.code, str(caught.value)) == (422, message)


def test_allocation_of_a_claim_cannot_be_changed(scope: ReferenceScope) -> None:
    scope.create(kit.claim("c"))
    scope.create(kit.pod("p", claims={"g": "c"}))
    kit.runs(scope, "p")
    patch: dict[str, Any] = {"status": {"allocation": {"devices": {"results": []}}}}
    with pytest.raises(ApiError, match=r"status\.allocation: Invalid value: null: field cannot"):
        scope.patch(kit.claim_ref("c"), patch, "status")


def test_patch_with_an_outdated_version_conflicts(scope: ReferenceScope) -> None:
    scope.create(kit.claim("c"))
    with pytest.raises(ApiError) as caught:
        scope.patch(
            kit.claim_ref("c"), {"metadata": {"resourceVersion": "1", "labels": {"a": "b"}}}
        )
    assert (caught.value.code, caught.value.reason) == (409, "Conflict")


def test_patch_of_something_missing_is_not_found(scope: ReferenceScope) -> None:
    with pytest.raises(ApiError) as caught:
        scope.patch(kit.claim_ref("c"), {"metadata": {"labels": {"a": "b"}}})
    assert caught.value.code == 404
    assert str(caught.value) == 'resourceclaims.resource.k8s.io "c" not found'
