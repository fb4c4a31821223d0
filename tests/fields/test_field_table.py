"""The table of Kubernetes' fields finds what an object must not have, with the place."""

from __future__ import annotations

from typing import Any

import pytest

from conformance.fields import (
    UnknownField,
    WrongType,
    mistakes,
    root_of,
    roots,
    stable_version,
    types,
)

CLAIM = roots()["resource.k8s.io/v1/ResourceClaim"]


def claim(request: Any) -> dict[str, Any]:
    return {"metadata": {"name": "c"}, "spec": {"devices": {"requests": [request]}}}


def test_every_type_that_is_named_is_in_the_table() -> None:
    scalars = {"str", "int", "bool", "datetime", "quantity", "object"}
    for fields in types().values():
        for shape in fields.values():
            assert shape.rstrip("]").split("[")[-1] in types().keys() | scalars
    assert set(roots().values()) <= types().keys()


def test_a_right_object_has_no_mistakes() -> None:
    assert list(mistakes(CLAIM, claim({"name": "r", "exactly": {"count": 1}}))) == []


def test_null_fits_everywhere() -> None:
    assert list(mistakes(CLAIM, claim(None))) == []
    assert list(mistakes(CLAIM, {"metadata": None, "spec": {"devices": None}})) == []


def test_an_unknown_field_is_found_with_the_type_that_lacks_it() -> None:
    [found] = mistakes(CLAIM, claim({"name": "r", "exactly": {"cuont": 1}}))
    assert found == UnknownField(
        ("spec", "devices", "requests", 0, "exactly", "cuont"), "V1ExactDeviceRequest"
    )


@pytest.mark.parametrize(
    ("request_", "shape"),
    [
        ({"exactly": {"count": "1"}}, "int"),
        ({"exactly": {"count": True}}, "int"),
        ({"exactly": {"adminAccess": 1}}, "bool"),
        ({"name": 1}, "str"),
        ({"exactly": {"selectors": {}}}, "list[V1DeviceSelector]"),
        ({"exactly": {"capacity": {"requests": []}}}, "map[quantity]"),
        ({"exactly": {"capacity": {"requests": {"memory": []}}}}, "quantity"),
        ("gpu", "V1DeviceRequest"),
    ],
)
def test_a_value_of_a_wrong_type_is_found(request_: Any, shape: str) -> None:
    [found] = mistakes(CLAIM, claim(request_))
    assert isinstance(found, WrongType)
    assert found.shape == shape


def test_a_text_that_is_no_quantity_is_told_why() -> None:
    request_ = {"exactly": {"capacity": {"requests": {"memory": "16GiB"}}}}
    [found] = mistakes(CLAIM, claim(request_))
    assert isinstance(found, WrongType)
    assert found.why


def test_what_a_driver_alone_understands_may_be_anything() -> None:
    config = [{"opaque": {"driver": "d", "parameters": {"any": [{"thing": 1.5}]}}}]
    assert list(mistakes(CLAIM, {"spec": {"devices": {"config": config}}})) == []


def test_every_mistake_is_found_in_the_order_of_the_object() -> None:
    found = mistakes(CLAIM, {"metadata": {"nam": "c"}, "spec": [], "stat": {}})
    assert [item.path for item in found] == [("metadata", "nam"), ("spec",), ("stat",)]


def test_a_kind_without_version_is_the_stable_one() -> None:
    assert stable_version("Job") == "batch/v1"
    assert root_of("ResourceClaim") == CLAIM
    assert root_of("ResourceClaim", "resource.k8s.io/v1beta1") == "V1beta1ResourceClaim"
    assert root_of("Deployment") is None
