"""Defects of features that devices of several drivers have together, and of admin access."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Final

from kube.values import Obj, User
from kubesim.apiserver.authorization import Authorizer
from kubesim.scheduling.listers import Listers
from kubesim.world import World
from tests.mutants.allocation.inputs import (
    constraints_of,
    devices,
    reads,
    reads_claims,
    refuses_all,
    results,
    wanted,
    writes,
)
from tests.mutants.replacing import Defects, instead

_DRIVER: Final = re.compile(r"device\.driver == [\"'\\]*([^\"'\\]+)")


def within_a_driver(world: World) -> None:
    """matchAttribute is ignored in claims whose classes are for devices of several drivers."""

    def drivers(claim: Obj) -> set[str]:
        classes = (
            world.cluster.store.get("DeviceClass", "", item["deviceClassName"])
            for item in wanted(claim)
        )
        return {name for one in classes for name in _DRIVER.findall(str(one))}

    def change(claim: Obj) -> None:
        found = constraints_of(claim)
        if len(drivers(claim)) > 1:
            found[:] = [one for one in found if "matchAttribute" not in one]

    reads_claims(change)(world)


def first_driver_of_a_request(allocation: Obj) -> None:
    found = results(allocation)
    first: dict[str, str] = {}
    found[:] = [r for r in found if first.setdefault(r["request"], r["driver"]) == r["driver"]]


def counter_sets(world: World, driver: str, pool: str) -> Iterator[str]:
    for item in world.cluster.list_slices():
        if (item["spec"]["driver"], item["spec"]["pool"]["name"]) == (driver, pool):
            for device in devices(item):
                for consumed in device.get("consumesCounters") or []:
                    yield consumed["counterSet"]


def pools_of_one_name(world: World, pairs: list[tuple[Obj, Obj]]) -> bool:
    """Pools of two drivers with one name have their counter sets in common."""
    pools = {(r["driver"], r["pool"]) for _, found in pairs for r in results(found)}
    return any(
        one < other
        and one[1] == other[1]
        and {*counter_sets(world, *one)} & {*counter_sets(world, *other)}
        for one in pools
        for other in pools
    )


def all_for_admin_access(claim: Obj) -> None:
    found = results(claim["status"].get("allocation") or {})
    if any(result.get("adminAccess") for result in found):
        for result in found:
            result["adminAccess"] = True


def config_of_each_device(allocation: Obj) -> None:
    found, devices = results(allocation), allocation["devices"]
    if devices.get("config"):
        devices["config"] = [
            entry
            for entry in devices["config"]
            for result in found
            if result["request"] in entry.get("requests", [result["request"]])
        ]


@instead(Authorizer._check_device_reports)
def one_of_the_drivers(
    _: World, original: Callable[..., list[object]], user: User, wanted: Obj, new: Obj, old: Obj
) -> list[object]:
    """Whoever may report for one of the drivers whose reports change may change them all."""
    changed = [one for one in new.get("devices") or [] if one not in (old.get("devices") or [])]
    errors = original(user, wanted, new, old)
    return errors if len(errors) >= len({one["driver"] for one in changed}) else []


DEFECTS: Defects = {
    "authorizes-by-one-of-several-drivers": one_of_the_drivers,
    "config-is-listed-for-each-device": writes(config_of_each_device),
    "all-mode-takes-one-driver": writes(first_driver_of_a_request),
    "claims-with-admin-access-take-nothing": reads(Listers.resource_claims, all_for_admin_access),
    "match-attribute-holds-within-a-driver": within_a_driver,
    "mixes-up-counters-of-drivers": refuses_all(pools_of_one_name),
}
