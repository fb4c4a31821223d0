"""Defects in what an allocation says: devices, configuration, conditions."""

from __future__ import annotations

from collections.abc import Callable
from itertools import groupby

from kube.values import Obj
from kubesim.scheduling.listers import Listers
from kubesim.store import clone
from kubesim.world import World
from tests.mutants.allocation.inputs import (
    asked,
    devices,
    pool_of,
    reads,
    requests,
    results,
    wanted,
    without_device_field,
    writes,
)
from tests.mutants.allocation.views import answers
from tests.mutants.replacing import Defects, Mutation, replace


def config(allocation: Obj) -> list[Obj]:
    found: list[Obj] = allocation["devices"].get("config") or []
    return found


def reverse_config(allocation: Obj) -> None:
    groups = groupby(config(allocation), key=lambda item: item["source"])
    turned = [item for _, group in groups for item in reversed([*group])]
    config(allocation)[:] = turned


def configs(source: str, change: Callable[[list[str]], list[str]]) -> Mutation:
    """Configuration is for other requests; where it would be for none, it is gone."""

    def write(allocation: Obj) -> None:
        for item in [*config(allocation)]:
            listed = item.get("requests") or []
            if item["source"] == source and listed:
                item["requests"] = change(listed)
                if not item["requests"]:
                    del item["requests"]

    return writes(write)


def drivers_of_devices(allocation: Obj) -> None:
    drivers = {result["driver"] for result in results(allocation)}
    found = config(allocation)
    found[:] = [x for x in found if (x.get("opaque") or {}).get("driver") in drivers]


def first_alternatives_class(world: World, _node: Obj, claim: Obj, allocation: Obj) -> None:
    """Configuration of a class is that of the first alternative's, whichever was taken."""
    chosen = {result["request"] for result in results(allocation)}
    for request in requests(claim):
        for item in request.get("firstAvailable") or []:
            name = f"{request['name']}/{item['name']}"
            first = request["firstAvailable"][0]["deviceClassName"]
            if name in chosen and item["deviceClassName"] != first:
                device_class = world.cluster.store.get("DeviceClass", "", first) or {}
                own = (device_class.get("spec") or {}).get("config") or []
                kept = [x for x in config(allocation) if x["source"] == "FromClaim"]
                new = [{**clone(x), "source": "FromClass", "requests": [name]} for x in own]
                allocation["devices"]["config"] = new + kept


def without_config_for(names: Callable[[Obj], set[str]]) -> Mutation:
    """Configuration of a claim that is for these requests is not copied."""

    def change(_world: World, _node: Obj, claim: Obj, allocation: Obj) -> None:
        lost = names(claim)
        found = config(allocation)
        mine = (claim["spec"].get("devices") or {}).get("config") or []
        gone = [x.get("opaque") for x in mine if not lost.isdisjoint(x.get("requests") or [])]
        found[:] = [x for x in found if x["source"] == "FromClass" or x.get("opaque") not in gone]

    return answers(change)


def with_alternatives(claim: Obj) -> set[str]:
    return {request["name"] for request in requests(claim) if request.get("firstAvailable")}


def alternatives(claim: Obj) -> set[str]:
    return {
        f"{request['name']}/{item['name']}"
        for request in requests(claim)
        for item in request.get("firstAvailable") or []
    }


def lose(field: str) -> Mutation:
    def write(allocation: Obj) -> None:
        for result in results(allocation):
            result.pop(field, None)

    return writes(write)


def of_first_result(field: str) -> Mutation:
    """All devices of a claim have what is said of the first."""

    def write(allocation: Obj) -> None:
        for result in results(allocation):
            result.pop(field, None) if result is not results(allocation)[0] else None
            if field in results(allocation)[0]:
                result[field] = clone(results(allocation)[0])[field]

    return writes(write)


def one_share_id(allocation: Obj) -> None:
    for result in results(allocation):
        if "shareID" in result:
            result["shareID"] = "00000000-0000-4000-8000-000000000000"


def no_zeroes(allocation: Obj) -> None:
    for result in results(allocation):
        found = result.get("consumedCapacity") or {}
        result["consumedCapacity"] = {k: v for k, v in found.items() if v != "0"}
        if not result["consumedCapacity"]:
            del result["consumedCapacity"]


def what_was_asked(_world: World, _node: Obj, claim: Obj, allocation: Obj) -> None:
    for result in results(allocation):
        if "consumedCapacity" in result:
            result["consumedCapacity"] |= asked(claim, result)


def only_what_was_asked(_world: World, _node: Obj, claim: Obj, allocation: Obj) -> None:
    for result in results(allocation):
        if found := result.get("consumedCapacity"):
            names = asked(claim, result)
            result["consumedCapacity"] = {k: v for k, v in found.items() if k in names}


def of_whole_devices(world: World, _node: Obj, _claim: Obj, allocation: Obj) -> None:
    """A device that is not shared is said to be consumed as a whole."""
    for result in results(allocation):
        for item in world.cluster.list_slices():
            for device in devices(item):
                same = (*pool_of(item), device["name"]) == _place(result)
                if same and device.get("capacity") and "shareID" not in result:
                    found = {k: v["value"] for k, v in device["capacity"].items()}
                    result["consumedCapacity"] = found


def _place(result: Obj) -> tuple[str, str, str]:
    return result["driver"], result["pool"], result["device"]


def admin_access_for_all(allocation: Obj) -> None:
    if any(result.get("adminAccess") for result in results(allocation)):
        for result in results(allocation):
            result["adminAccess"] = True


def says_false(claim: Obj) -> bool:
    return any(item.get("adminAccess") is False for item in wanted(claim))


def false_is_admin(_world: World, _node: Obj, claim: Obj, allocation: Obj) -> None:
    if says_false(claim):
        for result in results(allocation):
            result["adminAccess"] = True


def ignores_taint_rules(world: World) -> None:
    listers, store = world.scheduler.filter.listers, world.cluster.store
    replace(listers.resource_slices, lambda _: store.all("ResourceSlice"))


def lose_config(allocation: Obj) -> None:
    (allocation.get("devices") or {}).pop("config", None)


def claim_config_first(allocation: Obj) -> None:
    config = (allocation.get("devices") or {}).get("config") or []
    config.sort(key=lambda item: item["source"] != "FromClaim")


DEFECTS: Defects = {
    "admin-access-spreads-in-a-claim": writes(admin_access_for_all),
    "any-admin-access-is-admin-access": answers(false_is_admin),
    "class-config-for-all-requests": configs("FromClass", lambda _: []),
    "class-config-for-first-request-only": configs("FromClass", lambda listed: listed[:1]),
    "class-config-of-first-alternative": answers(first_alternatives_class),
    "claim-config-for-first-request-only": configs("FromClaim", lambda listed: listed[:1]),
    "config-for-alternatives-is-lost": without_config_for(alternatives),
    "config-for-requests-with-alternatives-is-lost": without_config_for(with_alternatives),
    "conditions-of-first-device": of_first_result("bindingConditions"),
    "drops-config-of-absent-drivers": writes(drivers_of_devices),
    "drops-zero-consumption": writes(no_zeroes),
    "loses-failure-conditions": lose("bindingFailureConditions"),
    "loses-skipped-operations": lose("skipNodeOperations"),
    "reverses-config": writes(reverse_config),
    "share-ids-repeat": writes(one_share_id),
    "tells-consumption-before-rounding": answers(what_was_asked),
    "tells-consumption-of-what-was-asked-only": answers(only_what_was_asked),
    "tells-consumption-of-whole-devices": answers(of_whole_devices),
    "claim-config-first": writes(claim_config_first),
    "ignores-device-taints": reads(Listers.resource_slices, without_device_field("taints")),
    "ignores-taint-rules": ignores_taint_rules,
    "loses-config": writes(lose_config),
}
