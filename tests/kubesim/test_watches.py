"""What a watch of the reference tells, as the API server's cacher does (convertToWatchEvent)."""

from __future__ import annotations

import pytest

from conformance.seam.watching import Watching
from conformance.targets.reference.scope import ReferenceScope
from kube.errors import ApiError
from kube.values import Query, Ref
from tests.kubesim import kit


def told(watching: Watching) -> list[tuple[str, str]]:
    return [(change, obj["metadata"]["name"]) for change, obj in watching.events()]


def label(scope: ReferenceScope, name: str, value: str | None) -> None:
    ref = Ref(kit.DRA, "ResourceClaim", name, "ns")
    scope.patch(ref, {"metadata": {"labels": {"team": value}}})


def test_what_comes_to_be_selected_is_added_and_what_leaves_is_deleted(
    scope: ReferenceScope,
) -> None:
    scope.create(kit.claim("before"))
    watching = scope.watch(Query(kit.DRA, "ResourceClaim", {"team": "blue"}))
    scope.create(kit.claim("one"))
    label(scope, "one", "red")
    assert told(watching) == []
    for name, value in (("one", "blue"), ("before", "blue"), ("one", None), ("one", "red")):
        label(scope, name, value)
    scope.delete(Ref(kit.DRA, "ResourceClaim", "before", "ns"))
    scope.delete(Ref(kit.DRA, "ResourceClaim", "one", "ns"))
    expected = [("ADDED", "one"), ("ADDED", "before"), ("DELETED", "one"), ("DELETED", "before")]
    assert told(watching) == expected


def test_a_field_by_which_nothing_is_selected_is_refused(scope: ReferenceScope) -> None:
    with pytest.raises(ApiError, match="field label not supported"):
        scope.watch(Query(kit.DRA, "ResourceSlice", None, None, {"spec.devices": "x"}))


def test_it_ends_with_its_scope(scope: ReferenceScope) -> None:
    watching = scope.watch(Query(kit.DRA, "ResourceClaim"))
    scope.close()
    scope.create(kit.claim("late"))
    assert told(watching) == []
