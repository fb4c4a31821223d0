from __future__ import annotations

from typing import Any

import pytest

from conformance.targets.reference.scope import ReferenceScope
from kube.errors import ApiError
from kube.values import Obj
from kubesim.apiserver.decoding import decode_object
from kubesim.apiserver.patches import as_merge_patch, merge
from kubesim.resources import KINDS, kind_of
from reference_allocator.api.schema import roots
from tests.kubesim import kit


def test_the_table_has_every_version_of_every_kind_that_is_served() -> None:
    served = {f"{version}/{kind.name}" for kind in KINDS.values() for version in kind.api_versions}
    assert served == set(roots())


def decoded(obj: Obj) -> Obj:
    return decode_object(kind_of(obj, KINDS), obj)


def test_null_field_is_absent_and_null_element_is_empty() -> None:
    opaque = {"driver": kit.DRIVER, "parameters": {"kept": None}}
    constraint = {"requests": [None], "matchAttribute": None}
    claim = kit.claim("c", constraints=[constraint], config=[{"opaque": opaque}])
    claim["spec"]["devices"]["requests"] = [None]
    claim["metadata"]["labels"] = None
    assert decoded(claim) == {
        "apiVersion": kit.DRA,
        "kind": "ResourceClaim",
        "metadata": {"name": "c"},
        "spec": {
            "devices": {
                "requests": [{}],
                "constraints": [{"requests": [""]}],
                "config": [{"opaque": {"driver": kit.DRIVER, "parameters": {"kept": None}}}],
            }
        },
    }


def pod_with(**spec: object) -> Obj:
    pod = kit.pod("p")
    pod["spec"].update(spec)
    return pod


NULL_ELEMENTS = {
    "request": kit.claim("c", None),  # type: ignore[arg-type]
    "selector": kit.claim("c", kit.request(selectors=[None])),
    "alternative": kit.claim("c", {"name": "r", "firstAvailable": [None]}),
    "constraint": kit.claim("c", constraints=[None]),
    "config": kit.claim("c", config=[None]),
    "class selector": kit.device_class("c", selectors=[None]),
    "template request": kit.template("t", None),  # type: ignore[arg-type]
    "device": kit.resource_slice("s", "n", "d.example.com", None),  # type: ignore[arg-type]
    "container": pod_with(containers=[None]),
    "pod claim": pod_with(resourceClaims=[None]),
}


@pytest.mark.parametrize("case", NULL_ELEMENTS)
@pytest.mark.parametrize("version", ["v1", "v1beta2", "v1beta1"])
def test_null_element_is_refused_like_an_empty_one(
    scope: ReferenceScope, case: str, version: str
) -> None:
    obj = dict(NULL_ELEMENTS[case])
    if obj["kind"] != "Pod":
        obj["apiVersion"] = f"resource.k8s.io/{version}"
    with pytest.raises(ApiError) as caught:
        scope.create(obj)
    assert caught.value.code in {400, 422}


A, B = {"name": "a", "image": "1"}, {"name": "b", "image": "2"}


@pytest.mark.parametrize(
    ("live", "patch", "result"),
    [
        ({"x": 1}, {"x": None}, {}),
        ({"x": {"y": 1}}, {"x": {"z": 2}}, {"x": {"y": 1, "z": 2}}),
        ({"x": {"y": 1}}, {"x": {"$patch": "replace", "z": 2}}, {"x": {"z": 2}}),
        ({"x": {"y": 1}}, {"x": {"$patch": "delete"}}, {"x": {}}),
        ({"x": {"y": 1, "z": 2}}, {"x": {"$retainKeys": ["z"]}}, {"x": {"z": 2}}),
        ({"list": [1]}, {"list": [2]}, {"list": [2]}),
        (
            {"containers": [A, B]},
            {"containers": [{"name": "b", "image": "3"}], "$setElementOrder/containers": []},
            {"containers": [A, {"name": "b", "image": "3"}]},
        ),
        (
            {"containers": [A]},
            {"containers": [{"name": "a", "image": None}, B]},
            {"containers": [{"name": "a"}, B]},
        ),
        ({"containers": [A, B]}, {"containers": [{"$patch": "delete", "name": "a"}]},
         {"containers": [B]}),
        ({"containers": [A]}, {"containers": [B, {"$patch": "replace"}]}, {"containers": [B]}),
        ({"reservedFor": [{"uid": "1"}, {"uid": "2"}]},
         {"reservedFor": [{"$patch": "delete", "uid": "1"}]}, {"reservedFor": [{"uid": "2"}]}),
        ({"resourceClaimStatuses": [{"name": "a"}]}, {"resourceClaimStatuses": [{"name": "b"}]},
         {"resourceClaimStatuses": [{"name": "b"}, {"name": "a"}]}),
        ({"finalizers": ["a"]}, {"finalizers": ["b", "a"]}, {"finalizers": ["b", "a"]}),
        ({"finalizers": ["a", "c"]}, {"finalizers": ["c"]}, {"finalizers": ["a", "c"]}),
        ({"finalizers": ["a", "b"]}, {"$deleteFromPrimitiveList/finalizers": ["a"]},
         {"finalizers": ["b"]}),
    ],
)  # fmt: skip
def test_it_does_the_same(live: dict[str, Any], patch: dict[str, Any], result: Any) -> None:
    assert merge(live, as_merge_patch(live, patch)) == result
