"""How faults of the scheduler show.

Each function says whether the symptom of the fault of its name is there.
"""

from __future__ import annotations

from collections.abc import Callable

from conformance.targets.reference.scope import ReferenceScope
from tests.mutants.faults import Fault
from tests.targets.reference import kit
from tests.targets.reference.situations import CONFIG, NEVER, goes_on_after, run, shared


def all_may_be_none(scope: ReferenceScope) -> bool:
    wanted = kit.request(allocationMode="All", selectors=NEVER)
    return run(scope, kit.claim("c", wanted))["status"].get("allocation") is not None


def all_takes_one(scope: ReferenceScope) -> bool:
    return len(kit.devices(run(scope, kit.claim("c", kit.request(allocationMode="All"))))) == 1


def any_node(scope: ReferenceScope) -> bool:
    scope.create(kit.node("node-a"))
    run(scope, kit.claim("c"))
    return bool(kit.get(scope, kit.pod_ref("c"))["spec"]["nodeName"] != kit.NODE)


def claim_config_first(scope: ReferenceScope) -> bool:
    scope.create(kit.device_class("configured", config=CONFIG))
    claim = run(scope, kit.claim("c", kit.request(class_name="configured"), config=CONFIG))
    sources = [item["source"] for item in claim["status"]["allocation"]["devices"]["config"]]
    return sources == ["FromClaim", "FromClass"]


def double_allocation(scope: ReferenceScope) -> bool:
    return kit.devices(run(scope, kit.claim("a"))) == kit.devices(run(scope, kit.claim("b")))


def forgets_reservation(scope: ReferenceScope) -> bool:
    claim = run(scope, kit.claim("c"))
    return "allocation" in claim["status"] and "reservedFor" not in claim["status"]


def ignore_match_attribute(scope: ReferenceScope) -> bool:
    constraints = [{"matchAttribute": f"{kit.DRIVER}/uuid"}]
    return bool(
        kit.devices(run(scope, kit.claim("c", kit.request(count=2), constraints=constraints)))
    )


def ignore_selectors(scope: ReferenceScope) -> bool:
    return bool(kit.devices(run(scope, kit.claim("c", kit.request(selectors=NEVER)))))


def ignores_count(scope: ReferenceScope) -> bool:
    return len(kit.devices(run(scope, kit.claim("c", kit.request(count=3))))) == 1


def ignores_extended_resources(scope: ReferenceScope) -> bool:
    scope.create(kit.device_class("extended", extendedResourceName="example.com/gpu"))
    limits = {"limits": {"example.com/gpu": "1"}}
    scope.create(kit.pod("p", kit.container(resources=limits)))
    scope.pause(10)
    return kit.phase(scope, "p") == "Pending"


def loses_config(scope: ReferenceScope) -> bool:
    run(scope, kit.claim("c", config=CONFIG))
    view = scope.observe("c", "ctr0")
    assert view is not None
    return not any(name.endswith("SHARING_STRATEGY") for name in view.environment)


def misses_new_claim(scope: ReferenceScope) -> bool:
    return not goes_on_after(scope, kit.pod("p", claims={"g": "c"}), kit.claim("c"))


def misses_new_class(scope: ReferenceScope) -> bool:
    scope.create(kit.claim("c", kit.request(class_name="late")))
    return not goes_on_after(scope, kit.pod("p", claims={"g": "c"}), kit.device_class("late"))


def misses_new_slice(scope: ReferenceScope) -> bool:
    selectors = [{"cel": {"expression": 'device.driver == "late.example.com"'}}]
    scope.create(kit.device_class("late", selectors=selectors))
    scope.create(kit.claim("c", kit.request(class_name="late")))
    late = kit.resource_slice("s", kit.NODE, "late.example.com", {"name": "d"})
    return not goes_on_after(scope, kit.pod("p", claims={"g": "c"}), late)


def misses_release(scope: ReferenceScope) -> bool:
    run(scope, kit.claim("a", kit.request(count=4)))
    run(scope, kit.claim("b"))
    scope.delete(kit.pod_ref("a"))
    scope.pause(60)
    return kit.phase(scope, "b") == "Pending"


def no_finalizer(scope: ReferenceScope) -> bool:
    return "finalizers" not in run(scope, kit.claim("c"))["metadata"]


def no_node_selector(scope: ReferenceScope) -> bool:
    return "nodeSelector" not in run(scope, kit.claim("c"))["status"]["allocation"]


def no_sharing(scope: ReferenceScope) -> bool:
    shared(scope)
    return kit.phase(scope, "second") == "Pending"


def one_device_for_all_requests(scope: ReferenceScope) -> bool:
    devices = kit.devices(run(scope, kit.claim("c", kit.request("one"), kit.request("two"))))
    return len(devices) == 2 and len(set(devices)) == 1


def other_namespace(scope: ReferenceScope) -> bool:
    scope.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "other"}})
    claim = kit.claim("c")
    claim["metadata"]["namespace"] = "other"
    scope.create(claim)
    scope.create(kit.pod("p", claims={"g": "c"}))
    scope.pause(10)
    return scope.observe("p", "ctr0") is not None and bool(kit.seen(scope, "p"))


def says_no_reason(scope: ReferenceScope) -> bool:
    run(scope, kit.claim("c", kit.request(selectors=NEVER)))
    return not kit.get(scope, kit.pod_ref("c"))["status"].get("conditions")


def selectors_see_no_attributes(scope: ReferenceScope) -> bool:
    expression = f"'type' in device.attributes['{kit.DRIVER}']"
    scope.create(kit.device_class("any", selectors=[{"cel": {"expression": expression}}]))
    return not kit.devices(run(scope, kit.claim("c", kit.request(class_name="any"))))


SYMPTOMS: dict[Fault, Callable[[ReferenceScope], bool]] = {
    Fault.ALL_MAY_BE_NONE: all_may_be_none,
    Fault.ALL_TAKES_ONE: all_takes_one,
    Fault.ANY_NODE: any_node,
    Fault.CLAIM_CONFIG_FIRST: claim_config_first,
    Fault.DOUBLE_ALLOCATION: double_allocation,
    Fault.FORGETS_RESERVATION: forgets_reservation,
    Fault.IGNORE_MATCH_ATTRIBUTE: ignore_match_attribute,
    Fault.IGNORE_SELECTORS: ignore_selectors,
    Fault.IGNORES_COUNT: ignores_count,
    Fault.IGNORES_EXTENDED_RESOURCES: ignores_extended_resources,
    Fault.LOSES_CONFIG: loses_config,
    Fault.MISSES_NEW_CLAIM: misses_new_claim,
    Fault.MISSES_NEW_CLASS: misses_new_class,
    Fault.MISSES_NEW_SLICE: misses_new_slice,
    Fault.MISSES_RELEASE: misses_release,
    Fault.NO_FINALIZER: no_finalizer,
    Fault.NO_NODE_SELECTOR: no_node_selector,
    Fault.NO_SHARING: no_sharing,
    Fault.ONE_DEVICE_FOR_ALL_REQUESTS: one_device_for_all_requests,
    Fault.OTHER_NAMESPACE: other_namespace,
    Fault.SAYS_NO_REASON: says_no_reason,
    Fault.SELECTORS_SEE_NO_ATTRIBUTES: selectors_see_no_attributes,
}
