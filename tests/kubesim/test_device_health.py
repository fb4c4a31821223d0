"""``allocatedResourcesStatus`` of containers: which gates and versions show it."""

from __future__ import annotations

from typing import Any

import pytest

from conformance.targets.reference.scope import ReferenceScope
from kube.base.errors import TargetError
from kube.values import Query
from tests.kubesim import kit
from tests.kubesim.conftest import Open, new_scope


@pytest.mark.parametrize(
    ("options", "keys"),
    [
        (
            {
                "feature_gates": {
                    "ResourceHealthStatus": False,
                    "ResourceHealthStatusMessage": False,
                }
            },
            set(),
        ),
        ({"feature_gates": {"ResourceHealthStatusMessage": False}}, {"resourceID", "health"}),
        ({}, {"resourceID", "health", "message"}),
        ({"kubernetes_version": "1.35.4"}, set()),
    ],
    ids=["no status", "no message", "the defaults", "before 1.36"],
)
def test_gates_say_what_is_shown(open_target: Open, options: Any, keys: set[str]) -> None:
    scope = new_scope(open_target(**options))
    scope.create(kit.device_class())
    scope.create(kit.claim("a", kit.request(allocationMode="All")))
    scope.create(kit.pod("p", claims={"c": "a"}))
    kit.runs(scope, "p")
    [published] = scope.find(Query(kit.DRA, "ResourceSlice"))
    for device in published["spec"]["devices"]:
        scope.faults.set_health(kit.NODE, device, "Unhealthy")
    [container] = kit.get(scope, kit.pod_ref("p"))["status"]["containerStatuses"]
    shown = container.get("allocatedResourcesStatus", [])
    assert {key for item in shown for each in item["resources"] for key in each} == keys


def test_a_node_without_a_driver_cannot_be_told(scope: ReferenceScope) -> None:
    with pytest.raises(TargetError, match="no driver on nowhere that takes device health"):
        scope.faults.set_health("nowhere", {"name": "gpu-0"}, "Unhealthy")


def test_health_is_unknown_when_an_instance_ends_until_another_one_tells_it_again(
    scope: ReferenceScope,
) -> None:
    def health() -> str:
        status = kit.get(scope, kit.pod_ref("p"))["status"]["containerStatuses"][0]
        [claim] = status["allocatedResourcesStatus"]
        return str(claim["resources"][0]["health"])

    scope.create(kit.claim("c"))
    scope.create(kit.pod("p", claims={"g": "c"}))
    kit.runs(scope, "p")
    assert health() == "Healthy"
    scope.faults.disturb("driver", "startNext")
    scope.faults.disturb("driver", "killNext")
    assert health() == "Unknown"
    scope.pause(11)
    assert health() == "Healthy"
