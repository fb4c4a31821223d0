"""Situations of pods, claims and devices that tests of the reference need."""

from __future__ import annotations

from typing import Any

from conformance.targets.reference.scope import ReferenceScope
from kube.values import Obj, Ref
from tests.kubesim import kit

DRIVER = "published.example.com"
TAINT = {"key": "example.com/broken", "effect": "NoSchedule"}
RULE = Ref(kit.DRA, "DeviceTaintRule", "rule")


def run(scope: ReferenceScope, claim: Obj, seconds: float = 10) -> Obj:
    """A pod with one claim, after some time; returns the claim."""
    scope.create(claim)
    name = claim["metadata"]["name"]
    scope.create(kit.pod(name, claims={"g": name}))
    scope.pause(seconds)
    return kit.get(scope, kit.claim_ref(name))


def publish(scope: ReferenceScope, *devices: Obj, **spec: Any) -> None:
    """Devices of a driver of their own on the node, and their class ``published``."""
    selectors = [{"cel": {"expression": f'device.driver == "{DRIVER}"'}}]
    scope.create(kit.device_class("published", selectors=selectors))
    made = kit.resource_slice("published", kit.NODE, DRIVER, *devices)
    made["spec"] |= spec
    scope.create(made)


def claim(name: str, **exactly: Any) -> Obj:
    return kit.claim(name, kit.request(class_name="published", **exactly))


def rule(effect: str = "NoSchedule") -> Obj:
    selector = {"driver": DRIVER}
    return {
        "apiVersion": kit.DRA,
        "kind": "DeviceTaintRule",
        "metadata": {"name": "rule"},
        "spec": {"deviceSelector": selector, "taint": {**TAINT, "effect": effect}},
    }


def is_bound(scope: ReferenceScope, name: str) -> bool:
    return "nodeName" in kit.get(scope, kit.pod_ref(name))["spec"]


def report(scope: ReferenceScope, name: str, *conditions: str) -> None:
    """What a driver says of the device d0 of a claim."""
    said = [
        {
            "type": condition,
            "status": "True",
            "reason": "Test",
            "message": "",
            "lastTransitionTime": "2026-01-01T00:00:00Z",
        }
        for condition in conditions
    ]
    device = {"driver": DRIVER, "pool": kit.NODE, "device": "d0", "conditions": said}
    scope.patch(kit.claim_ref(name), {"status": {"devices": [device]}}, "status")
    scope.pause(10)
