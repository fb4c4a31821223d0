"""Which CEL expressions the API server of a version, with its gates, lets in."""

from __future__ import annotations

import pytest

from conformance.targets.reference.scope import ReferenceScope
from kube.errors import ApiError
from kube.values import Obj, Ref
from tests.kubesim import kit
from tests.kubesim.conftest import Open, new_scope

LIST = f'device.attributes["{kit.DRIVER}"].ports.includes("a")'
SHARED = "device.allowMultipleAllocations"


def selecting(expression: str) -> Obj:
    return kit.claim("c", kit.request(selectors=[{"cel": {"expression": expression}}]))


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
