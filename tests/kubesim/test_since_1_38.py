"""What a reference of Kubernetes 1.38 refuses, keeps and evicts otherwise than one of 1.37."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any

import pytest

from conformance.targets.reference.scope import ReferenceScope
from kube.errors import ApiError
from kube.values import Obj, Ref
from kubesim.validation import since_1_38
from kubesim.validation.device import is_semver
from tests.kubesim import kit
from tests.kubesim.conftest import Open, new_scope

LONG = "1.0.1234567890123456789"  # 19 digits
TWO_TERMS = [
    {"matchExpressions": [{"key": "zone", "operator": "In", "values": [zone]}]} for zone in "ab"
]


def a_slice(device: Obj, **spec: Any) -> Obj:
    published = kit.resource_slice("s", "a", "d.example.com", {"name": "d", **device})
    published["spec"].update(spec)
    return published


def of_each_device(**device: Any) -> Obj:
    published = a_slice(device, perDeviceNodeSelection=True)
    del published["spec"]["nodeName"]
    return published


def a_claim(**capacity: str) -> Obj:
    return kit.claim("c", kit.request(capacity={"requests": capacity}))


MANY = {f"c{number}": "1" for number in range(33)}

REFUSED: dict[str, tuple[Obj, str, str]] = {
    "an attribute with two slashes": (
        a_slice({"attributes": {"a.example.com/b/c": {"int": 1}}}),
        "spec.devices[0].attributes",
        'Invalid value: "a.example.com/b/c": must not contain more than one slash',
    ),
    "a capacity with two slashes": (
        a_slice({"capacity": {"a.example.com/b/c": {"value": "1"}}}),
        "spec.devices[0].capacity",
        "must not contain more than one slash",
    ),
    "a number of 19 digits": (
        a_slice({"attributes": {"v": {"version": LONG}}}),
        "spec.devices[0].attributes[v].version",
        "compatible with semver.org spec 2.0.0, with at most 18 digits in numbers",
    ),
    "a device for nodes of two terms": (
        of_each_device(nodeSelector={"nodeSelectorTerms": TWO_TERMS}),
        "spec.devices[0].nodeSelector.nodeSelectorTerms",
        "must have exactly one node selector term",
    ),
    "a negative request": (
        a_claim(x="-1"),
        "spec.devices.requests[0].exactly.capacity.requests[x]",
        'Invalid value: "-1": must be greater than or equal to 0',
    ),
    "a request with two slashes": (
        a_claim(**{"a/b/c": "1"}),
        "spec.devices.requests[0].exactly.capacity.requests",
        "must not contain more than one slash",
    ),
    "33 capacities": (
        a_claim(**MANY),
        "spec.devices.requests[0].exactly.capacity.requests",
        "Too many: 33: must have at most 32 items",
    ),
    "33 capacities in a template": (
        kit.template("t", kit.request(capacity={"requests": MANY})),
        "spec.spec.devices.requests[0].exactly.capacity.requests",
        "Too many: 33: must have at most 32 items",
    ),
    "a constraint with two slashes": (
        kit.claim("c", constraints=[{"matchAttribute": "a.example.com/b/c"}]),
        "spec.devices.constraints[0].matchAttribute",
        "must not contain more than one slash",
    ),
}


def scope_of(open_target: Open, minor: str) -> ReferenceScope:
    scope = new_scope(open_target(kubernetes_version=f"{minor}.0"))
    scope.create(kit.device_class())
    return scope


@pytest.mark.parametrize("name", REFUSED)
def test_1_38_refuses_what_1_37_lets_in(open_target: Open, name: str) -> None:
    obj, field, message = REFUSED[name]
    scope_of(open_target, "1.37").create(copy.deepcopy(obj))
    with pytest.raises(ApiError) as caught:
        scope_of(open_target, "1.38").create(copy.deepcopy(obj))
    assert caught.value.code == 422
    (cause,) = caught.value.causes
    assert (cause.field, cause.message.endswith(message)) == (field, True), cause


def test_a_status_is_checked_for_the_capacity_that_it_says_is_consumed() -> None:
    def claim_with(amounts: Obj) -> Obj:
        results = [{"request": "gpu", "consumedCapacity": amounts}]
        return {**kit.claim("c"), "status": {"allocation": {"devices": {"results": results}}}}

    def complaints(amounts: Obj, old: Obj | None) -> Iterator[str]:
        errors = since_1_38.check_added("ResourceClaim", claim_with(amounts), old, status=True)
        yield from map(str, errors)

    assert len([*complaints({"x": "-1", "a/b/c": "1"}, kit.claim("c"))]) == 2
    assert not [*complaints({"x": "1"}, kit.claim("c"))]
    assert not [*complaints({"x": "-1"}, claim_with({"x": "-1"}))]  # stored before


@pytest.mark.parametrize(
    ("change", "fields"),
    [
        # What is stored is left alone as long as the list of devices is.
        ({"pool": {"name": "a", "generation": 2, "resourceSliceCount": 1}}, []),
        (
            {"devices": [{"name": "d", "attributes": {"a/b/c": {"int": 1}}}, {"name": "e"}]},
            ["spec.devices[0].attributes"],
        ),
    ],
    ids=["another generation", "another device"],
)
def test_the_first_change_of_a_slices_devices_has_to_mend_them_all(
    change: Obj, fields: list[str]
) -> None:
    old = a_slice({"attributes": {"a/b/c": {"int": 1}}})
    new = copy.deepcopy(old)
    new["spec"].update(change)
    errors = [
        *since_1_38.check_slice_update(new, old),
        *since_1_38.check_added("ResourceSlice", new, old, status=False),
    ]
    assert [error.path for error in errors] == fields


@pytest.mark.parametrize(
    ("text", "any_digits", "of_18_digits"),
    [
        ("1.2.3-rc.1+build.5", True, True),
        ("1.2", False, False),
        ("01.2.3", False, False),
        ("1.2.3-01", False, False),
        (LONG, True, False),
        ("1.0.0-1234567890123456789", True, False),
        ("1.0.0-a1234567890123456789", True, True),
        ("1.0.0+1234567890123456789", True, True),
        ("99999999999999999999999.0.0", True, False),
        ("1.0.0\n", False, False),
    ],
)
def test_a_version_is_one_by_its_form(text: str, any_digits: bool, of_18_digits: bool) -> None:
    assert (is_semver(text), is_semver(text, digits=18)) == (any_digits, of_18_digits)


@pytest.mark.parametrize(("minor", "stays"), [("1.37", False), ("1.38", True)])
def test_a_toleration_without_an_effect_keeps_a_pod_on_its_device(
    open_target: Open, minor: str, stays: bool
) -> None:
    scope = scope_of(open_target, minor)
    tolerations = [{"key": "d.example.com/broken", "operator": "Exists"}]
    scope.create(kit.claim("c", kit.request(tolerations=tolerations)))
    scope.create(kit.pod("p", claims={"c": "c"}))
    kit.runs(scope, "p")
    rule = {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "DeviceTaintRule",
        "metadata": {"name": "r"},
        "spec": {
            "deviceSelector": {"driver": kit.DRIVER},
            "taint": {"key": "d.example.com/broken", "effect": "NoExecute"},
        },
    }
    scope.create(rule)
    scope.wait(lambda: None, 30)
    pod = scope.get(Ref("v1", "Pod", "p"))
    assert (pod is not None and "deletionTimestamp" not in pod["metadata"]) is stays


def test_a_stored_template_keeps_its_capacities_and_no_other_name() -> None:
    wrong_name = {"matchAttribute": "a.example.com/b/c"}
    labelled = {"metadata": {"labels": {"l": "v"}}}
    kept = kit.template("kept", kit.request(capacity={"requests": {"a/b/c": "-1"}}))
    refused = kit.template("refused")
    refused["spec"]["spec"]["devices"]["constraints"] = [wrong_name]
    errors = [
        [*since_1_38.check_added(obj["kind"], {**obj, **labelled}, obj, status=False)]
        for obj in (kept, refused)
    ]
    assert [[error.path for error in found] for found in errors] == [
        [],
        ["spec.spec.devices.constraints[0].matchAttribute"],
    ]


@pytest.mark.parametrize("minor", ["1.37", "1.38"])
def test_v1beta1_is_served_until_1_37(open_target: Open, minor: str) -> None:
    scope = new_scope(open_target(kubernetes_version=f"{minor}.0"))
    old_class = {
        "apiVersion": "resource.k8s.io/v1beta1",
        "kind": "DeviceClass",
        "metadata": {"name": "c"},
        "spec": {},
    }
    if minor == "1.37":
        assert scope.create(old_class)["apiVersion"] == "resource.k8s.io/v1beta1"
        return
    with pytest.raises(ApiError, match="could not find the requested resource"):
        scope.create(old_class)
    assert scope.create({**old_class, "apiVersion": "resource.k8s.io/v1beta2"})
