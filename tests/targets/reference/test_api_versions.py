from __future__ import annotations

from typing import Any

import pytest

from conformance.targets.reference.scope import ReferenceScope
from conformance.targets.seam.values import ApiError, Obj, Query, Ref
from tests.targets.reference import kit

SELECTOR = [{"cel": {"expression": "device.driver == 'gpu.nvidia.com'"}}]
FLAT: Obj = {"name": "gpu", "deviceClassName": kit.CLASS, "selectors": SELECTOR}
EXACT: Obj = {"name": "gpu", "exactly": {"deviceClassName": kit.CLASS, "selectors": SELECTOR}}
DEFAULTS = {"allocationMode": "ExactCount", "count": 1}
REQUESTS: dict[str, Obj] = {"v1beta1": FLAT, "v1beta2": EXACT, "v1": EXACT}
READ: dict[str, Obj] = {
    "v1beta1": {**FLAT, **DEFAULTS},
    "v1beta2": {"name": "gpu", "exactly": {**EXACT["exactly"], **DEFAULTS}},
    "v1": {"name": "gpu", "exactly": {**EXACT["exactly"], **DEFAULTS}},
}


def versioned(version: str) -> Obj:
    return {
        "apiVersion": f"resource.k8s.io/{version}",
        "kind": "ResourceClaim",
        "metadata": {"name": "c"},
        "spec": {"devices": {"requests": [REQUESTS[version]]}},
    }


def test_slice_of_v1beta1_has_its_devices_below_basic(scope: ReferenceScope) -> None:
    basic = {"attributes": {"a": {"string": "x"}}, "capacity": {"memory": {"value": 5}}}
    sent = kit.resource_slice("s", "n", "d.example.com", {"name": "d0", "basic": basic})
    sent["apiVersion"] = "resource.k8s.io/v1beta1"
    created = scope.create(sent)
    stored = {"attributes": {"a": {"string": "x"}}, "capacity": {"memory": {"value": "5"}}}
    assert created["spec"]["devices"] == [{"name": "d0", "basic": stored}]
    v1 = kit.get(scope, Ref(kit.DRA, "ResourceSlice", "s"))
    assert v1["spec"]["devices"] == [{"name": "d0", **stored}]


def test_lists_are_in_the_version_asked_for_and_by_label(scope: ReferenceScope) -> None:
    labelled = versioned("v1")
    labelled["metadata"] = {"name": "b", "labels": {"x": "y"}}
    scope.create(labelled)
    scope.create(versioned("v1"))
    listed = scope.find(Query("resource.k8s.io/v1beta1", "ResourceClaim"))
    assert [item["metadata"]["name"] for item in listed] == ["b", "c"]
    assert all(item["apiVersion"] == "resource.k8s.io/v1beta1" for item in listed)
    assert len(scope.find(Query(kit.DRA, "ResourceClaim", {"x": "y"}))) == 1
    assert scope.find(Query(kit.DRA, "ResourceClaim", {"x": "z"})) == []


def test_patch_in_another_version_keeps_the_rest(scope: ReferenceScope) -> None:
    scope.create(versioned("v1"))
    ref = Ref("resource.k8s.io/v1beta1", "ResourceClaim", "c")
    scope.patch(ref, {"metadata": {"labels": {"a": "b"}}})
    assert kit.get(scope, ref)["spec"]["devices"]["requests"] == [READ["v1beta1"]]
    assert kit.get(scope, kit.claim_ref("c"))["metadata"]["labels"] == {"a": "b"}


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


def test_null_is_the_same_as_absent_but_in_parameters(scope: ReferenceScope) -> None:
    parameters = {"apiVersion": "x/v1", "kind": "X", "nothing": None}
    config = [{"opaque": {"driver": "d.example.com", "parameters": parameters}}]
    sent = kit.claim("c", config=config, constraints=None)
    created = scope.create(sent)
    assert "constraints" not in created["spec"]["devices"]
    assert created["spec"]["devices"]["config"] == config


@pytest.mark.parametrize("missing", ["kind", "apiVersion"])
def test_object_without_a_type_is_a_bad_request(scope: ReferenceScope, missing: str) -> None:
    obj = kit.claim("c")
    del obj[missing]
    with pytest.raises(ApiError) as caught:
        scope.create(obj)
    assert (caught.value.code, caught.value.reason) == (400, "BadRequest")
