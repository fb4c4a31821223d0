"""Values for what is wrong with which GPU, as NVML reports it, and what that means for devices.

Conditions come from three places: XID events, GPUs that NVML has lost, and GPUs whose events
cannot be watched. They become device taints with the keys and effects of
kubernetes-sigs/dra-driver-nvidia-gpu (``device_health.go``), and health for the kubelet. What is
over leaves no taint behind (that driver's issue 1455), and a harmless XID never hides a critical
one.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Literal

from nvml_driver.model.inventory import Device, Health, Inventory, Taint

APPLICATION_XIDS = frozenset({13, 31, 43, 45, 68, 109})
"""Errors of applications, after which the GPU is healthy (docs.nvidia.com/deploy/xid-errors)."""

GONE_TAINT = "mig-gone"
"""Key of the taint of a MIG device that somebody destroyed while a claim has it."""

ConditionKind = Literal["xid", "gpu-lost", "unmonitored"]
_LONGEST = 512  # of a message; the kubelet cuts at 1024 bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Condition:
    """A problem of a GPU, or of a MIG device of it.

    Attributes:
        since: RFC 3339, whole seconds.
        fatal: whether the GPU should not be used; an XID of an application is not.
        gi_id: the GPU instance where it happened; None: the whole GPU.
        slices: first memory slice and number of slices of that GPU instance.
    """

    gpu: str
    kind: ConditionKind
    since: str
    xid: int | None = None
    fatal: bool = True
    gi_id: int | None = None
    slices: tuple[int, int] | None = None
    message: str = ""

    def concerns(self, device: Device) -> bool:
        """Return whether the problem is one of this device, too."""
        if device.gpu_name != self.gpu or device.kind == "vfio":
            return False
        if self.gi_id is None:
            return True
        if device.instance is not None:
            return device.instance.gi_id == self.gi_id
        if device.place is None or self.slices is None:
            return False  # the whole GPU cannot be allocated while it has GPU instances
        start, size = self.slices
        return start < device.place.start + device.place.size and device.place.start < start + size


@dataclass(frozen=True, slots=True, kw_only=True)
class HealthReport:
    """The state of all GPUs; a change of ``present`` (NVML shows them) asks for a new discovery."""

    conditions: tuple[Condition, ...] = ()
    present: frozenset[str] = frozenset()


def apply_health(inventory: Inventory, report: HealthReport, driver_name: str) -> Inventory:
    """Return the inventory with taints and health of a report, and none of an earlier one.

    ``driver_name`` is the domain of the taints' keys.
    """
    prefix = f"{driver_name}/"
    devices = []
    for device in inventory:
        conditions = [condition for condition in report.conditions if condition.concerns(device)]
        foreign = tuple(taint for taint in device.taints if not taint.key.startswith(prefix))
        health, message = _health_of(device, conditions)
        devices.append(
            replace(
                device,
                taints=(*foreign, *_taints_of(conditions, prefix)),
                health=health,
                health_message=message,
            )
        )
    return inventory.with_devices(tuple(devices))


@dataclass(frozen=True, slots=True)
class VanishedDevice:
    """A MIG device that was destroyed: the claim that has it, in words, and since when."""

    claim: str
    since: str


def keep_lost(discovered: Inventory, previous: Inventory, report: HealthReport) -> Inventory:
    """Return discovered devices with those of lost GPUs, which cannot be discovered now."""
    lost_gpus = {condition.gpu for condition in report.conditions if condition.kind == "gpu-lost"}
    lost_gpus -= {device.gpu_name for device in discovered}
    lost_devices = [device for device in previous if device.gpu_name in lost_gpus]
    if not lost_devices:
        return discovered
    used_counter_sets = {
        consumed.counter_set for device in lost_devices for consumed in device.consumes_counters
    }
    return replace(
        discovered,
        devices=(*discovered.devices, *lost_devices),
        counter_sets=(
            *discovered.counter_sets,
            *(shared for shared in previous.counter_sets if shared.name in used_counter_sets),
        ),
    )


def keep_vanished(
    inventory: Inventory,
    previous: Inventory,
    vanished: Mapping[str, VanishedDevice],
    *,
    driver_name: str,
) -> Inventory:
    """Return devices with those that a claim has and that are gone, unhealthy and with a taint.

    ``previous`` has the devices that are gone; ``vanished`` is by name of the device, and
    ``driver_name`` the domain of the taint's key.
    """
    devices = {device.name: device for device in inventory}
    for name, gone in vanished.items():
        device = devices.get(name) or previous.get(name)
        if device is None:
            continue  # it was gone before this driver started
        key = f"{driver_name}/{GONE_TAINT}"
        other_taints = tuple(taint for taint in device.taints if taint.key != key)
        message = f"the MIG device that {gone.claim} has was destroyed by another process"
        devices[name] = replace(
            device,
            taints=(*other_taints, Taint(key, "", "NoSchedule", gone.since)),
            health="Unhealthy",
            health_message=message[:_LONGEST],
        )
    return inventory.with_devices(tuple(devices.values()))


def _taints_of(conditions: Iterable[Condition], prefix: str) -> list[Taint]:
    """Return the latest taint for each key and effect, for the API takes only one of them."""
    taints: dict[tuple[str, str], Taint] = {}
    for condition in sorted(conditions, key=lambda reported: reported.since):
        effect: Literal["None", "NoSchedule"] = (
            "NoSchedule" if condition.fatal and condition.kind != "unmonitored" else "None"
        )
        value = "" if condition.xid is None else str(condition.xid)
        taint = Taint(f"{prefix}{condition.kind}", value, effect, condition.since)
        taints[taint.key, effect] = taint
    return [taints[key] for key in sorted(taints)]


def _health_of(device: Device, conditions: list[Condition]) -> tuple[Health, str]:
    """Return the health that the kubelet hears of a device, with a message."""
    if device.kind == "vfio":
        return "Unknown", "not watched: NVML does not see GPUs of vfio-pci"
    messages = "; ".join(condition.message for condition in conditions)[:_LONGEST]
    if any(condition.fatal and condition.kind != "unmonitored" for condition in conditions):
        return "Unhealthy", messages
    if any(condition.kind == "unmonitored" for condition in conditions):
        return "Unknown", messages
    return "Healthy", messages


def current_timestamp() -> str:
    """Return the present time as the API writes times: RFC 3339, whole seconds."""
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
