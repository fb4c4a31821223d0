"""The table of Kubernetes' fields finds what an object must not have, with the place."""

from __future__ import annotations

import re
from typing import Any

import pytest
from kubernetes.client import models

from reference_allocator.api.schema import (
    UnknownField,
    WrongType,
    find_mistakes,
    list_parts,
    root_of,
    roots,
    stable_version,
    types,
)

CLAIM = roots()["resource.k8s.io/v1/ResourceClaim"]


def claim(request: Any) -> dict[str, Any]:
    return {"metadata": {"name": "c"}, "spec": {"devices": {"requests": [request]}}}


def test_every_type_that_is_named_is_in_the_table() -> None:
    scalars = {"string", "int32", "int64", "bool", "time", "quantity", "intorstring", "any"}
    for fields in types().values():
        for shape in fields.values():
            assert re.sub(r"^(\[\]|map\[string\])+", "", shape) in types().keys() | scalars
    assert set(roots().values()) <= types().keys()


# The client's name for a type, where it is not the version and the name.
CLIENT_NAMES = {
    "core/v1.Event": "CoreV1Event",
    "core/v1.EventSeries": "CoreV1EventSeries",
    "core/v1.ResourceClaim": "CoreV1ResourceClaim",
    "resource/v1.ResourceClaim": "ResourceV1ResourceClaim",
}


def test_the_fields_are_those_of_the_kubernetes_client() -> None:
    """The client is generated from the API server's OpenAPI document: another witness."""
    compared = 0
    for name, fields in types().items():
        version, _, kind = name.rpartition("/")[2].partition(".")
        model = getattr(models, CLIENT_NAMES.get(name, f"V{version[1:]}{kind}"), None)
        if model is not None:  # the client has none for a type that is embedded
            assert fields.keys() == set(model.attribute_map.values()), name
            compared += 1
    assert compared > 0.95 * len(types())


def test_a_right_object_has_no_mistakes() -> None:
    assert list(find_mistakes(CLAIM, claim({"name": "r", "exactly": {"count": 1}}))) == []


def test_null_fits_everywhere() -> None:
    assert list(find_mistakes(CLAIM, claim(None))) == []
    assert list(find_mistakes(CLAIM, {"metadata": None, "spec": {"devices": None}})) == []


def test_an_unknown_field_is_found_with_the_type_that_lacks_it() -> None:
    [mistake] = find_mistakes(CLAIM, claim({"name": "r", "exactly": {"cuont": 1}}))
    assert mistake == UnknownField(
        ("spec", "devices", "requests", 0, "exactly", "cuont"), "resource/v1.ExactDeviceRequest"
    )


@pytest.mark.parametrize(
    ("request_", "shape"),
    [
        ({"exactly": {"count": "1"}}, "int64"),
        ({"exactly": {"count": True}}, "int64"),
        ({"exactly": {"adminAccess": 1}}, "bool"),
        ({"name": 1}, "string"),
        ({"exactly": {"selectors": {}}}, "[]resource/v1.DeviceSelector"),
        ({"exactly": {"capacity": {"requests": []}}}, "map[string]quantity"),
        ({"exactly": {"capacity": {"requests": {"memory": []}}}}, "quantity"),
        ("gpu", "resource/v1.DeviceRequest"),
    ],
)
def test_a_value_of_a_wrong_type_is_found(request_: Any, shape: str) -> None:
    [mistake] = find_mistakes(CLAIM, claim(request_))
    assert isinstance(mistake, WrongType)
    assert mistake.shape == shape


def test_a_text_that_is_no_quantity_is_told_why() -> None:
    request_ = {"exactly": {"capacity": {"requests": {"memory": "16GiB"}}}}
    [mistake] = find_mistakes(CLAIM, claim(request_))
    assert isinstance(mistake, WrongType)
    assert mistake.why


@pytest.mark.parametrize("value", [2**63, -(2**63) - 1])
def test_an_integer_that_is_too_large_is_told(value: int) -> None:
    [mistake] = find_mistakes(CLAIM, claim({"exactly": {"count": value}}))
    assert isinstance(mistake, WrongType)
    assert mistake.why == "does not fit into 64 bits"


def test_a_time_is_one_as_the_api_writes_it() -> None:
    right = {"metadata": {"creationTimestamp": "2026-01-31T12:00:00Z"}}
    assert list(find_mistakes(CLAIM, right)) == []
    [mistake] = find_mistakes(CLAIM, {"metadata": {"creationTimestamp": "yesterday"}})
    assert isinstance(mistake, WrongType)
    assert mistake.shape == "time"


def test_what_a_driver_alone_understands_may_be_anything() -> None:
    config = [{"opaque": {"driver": "d", "parameters": {"any": [{"thing": 1.5}]}}}]
    assert list(find_mistakes(CLAIM, {"spec": {"devices": {"config": config}}})) == []


def test_every_mistake_is_found_in_the_order_of_the_object() -> None:
    mistakes = find_mistakes(CLAIM, {"metadata": {"nam": "c"}, "spec": [], "stat": {}})
    assert [item.path for item in mistakes] == [("metadata", "nam"), ("spec",), ("stat",)]


def test_a_kind_without_version_is_the_stable_one() -> None:
    assert stable_version("Job") == "batch/v1"
    assert root_of("ResourceClaim") == CLAIM
    assert root_of("ResourceClaim", "resource.k8s.io/v1beta1") == "resource/v1beta1.ResourceClaim"
    assert root_of("Secret") is None


def test_parts_of_a_type_are_found_where_they_can_be() -> None:
    """In templates of pods, in lists; not in what fits no type, nor in a driver's parameters."""
    pod = {"containers": [{"name": "c"}, 7], "initContainers": "none"}
    job = {"spec": {"template": {"spec": pod}}, "status": {"containers": [{}]}}
    names = frozenset({"Container", "PodSpec"})
    place = ("spec", "template", "spec")
    assert list_parts("batch/v1.Job", job, names) == [
        (place, "core/v1.PodSpec", pod),
        ((*place, "containers", 0), "core/v1.Container", {"name": "c"}),
    ]
    opaque = {"opaque": {"parameters": {"cel": {"expression": "x"}}}}
    config = {"spec": {"devices": {"config": [opaque]}}}
    assert list_parts(CLAIM, config, frozenset({"CELDeviceSelector"})) == []
    assert list_parts("", config, names) == []
