"""Requests of scenarios beyond create, merge patch and delete, on the reference."""

from __future__ import annotations

from typing import Any

import pytest

from conformance.targets.reference.scope import ReferenceScope
from kube.errors import ApiError
from kube.values import Ref, Request
from tests.kubesim import kit

CLAIM = kit.claim_ref("c")


def patched(scope: ReferenceScope, *operations: dict[str, Any], dry_run: bool = False) -> Any:
    scope.send(Request("patch", CLAIM, list(operations), dry_run=dry_run))
    return kit.get(scope, CLAIM)["metadata"].get("labels")


def test_a_json_patch_is_applied_in_order_or_not_at_all(scope: ReferenceScope) -> None:
    scope.create(kit.claim("c"))
    add = {"op": "add", "path": "/metadata/labels", "value": {"a": "1", "b/c": "2"}}
    assert patched(scope, add) == {"a": "1", "b/c": "2"}
    test = {"op": "test", "path": "/metadata/labels/b~1c", "value": "2"}
    assert patched(scope, test, {"op": "remove", "path": "/metadata/labels/b~1c"}) == {"a": "1"}
    copy = {"op": "copy", "from": "/metadata/name", "path": "/metadata/labels/a"}
    assert patched(scope, copy) == {"a": "c"}
    assert patched(scope, {"op": "replace", "path": "/metadata/labels/a", "value": "1"})
    with pytest.raises(ApiError, match="due to an error in our request"):
        patched(scope, {"op": "remove", "path": "/metadata/labels/a"}, test)
    assert kit.get(scope, CLAIM)["metadata"]["labels"] == {"a": "1"}


def test_a_dry_run_checks_and_stores_nothing(scope: ReferenceScope) -> None:
    scope.create(kit.claim("c"))
    label = {"op": "add", "path": "/metadata/labels", "value": {"a": "1"}}
    assert patched(scope, label, dry_run=True) is None
    wrong = Request("patch", CLAIM, {"spec": {"devices": {"requests": []}}}, dry_run=True)
    with pytest.raises(ApiError, match="immutable"):
        scope.send(wrong)
    scope.send(Request("delete", CLAIM, {}, dry_run=True))
    scope.send(Request("deletecollection", Ref(kit.DRA, "ResourceClaim", ""), {}, dry_run=True))
    assert kit.get(scope, CLAIM)


def bind(scope: ReferenceScope, pod: str, **binding: Any) -> int:
    """Ask for a pod to be bound; returns the code of the refusal."""
    target = {"kind": "Node", "name": kit.NODE}
    body = {"metadata": {"name": pod}, "target": target, **binding}
    with pytest.raises(ApiError) as refused:
        scope.send(Request("create", kit.pod_ref(pod), body, "binding"))
    return refused.value.code


def test_a_gated_or_deleted_pod_is_not_bound(scope: ReferenceScope) -> None:
    scope.create(kit.pod("gated", schedulingGates=[{"name": "example.com/wait"}]))
    assert bind(scope, "gated") == 409
    assert bind(scope, "nobody") == 404


def test_a_binding_names_its_pod_and_a_node(scope: ReferenceScope) -> None:
    scope.create(kit.pod("gated", schedulingGates=[{"name": "example.com/wait"}]))
    assert bind(scope, "gated", metadata={"name": "other"}) == 400
    assert bind(scope, "gated", target={"kind": "Pod", "name": "x"}) == 500


def test_what_is_being_deleted_takes_no_new_finalizer(scope: ReferenceScope) -> None:
    claim = kit.claim("c")
    scope.create({**claim, "metadata": {**claim["metadata"], "finalizers": ["example.com/held"]}})
    scope.send(Request("delete", CLAIM, {}))
    add = {"op": "add", "path": "/metadata/finalizers/-", "value": "example.com/late"}
    with pytest.raises(ApiError, match=r'found new finalizers \[\]string\{"example.com/late"\}'):
        patched(scope, add)
    scope.send(Request("patch", CLAIM, [{"op": "remove", "path": "/metadata/finalizers"}]))
    assert scope.get(CLAIM) is None


def test_an_object_has_one_controller(scope: ReferenceScope) -> None:
    owner = {"apiVersion": "v1", "kind": "Pod", "uid": "u", "controller": True}
    owners = [{**owner, "name": "a"}, {**owner, "name": "b"}]
    claim = kit.claim("c")
    with pytest.raises(ApiError, match="in references for Pod/a and Pod/b"):
        scope.create({**claim, "metadata": {**claim["metadata"], "ownerReferences": owners}})
    owners[1]["controller"] = False
    scope.create({**claim, "metadata": {**claim["metadata"], "ownerReferences": owners}})
