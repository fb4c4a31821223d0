"""Tells what happened to MIG devices without this driver: which came, changed or vanished.

Anybody who may run ``nvidia-smi mig`` can make MIG devices and destroy them, also those that a
claim has. What this driver made is known from the checkpoint; all else is somebody else's.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from nvml_driver.model.inventory import Inventory, MigInstance
from nvml_driver.model.prepared import ClaimRecord, ClaimState, PreparedDevice


@dataclass(frozen=True, slots=True, kw_only=True)
class MigState:
    """All MIG devices of a node; ``modes``: ``gpu-<minor>`` -> in MIG mode, if it is known."""

    modes: Mapping[str, bool] = field(default_factory=dict)
    instances: tuple[MigInstance, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class MigChanges:
    """The changes of MIG devices that others made behind the driver's back.

    ``outdated``: the inventory does not show the MIG devices that exist now.

    ``vanished``: name of a device that is prepared and gone -> the claim in words.
    """

    outdated: bool
    vanished: Mapping[str, str]


def same_uuid(first: str | None, second: str | None) -> bool:
    """Return whether two UUIDs can be of one device; NVML does not always report them."""
    return first is None or second is None or first == second


def is_own(instance: MigInstance, records: Iterable[ClaimRecord]) -> bool:
    """Return whether this driver made a MIG device for one of the claims.

    A preparation that began has the place from then on, before NVML reports a UUID.
    """
    return any(
        device.place is not None
        and device.place.is_same(instance.place)
        and same_uuid(instance.uuid, None if device.made is None else device.made.uuid)
        for record in records
        for device in record.devices
        if device.makes_instance
    )


def instance_exists(device: PreparedDevice, instances: Iterable[MigInstance]) -> bool:
    """Return whether the MIG device of a prepared claim exists; always true for a full GPU."""
    if device.kind not in ("mig", "mig-partition") or device.place is None:
        return True
    uuid = device.uuid if device.made is None else device.made.uuid
    return any(
        instance.place.is_same(device.place)
        and instance.ci_id is not None
        and same_uuid(instance.uuid, uuid)
        for instance in instances
    )


def is_outdated(
    inventory: Inventory, state: MigState, is_own: Callable[[MigInstance], bool]
) -> bool:
    """Return whether devices must be discovered again, for other modes or others' MIG devices."""
    if any(state.modes.get(name, mode) != mode for name, mode in inventory.mig_modes.items()):
        return True
    published_instances = {
        instance
        for instance in inventory.foreign_instances
        if f"gpu-{instance.place.parent_minor}" in state.modes
    }
    return published_instances != {instance for instance in state.instances if not is_own(instance)}


def find_vanished(state: MigState, records: Iterable[ClaimRecord]) -> dict[str, str]:
    """Return the prepared devices that are gone, by name, with their claim in words."""
    return {
        device.device_name: str(record)
        for record in records
        if record.state is ClaimState.PREPARE_COMPLETED
        for device in record.devices
        if device.gpu_name in state.modes and not instance_exists(device, state.instances)
    }
