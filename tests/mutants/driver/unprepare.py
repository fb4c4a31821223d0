"""Defects of a driver that does not undo all that preparing did: the next claim pays for it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from conformance.targets.reference.nvml import NvmlDriver
from kube.values import Obj
from kubesim.nodes.driver import DriverError
from kubesim.store import uid_of
from kubesim.world import World
from tests.mutants.driver.preparation import drivers
from tests.mutants.replacing import Defects, Original, replace

Taken = Callable[[NvmlDriver, str], set[str]]


Wants = Callable[[Obj], set[str]]


def every_device(allocated: Obj) -> set[str]:
    return {result["device"] for result in allocated["results"]}


def refuses_devices(world: World, taken: Taken, wants: Wants = every_device) -> None:
    """Devices are refused to other claims after a claim was unprepared.

    Args:
        world: whose drivers they are.
        taken: called before a claim is unprepared; its devices that are not given back.
        wants: of a claim's ``status.allocation.devices``, those that are then refused.
    """
    for driver in drivers(world):
        assert isinstance(driver, NvmlDriver)
        holders: dict[str, str] = {}

        def prepare(original: Original, claim: Obj, holders: dict[str, str] = holders) -> Any:
            for name in wants(claim["status"]["allocation"]["devices"]):
                if holders.get(name, uid_of(claim)) != uid_of(claim):
                    raise DriverError(f"device {name} is still prepared for {holders[name]}")
            return original(claim)

        def unprepare(
            original: Callable[[str], None],
            uid: str,
            holders: dict[str, str] = holders,
            driver: NvmlDriver = driver,
        ) -> None:
            holders.update(dict.fromkeys(taken(driver, uid), uid))
            original(uid)

        replace(driver.prepare, prepare)
        replace(driver.unprepare, unprepare)


def all_but_one_of_a_request(driver: NvmlDriver, uid: str) -> set[str]:
    """The driver knows devices by their request, and finds one of each when it gives them back."""
    record = driver._core._checkpoint.get(uid)
    devices = record.devices if record is not None else ()
    found = {device.request_names: device.device_name for device in devices}
    return {device.device_name for device in devices} - {*found.values()}


def to_be_configured(allocated: Obj) -> set[str]:
    return {
        result["device"]
        for result in allocated["results"]
        for item in allocated.get("config") or []
        if result["request"] in (item.get("requests") or [result["request"]])
    }


def configured(driver: NvmlDriver, uid: str) -> set[str]:
    """What was configured for a claim stays so, and cannot be configured for another one."""
    record = driver._core._checkpoint.get(uid)
    devices = record.devices if record is not None else ()
    return {device.device_name for device in devices if device.settings}


DEFECTS: Defects = {
    "driver-configures-a-device-once": lambda world: refuses_devices(
        world, configured, to_be_configured
    ),
    "driver-frees-one-device-of-a-request": lambda world: refuses_devices(
        world, all_but_one_of_a_request
    ),
}
