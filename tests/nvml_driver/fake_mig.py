"""A GPU that can be partitioned, as far as prepare sees it: its MIG devices are files.

They outlive the driver's process, as on a GPU, and a reboot takes them.
"""

from __future__ import annotations

import json
from dataclasses import asdict, replace
from pathlib import Path

from nvml_driver.errors import DriverError
from nvml_driver.mig.state import MigState
from nvml_driver.model.inventory import Attribute, Device, Inventory, MigInstance, MigPlace

PARTITIONS = (*(f"gpu-0-mig-1g5gb-19-{start}" for start in range(3)), "gpu-0-mig-2g10gb-14-0")


class FileMig:
    """Creates, finds and destroys MIG devices below a directory."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.busy: set[int] = set()
        self.fail_creation = False
        self.made = 0

    def create_instance(self, place: MigPlace) -> MigInstance:
        if self.fail_creation:
            raise DriverError("NVML: no compute instance left; the GPU instance is destroyed again")
        for other in self.all():
            ours = range(place.start, place.start + place.size)
            theirs = range(other.place.start, other.place.start + other.place.size)
            if set(ours) & set(theirs):
                raise DriverError(f"place {place.start} is taken by {other.uuid}")
        self.root.mkdir(parents=True, exist_ok=True)
        self.made += 1  # an id is not used twice, so that a UUID is not either
        number = self.made = max([self.made, *(instance.gi_id + 1 for instance in self.all())])
        made = MigInstance(
            place=place,
            gi_id=number,
            ci_id=0,
            uuid=f"MIG-{number}-{place.start}",
            gi_capability=100 + number,
            ci_capability=200 + number,
        )
        (self.root / f"{number}.json").write_text(json.dumps(asdict(made)))
        return made

    def find_instance(self, place: MigPlace) -> MigInstance | None:
        return next((each for each in self.all() if each.place.overlaps(place)), None)

    def destroy_instance(self, instance: MigInstance) -> None:
        if instance.gi_id in self.busy:
            raise DriverError("NVML: in use")
        (self.root / f"{instance.gi_id}.json").unlink(missing_ok=True)

    def read_state(self) -> MigState:
        return MigState(modes={"gpu-0": True}, instances=tuple(self.all()))

    def all(self) -> list[MigInstance]:
        documents = [json.loads(path.read_text()) for path in sorted(self.root.glob("*.json"))]
        return [MigInstance(**{**d, "place": MigPlace(**d["place"])}) for d in documents]


def partitionable(inventory: Inventory) -> Inventory:
    """The inventory with partitions of gpu-0 beside it."""
    parent = next(device for device in inventory if device.name == "gpu-0")
    parts = []
    for name in PARTITIONS:
        _, _, _, profile, profile_id, start = name.split("-")
        size = int(profile[0])
        place = MigPlace(
            parent_minor=0,
            profile=profile.replace("g", "g.", 1),
            gi_profile_id=int(profile_id),
            gi_profile_index=size - 1,
            ci_profile_index=size - 1,
            start=int(start),
            size=size,
        )
        parts.append(
            replace(
                parent,
                name=name,
                uuid=None,
                kind="mig-partition",
                parent="gpu-0",
                place=place,
                attributes={"type": Attribute("string", "mig")},
            )
        )
    devices: list[Device] = []
    for device in inventory:
        devices += [device, *parts] if device is parent else [device]
    return inventory.with_devices(tuple(devices))
