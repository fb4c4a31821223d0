"""Makes and destroys MIG devices for claims: the one thing that prepare does to hardware.

A seam of four calls, so that prepare, rollback and recovery can be tested without a GPU that has
MIG, and without the simulated one.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Protocol

from nvml_driver.errors import PrepareError
from nvml_driver.mig.state import MigState, instance_exists
from nvml_driver.model.inventory import MigInstance, MigPlace
from nvml_driver.model.prepared import PreparedDevice
from nvml_driver.storage import faults


class Partitions(Protocol):
    """The four operations that the driver needs of MIG."""

    def create_instance(self, place: MigPlace) -> MigInstance:
        """Make a MIG device; DriverError if that fails, and then nothing is left of it."""

    def find_instance(self, place: MigPlace) -> MigInstance | None:
        """Return a MIG device, or bare GPU instance, that overlaps the place; None if none does."""

    def destroy_instance(self, instance: MigInstance) -> None:
        """Destroy it; nothing happens if it does not exist. DriverError if it is in use."""

    def read_state(self) -> MigState:
        """Return all that exist, whoever made them. DriverError if NVML cannot be asked."""


def find_missing(partitions: Partitions, devices: Iterable[PreparedDevice]) -> list[PreparedDevice]:
    """Return those of a claim's MIG devices that somebody else has destroyed.

    Raises DriverError.
    """
    missing = []
    for device in devices:
        if device.kind in ("mig", "mig-partition") and device.place is not None:
            instance = partitions.find_instance(device.place)
            if not instance_exists(device, () if instance is None else (instance,)):
                missing.append(device)
    return missing


def refuse_missing(partitions: Partitions, devices: Iterable[PreparedDevice]) -> None:
    """Refuse a MIG device that is gone since it was published, before anything is made.

    Raises PrepareError or DriverError.
    """
    static = [device for device in devices if device.kind == "mig"]
    for device in find_missing(partitions, static):
        raise PrepareError(
            f"device {device.device_name}: this MIG device was destroyed since it was published"
        )


def refuse_foreign(partitions: Partitions, devices: Iterable[PreparedDevice]) -> None:
    """Refuse a place where somebody else has a MIG device, before anything is made (PrepareError).

    Rolling back destroys what is in the place, so it must be empty before.
    """
    for device in devices:
        if device.makes_instance and device.place is not None:
            instance = partitions.find_instance(device.place)
            if instance is not None:
                raise PrepareError(
                    f"device {device.device_name}: its place has a MIG device (GPU instance "
                    f"{instance.gi_id}) that this driver did not make; destroy it with nvidia-smi "
                    "mig, or let whoever made it do so"
                )


def make_partition(partitions: Partitions, device: PreparedDevice) -> PreparedDevice:
    """Return the device with its MIG device, made or (admin access) found. Raises PrepareError."""
    if device.kind != "mig-partition" or device.place is None:
        return device
    if device.admin_access:
        instance = partitions.find_instance(device.place)
        if instance is None or instance.ci_id is None or not instance.place.is_same(device.place):
            raise PrepareError(
                f"device {device.device_name} does not exist now; admin access observes and does "
                "not make MIG devices"
            )
        return replace(device, made=instance)
    faults.reach("mig-create:begin")
    prepared = replace(device, made=partitions.create_instance(device.place))
    faults.reach("mig-create:done")
    return prepared


def unmake_partition(partitions: Partitions, device: PreparedDevice) -> None:
    """Destroy what ``make_partition`` made, also if a crash came before it was remembered.

    Raises DriverError.
    """
    if not device.makes_instance or device.place is None:
        return
    instance = device.made or partitions.find_instance(device.place)
    if instance is not None:
        faults.reach("mig-destroy:begin")
        partitions.destroy_instance(instance)
        faults.reach("mig-destroy:done")
