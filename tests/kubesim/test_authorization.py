"""Requests in the name of accounts: RBAC's rules, and who may write what of a claim's status."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from conformance.targets.reference.scope import ReferenceScope
from kube.errors import ApiError
from kube.values import FieldManager, Request, User
from tests.kubesim import kit

CLAIM = kit.claim_ref("c")


def account(scope: ReferenceScope, *rules: dict[str, Any], node: str = "") -> User:
    user = User(scope.namespace, "someone", node)
    scope.grant(user, rules, {})
    return user


def rule(resource: str, *verbs: str, **more: Any) -> dict[str, Any]:
    return {"apiGroups": ["resource.k8s.io"], "resources": [resource], "verbs": [*verbs], **more}


def test_who_may_patch_creates_nothing_by_applying_it(scope: ReferenceScope) -> None:
    user = account(scope, rule("resourceclaims", "patch"))
    applied = Request("patch", CLAIM, kit.claim("c"), user=user, manager=FieldManager("m"))
    with pytest.raises(ApiError, match="cannot create resource"):
        scope.send(applied)
    scope.create(kit.claim("c"))
    labelled = {**kit.claim("c"), "metadata": {"name": "c", "labels": {"a": "b"}}}
    del labelled["spec"]
    scope.send(replace(applied, body=labelled))
    assert kit.get(scope, CLAIM)["metadata"]["labels"] == {"a": "b"}


def test_a_refusal_says_who_may_not_do_what_where(scope: ReferenceScope) -> None:
    scope.create(kit.claim("c"))
    with pytest.raises(ApiError) as error:
        scope.send(Request("patch", CLAIM, {}, "status", user=account(scope)))
    assert error.value.message == (
        'resourceclaims.resource.k8s.io "c" is forbidden: User'
        f' "system:serviceaccount:{scope.namespace}:someone" cannot patch resource'
        f' "resourceclaims/status" in API group "resource.k8s.io" in the namespace'
        f' "{scope.namespace}"'
    )
    with pytest.raises(ApiError, match=r'cannot create resource "deviceclasses".* cluster scope'):
        scope.create(kit.device_class("own"), account(scope))


def allocated(scope: ReferenceScope) -> dict[str, Any]:
    """The entry of the one device of the claim, for a report."""
    scope.create(kit.claim("c"))
    scope.create(kit.pod("p", claims={"gpu": "c"}))
    kit.runs(scope, "p")
    [result] = kit.get(scope, CLAIM)["status"]["allocation"]["devices"]["results"]
    return {key: result[key] for key in ("driver", "pool", "device")}


def test_no_role_of_a_namespace_lets_an_account_change_an_allocation(scope: ReferenceScope) -> None:
    allocated(scope)
    rules = [rule("resourceclaims/status", "patch"), rule("resourceclaims/binding", "patch")]
    user = account(scope, *rules)
    with pytest.raises(ApiError, match="resourceclaims/binding") as error:
        scope.send(Request("patch", CLAIM, {"status": {"reservedFor": None}}, "status", user=user))
    assert [cause.field for cause in error.value.causes] == ["status.allocation"]


def test_a_kubelet_is_told_why_it_may_not(scope: ReferenceScope) -> None:
    kubelet = User.kubelet_of("node")
    with pytest.raises(ApiError, match='User "system:node:node" cannot create') as error:
        scope.create(kit.claim("c"), kubelet)
    assert error.value.message.endswith(": can only get individual resources of this type")
    slice_of_another = kit.resource_slice("other", "another", "driver")
    with pytest.raises(
        ApiError, match=r"is forbidden: can only create ResourceSlice with the same"
    ):
        scope.create(slice_of_another, kubelet)
