"""Which CEL expressions the API server of a version, with its gates, lets in."""

from __future__ import annotations

from typing import Any

import pytest

from conformance.targets.reference.scope import ReferenceScope
from conformance.targets.seam.values import ApiError, Obj, Ref
from tests.targets.reference import kit
from tests.targets.reference.conftest import Open, new_scope

LIST = f'device.attributes["{kit.DRIVER}"].ports.includes("a")'
SHARED = "device.allowMultipleAllocations"


def selecting(expression: str) -> Obj:
    return kit.claim("c", kit.request(selectors=[{"cel": {"expression": expression}}]))


def deriving(*expressions: str) -> Obj:
    derived = [{"name": f"d.example.com/a{i}", "expression": e} for i, e in enumerate(expressions)]
    constraints = [{"requests": ["gpu"], "matchAttribute": item["name"]} for item in derived]
    return kit.claim("c", kit.request(derivedAttributes=derived), constraints=constraints)


def causes(scope: ReferenceScope, obj: Obj) -> list[tuple[str, str]]:
    """Field and reason of each cause; none where the object is taken."""
    try:
        scope.create(obj)
    except ApiError as error:
        return [(cause.field, cause.reason) for cause in error.causes]
    return []


@pytest.mark.parametrize(
    ("expression", "gate"), [(LIST, "DRAListTypeAttributes"), (SHARED, "DRAConsumableCapacity")]
)
def test_what_a_gate_guards_is_refused_without_it(
    open_target: Open, expression: str, gate: str
) -> None:
    path = "spec.devices.requests[0].exactly.selectors[0].cel.expression"
    for on, expected in ((False, [(path, "FieldValueInvalid")]), (True, [])):
        scope = new_scope(open_target(feature_gates={gate: on}))
        assert causes(scope, selecting(expression)) == expected


def test_selectors_that_a_class_had_are_not_looked_into_again(open_target: Open) -> None:
    target = open_target()
    scope = new_scope(target)
    made = scope.create(kit.device_class("old"))
    bad = [{"cel": {"expression": "no longer ("}}]
    target.world.cluster.store.modify(made, lambda new: new["spec"].update(selectors=bad))
    ref = Ref(kit.DRA, "DeviceClass", "old")
    scope.patch(ref, {"metadata": {"labels": {"a": "b"}}})
    with pytest.raises(ApiError) as caught:
        scope.patch(ref, {"spec": {"selectors": [*bad, {"cel": {"expression": "true"}}]}})
    assert [cause.field for cause in caught.value.causes] == ["spec.selectors[0].cel.expression"]


@pytest.mark.parametrize(
    ("expressions", "expected"),
    [
        (["device.driver"], []),
        (
            ["device.driver", "nothing"],
            [
                (
                    "spec.devices.requests[0].exactly.derivedAttributes[1].expression",
                    "FieldValueInvalid",
                )
            ],
        ),
    ],
)
def test_derived_attributes_are_compiled(
    open_target: Open, expressions: list[str], expected: list[Any]
) -> None:
    scope = new_scope(open_target(feature_gates={"DRADerivedAttributes": True}))
    assert causes(scope, deriving(*expressions)) == expected


def test_derived_attributes_share_one_budget(open_target: Open) -> None:
    scope = new_scope(open_target(feature_gates={"DRADerivedAttributes": True}))
    costly = "[" + ", ".join(["1"] * 800) + "].map(x, [1, 2, 3].map(y, x + y).size()).size()"
    costly = f'{costly} > 0 ? "a" : "b"'
    assert causes(scope, deriving(costly)) == []
    scope.delete(kit.claim_ref("c"))
    many = deriving(*[costly] * 32)
    assert causes(scope, many) == [("spec.devices", "FieldValueForbidden")]


@pytest.mark.parametrize(
    ("targets", "taken"),
    [([], True), (["gpu"], True), (["gpu", "other"], True), (["other"], False)],
)
def test_derived_attributes_must_be_used_by_a_constraint(
    open_target: Open, targets: list[str], taken: bool
) -> None:
    scope = new_scope(open_target(feature_gates={"DRADerivedAttributes": True}))
    attribute = {"name": "d.example.com/a", "expression": "device.driver"}
    claim = kit.claim(
        "c",
        kit.request(derivedAttributes=[attribute]),
        kit.request("other"),
        constraints=[{"requests": targets, "matchAttribute": "d.example.com/a"}],
    )
    path = "spec.devices.requests[0].exactly.derivedAttributes[0].name"
    assert causes(scope, claim) == ([] if taken else [(path, "FieldValueInvalid")])
