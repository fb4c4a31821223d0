"""Feature gates: which there are, which can be set, and what a cluster without DRA serves."""

from __future__ import annotations

import pytest

from conformance.targets.seam.values import ApiError, Query, Ref
from tests.targets.reference import kit
from tests.targets.reference.conftest import Open, new_scope


@pytest.mark.parametrize(
    ("version", "gates", "why"),
    [
        ("1.37.1", {"DynamicResourceAllocation": False}, "locked to true"),
        ("1.37.1", {"Nope": True}, "has no DRA feature gate Nope; it has DRAAdminAccess, "),
        ("1.37.1", {"DRADeviceTaint": True}, "did you mean DRADeviceTaints"),
        ("1.34.0", {"DRADerivedAttributes": True}, "1.34 has no DRA feature gate"),
    ],
)
def test_a_gate_that_cannot_be_set_is_refused(
    open_target: Open, version: str, gates: dict[str, bool], why: str
) -> None:
    with pytest.raises(ValueError, match=why):
        open_target(kubernetes_version=version, feature_gates=gates)


def test_a_locked_gate_may_be_set_to_what_it_is(open_target: Open) -> None:
    target = open_target(feature_gates={"DynamicResourceAllocation": True})
    assert target.capabilities().feature_gates["DynamicResourceAllocation"]


def test_without_dra_nothing_of_its_group_is_served(open_target: Open) -> None:
    target = open_target(
        kubernetes_version="1.36.0", feature_gates={"DynamicResourceAllocation": False}
    )
    assert not any("resource.k8s.io" in api for api in target.capabilities().served_apis)
    scope = new_scope(target)
    with pytest.raises(ApiError) as refused:
        scope.create(kit.claim("c"))
    assert refused.value.code == 404
    with pytest.raises(ApiError):
        scope.find(Query(kit.DRA, "ResourceSlice"))
    scope.create(kit.pod("p", claims={"g": "c"}))
    assert "resourceClaims" not in kit.get(scope, kit.pod_ref("p"))["spec"]


def test_a_kind_whose_gate_is_off_is_not_served_at_all(open_target: Open) -> None:
    scope = new_scope(open_target(feature_gates={"DRADeviceTaintRules": False}))
    with pytest.raises(ApiError, match="could not find the requested resource"):
        scope.get(Ref(kit.DRA, "DeviceTaintRule", "r"))
