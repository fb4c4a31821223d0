from __future__ import annotations

from typing import Any

import pytest

from conformance.targets.reference.scope import ReferenceScope
from kube.errors import ApiError
from kube.values import Query, Ref
from tests.kubesim import kit


@pytest.mark.parametrize(
    ("api_version", "kind"),
    [("resource.k8s.io/v1alpha2", "ResourceClaim"), ("v1", "Secret"), ("v1", "Job")],
)
def test_version_or_kind_that_is_not_served_is_not_found(
    scope: ReferenceScope, api_version: str, kind: str
) -> None:
    calls: list[Any] = [
        lambda: scope.get(Ref(api_version, kind, "x")),
        lambda: scope.find(Query(api_version, kind)),
        lambda: scope.delete(Ref(api_version, kind, "x")),
        lambda: scope.create({"apiVersion": api_version, "kind": kind, "metadata": {}}),
    ]
    for call in calls:
        with pytest.raises(ApiError) as caught:
            call()
        assert caught.value.code == 404
        assert str(caught.value) == "the server could not find the requested resource"


@pytest.mark.parametrize("missing", ["kind", "apiVersion"])
def test_object_without_a_type_is_a_bad_request(scope: ReferenceScope, missing: str) -> None:
    obj = kit.claim("c")
    del obj[missing]
    with pytest.raises(ApiError) as caught:
        scope.create(obj)
    assert (caught.value.code, caught.value.reason) == (400, "BadRequest")
