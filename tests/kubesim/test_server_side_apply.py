"""Server-side apply on the reference: what a manager owns, gives up, and may not take."""

from __future__ import annotations

from typing import Any

import pytest

from conformance.targets.reference.scope import ReferenceScope
from kube.errors import ApiError
from kube.values import FieldManager, Obj, Ref, Request
from tests.kubesim import kit

CLAIM = kit.claim_ref("c")


def apply(scope: ReferenceScope, manager: str, labels: Obj, force: bool = False) -> Any:
    return applied(scope, {"labels": labels}, FieldManager(manager, force)).get("labels")


def applied(scope: ReferenceScope, meta: Obj, manager: FieldManager) -> Any:
    """Apply metadata of a claim that is there; the metadata that came of it."""
    if scope.get(CLAIM) is None:
        scope.create(kit.claim("c"))
    body = {"apiVersion": kit.DRA, "kind": "ResourceClaim", "metadata": {"name": "c", **meta}}
    scope.send(Request("patch", CLAIM, body, manager=manager))
    found: Obj = kit.get(scope, CLAIM)["metadata"]
    return found


def test_it_creates_what_is_not_there_and_changes_nothing_the_second_time(
    scope: ReferenceScope,
) -> None:
    request = Request("patch", CLAIM, kit.claim("c"), manager=FieldManager("m"))
    scope.send(request)
    before = kit.get(scope, CLAIM)
    scope.send(request)
    assert kit.get(scope, CLAIM) == before


def test_what_a_manager_leaves_out_goes_unless_another_has_it_or_has_changed_it(
    scope: ReferenceScope,
) -> None:
    apply(scope, "m", {"own": "1", "both": "1", "changed": "1"})
    apply(scope, "n", {"both": "1"})
    scope.patch(CLAIM, {"metadata": {"labels": {"changed": "2"}}})
    assert apply(scope, "m", {}) == {"both": "1", "changed": "2"}
    assert apply(scope, "n", {}) == {"changed": "2"}


def test_a_value_of_another_is_a_conflict_that_names_it(scope: ReferenceScope) -> None:
    apply(scope, "m", {"a": "1"})
    with pytest.raises(ApiError, match='conflict with "m": ') as error:
        apply(scope, "n", {"a": "2"})
    assert (error.value.code, error.value.reason) == (409, "Conflict")
    assert [cause.field for cause in error.value.causes] == [".metadata.labels.a"]
    assert apply(scope, "n", {"a": "2"}, force=True) == {"a": "2"}
    assert apply(scope, "n", {"a": "3"}) == {"a": "3"}
    with pytest.raises(ApiError, match='conflict with "n": '):
        apply(scope, "m", {"a": "1"})


def test_a_field_of_two_is_given_up_by_both_before_it_changes(scope: ReferenceScope) -> None:
    apply(scope, "m", {"a": "1"})
    apply(scope, "n", {"a": "1"})
    with pytest.raises(ApiError, match='conflict with "n": '):
        apply(scope, "m", {"a": "2"})
    apply(scope, "n", {})
    assert apply(scope, "m", {"a": "2"}) == {"a": "2"}


def test_a_field_of_a_created_object_stays_its_makers_too(scope: ReferenceScope) -> None:
    made = kit.claim("c")
    made["metadata"]["labels"] = {"a": "1"}
    scope.create(made)
    apply(scope, "m", {"a": "1"})
    with pytest.raises(ApiError, match="conflict with"):
        apply(scope, "m", {"a": "2"})
    assert apply(scope, "m", {}) == {"a": "1"}


def test_a_subresource_is_not_made_by_applying_it(scope: ReferenceScope) -> None:
    ref = Ref(kit.DRA, "ResourceClaim", "none")
    body = {"apiVersion": kit.DRA, "kind": "ResourceClaim", "metadata": {"name": "none"}}
    with pytest.raises(ApiError, match="not found"):
        scope.send(Request("patch", ref, body, "status", manager=FieldManager("m")))


def test_finalizers_are_owned_one_by_one(scope: ReferenceScope) -> None:
    for name in ("m", "n"):
        found = applied(scope, {"finalizers": [f"example.com/{name}"]}, FieldManager(name))
    assert found["finalizers"] == ["example.com/m", "example.com/n"]
    assert applied(scope, {}, FieldManager("m"))["finalizers"] == ["example.com/n"]
