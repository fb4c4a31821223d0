"""How faults in optional features of DRA show.

Each function says whether the symptom of the fault of its name is there.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from conformance.targets.base import ApiError, Obj, Ref
from conformance.targets.reference.scope import ReferenceScope
from tests.mutants.faults import Fault
from tests.targets.reference import kit
from tests.targets.reference.situations import run

DRIVER = "symptoms.example.com"
TAINT = {"key": "example.com/broken", "effect": "NoSchedule"}
RULE = Ref(kit.DRA, "DeviceTaintRule", "rule")


def publish(scope: ReferenceScope, *devices: Obj, **spec: Any) -> None:
    """Devices of a driver of their own on the node, and their class ``symptoms``."""
    selectors = [{"cel": {"expression": f'device.driver == "{DRIVER}"'}}]
    scope.create(kit.device_class("symptoms", selectors=selectors))
    made = kit.resource_slice("symptoms", kit.NODE, DRIVER, *devices)
    made["spec"] |= spec
    scope.create(made)


def claim(name: str, **exactly: Any) -> Obj:
    return kit.claim(name, kit.request(class_name="symptoms", **exactly))


def rule(effect: str = "NoSchedule") -> Obj:
    selector = {"driver": DRIVER}
    return {
        "apiVersion": kit.DRA,
        "kind": "DeviceTaintRule",
        "metadata": {"name": "rule"},
        "spec": {"deviceSelector": selector, "taint": {**TAINT, "effect": effect}},
    }


def taken(scope: ReferenceScope, asked: Obj) -> list[str]:
    """The devices that a claim got, for a pod of the same name."""
    return kit.devices(run(scope, asked))


def is_bound(scope: ReferenceScope, name: str) -> bool:
    return "nodeName" in kit.get(scope, kit.pod_ref(name))["spec"]


def allow_admin_access(scope: ReferenceScope) -> None:
    labels = {"resource.kubernetes.io/admin-access": "true"}
    scope.patch(Ref("v1", "Namespace", scope.namespace), {"metadata": {"labels": labels}})


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


def admin_access_anywhere(scope: ReferenceScope) -> bool:
    try:
        scope.create(kit.claim("c", kit.request(adminAccess=True)))
    except ApiError:
        return False
    return True


def admin_access_needs_free_device(scope: ReferenceScope) -> bool:
    publish(scope, {"name": "d0"})
    allow_admin_access(scope)
    assert taken(scope, claim("worker")) == ["d0"]
    return taken(scope, claim("admin", adminAccess=True)) == []


def loses_admin_access(scope: ReferenceScope) -> bool:
    allow_admin_access(scope)
    found = run(scope, kit.claim("c", kit.request(adminAccess=True)))
    return "adminAccess" not in found["status"]["allocation"]["devices"]["results"][0]


def binds_at_once(scope: ReferenceScope) -> bool:
    publish(scope, {"name": "d0", "bindingConditions": ["example.com/ready"]})
    run(scope, claim("c"))
    early = is_bound(scope, "c")
    report(scope, "c", "example.com/ready")
    assert is_bound(scope, "c")
    return early


def ignores_binding_failure(scope: ReferenceScope) -> bool:
    conditional = {
        "name": "d0",
        "bindingConditions": ["example.com/ready"],
        "bindingFailureConditions": ["example.com/failed"],
    }
    publish(scope, conditional)
    run(scope, claim("c"))
    tainted = [{**conditional, "taints": [TAINT]}, {"name": "d1"}]
    scope.patch(Ref(kit.DRA, "ResourceSlice", "symptoms"), {"spec": {"devices": tainted}})
    report(scope, "c", "example.com/failed")
    return kit.devices(kit.get(scope, kit.claim_ref("c"))) == ["d0"]


def ignores_consumed_capacity(scope: ReferenceScope) -> bool:
    publish(
        scope,
        {"name": "d0", "allowMultipleAllocations": True, "capacity": {"b": {"value": "10"}}},
    )
    assert taken(scope, claim("first", capacity={"requests": {"b": "6"}})) == ["d0"]
    return taken(scope, claim("second", capacity={"requests": {"b": "6"}})) == ["d0"]


def ignores_request_policy(scope: ReferenceScope) -> bool:
    policy = {"default": "2", "validRange": {"min": "2", "step": "2"}}
    capacity = {"b": {"value": "10", "requestPolicy": policy}}
    publish(scope, {"name": "d0", "allowMultipleAllocations": True, "capacity": capacity})
    found = run(scope, claim("c", capacity={"requests": {"b": "3"}}))
    [result] = found["status"]["allocation"]["devices"]["results"]
    return bool(result["consumedCapacity"] == {"b": "3"})


def ignores_counters(scope: ReferenceScope) -> bool:
    pool = {"name": kit.NODE, "generation": 1, "resourceSliceCount": 2}
    counters = kit.resource_slice("counters", kit.NODE, DRIVER)
    del counters["spec"]["devices"]
    sets = [{"name": "gpu", "counters": {"memory": {"value": "40Gi"}}}]
    counters["spec"] |= {"pool": pool, "sharedCounters": sets}
    uses = [{"counterSet": "gpu", "counters": {"memory": {"value": "40Gi"}}}]
    scope.create(counters)
    parts = [{"name": name, "consumesCounters": uses} for name in ("d0", "d1")]
    publish(scope, *parts, pool=pool)
    return taken(scope, claim("c", count=2)) != []


def ignores_device_taints(scope: ReferenceScope) -> bool:
    publish(scope, {"name": "d0", "taints": [TAINT]})
    return taken(scope, claim("c")) == ["d0"]


def ignores_tolerations(scope: ReferenceScope) -> bool:
    publish(scope, {"name": "d0", "taints": [TAINT]})
    return taken(scope, claim("c", tolerations=[{"operator": "Exists"}])) == []


def ignores_taint_rules(scope: ReferenceScope) -> bool:
    scope.create(rule())
    publish(scope, {"name": "d0"})
    return taken(scope, claim("c")) == ["d0"]


def misses_lifted_taint(scope: ReferenceScope) -> bool:
    scope.create(rule())
    publish(scope, {"name": "d0"})
    assert taken(scope, claim("c")) == []
    scope.delete(RULE)
    scope.pause(60)
    return not is_bound(scope, "c")


def no_dry_run(scope: ReferenceScope) -> bool:
    scope.create(rule("None"))
    [condition] = kit.get(scope, RULE)["status"]["conditions"]
    return bool(condition["reason"] != "NoEffect")


def no_eviction(scope: ReferenceScope) -> bool:
    publish(scope, {"name": "d0"})
    run(scope, claim("c"))
    assert is_bound(scope, "c")
    scope.create(rule("NoExecute"))
    scope.pause(60)
    return scope.get(kit.pod_ref("c")) is not None


def ignores_node_resources(scope: ReferenceScope) -> bool:
    gated = {"status": {"declaredFeatures": ["DRANodeAllocatableResources"]}}
    scope.patch(Ref("v1", "Node", kit.NODE), gated, "status")
    mapped = {"cpu": {"mapping": {"deviceMultiplier": "40"}}}
    devices = [{"name": name, "nodeAllocatableResources": mapped} for name in ("d0", "d1")]
    publish(scope, *devices)
    assert taken(scope, claim("first")) == ["d0"]
    return taken(scope, claim("second")) == ["d1"]


def keeps_device_status(scope: ReferenceScope) -> bool:
    publish(scope, {"name": "d0"})
    run(scope, claim("c"))
    report(scope, "c", "Ready")
    scope.delete(kit.pod_ref("c"))
    scope.pause(60)
    return "devices" in kit.get(scope, kit.claim_ref("c"))["status"]


def last_alternative_first(scope: ReferenceScope) -> bool:
    alternatives = [
        {"name": name, "deviceClassName": kit.CLASS, "count": count}
        for name, count in (("two", 2), ("one", 1))
    ]
    return len(taken(scope, kit.claim("c", {"name": "r", "firstAvailable": alternatives}))) == 1


def evicts_at_once(scope: ReferenceScope) -> bool:
    publish(scope, {"name": "d0"})
    patience = {"operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 60}
    assert taken(scope, claim("c", tolerations=[patience])) == ["d0"]
    scope.create(rule("NoExecute"))
    scope.pause(10)
    return scope.get(kit.pod_ref("c")) is None


def ignores_device_plugins(scope: ReferenceScope) -> bool:
    scope.create(kit.device_class("extended", extendedResourceName="example.com/gpu"))
    allocatable = {"status": {"allocatable": {"example.com/gpu": "4"}}}
    scope.patch(Ref("v1", "Node", kit.NODE), allocatable, "status")
    limits = {"limits": {"example.com/gpu": "1"}}
    scope.create(kit.pod("p", kit.container(resources=limits)))
    scope.pause(10)
    assert is_bound(scope, "p")
    return kit.claims_of(scope) != []


def shares_node_resources(scope: ReferenceScope) -> bool:
    gated = {"status": {"declaredFeatures": ["DRANodeAllocatableResources"]}}
    scope.patch(Ref("v1", "Node", kit.NODE), gated, "status")
    mapped = {"cpu": {"mapping": {"deviceMultiplier": "4"}}}
    publish(scope, {"name": "d0", "nodeAllocatableResources": mapped})
    assert taken(scope, claim("c")) == ["d0"]
    scope.create(kit.pod("other", claims={"g": "c"}))
    scope.pause(10)
    return is_bound(scope, "other")


SYMPTOMS: dict[Fault, Callable[[ReferenceScope], bool]] = {
    Fault.ADMIN_ACCESS_ANYWHERE: admin_access_anywhere,
    Fault.ADMIN_ACCESS_NEEDS_FREE_DEVICE: admin_access_needs_free_device,
    Fault.BINDS_AT_ONCE: binds_at_once,
    Fault.EVICTS_AT_ONCE: evicts_at_once,
    Fault.IGNORES_BINDING_FAILURE: ignores_binding_failure,
    Fault.IGNORES_CONSUMED_CAPACITY: ignores_consumed_capacity,
    Fault.IGNORES_COUNTERS: ignores_counters,
    Fault.IGNORES_DEVICE_PLUGINS: ignores_device_plugins,
    Fault.IGNORES_DEVICE_TAINTS: ignores_device_taints,
    Fault.IGNORES_NODE_RESOURCES: ignores_node_resources,
    Fault.IGNORES_REQUEST_POLICY: ignores_request_policy,
    Fault.IGNORES_TAINT_RULES: ignores_taint_rules,
    Fault.IGNORES_TOLERATIONS: ignores_tolerations,
    Fault.KEEPS_DEVICE_STATUS: keeps_device_status,
    Fault.LAST_ALTERNATIVE_FIRST: last_alternative_first,
    Fault.LOSES_ADMIN_ACCESS: loses_admin_access,
    Fault.MISSES_LIFTED_TAINT: misses_lifted_taint,
    Fault.NO_DRY_RUN: no_dry_run,
    Fault.NO_EVICTION: no_eviction,
    Fault.SHARES_NODE_RESOURCES: shares_node_resources,
}
