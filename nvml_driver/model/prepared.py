"""Values that the driver remembers of a claim, and their form in the checkpoint."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from pydantic import ConfigDict, TypeAdapter
from pydantic.alias_generators import to_camel

from nvml_driver.model.inventory import Device, Kind, MigInstance, MigPlace

_FORM = ConfigDict(alias_generator=lambda name: to_camel(name).replace("Id", "ID"))


class ClaimState(StrEnum):
    """Says how far a claim's preparation came."""

    PREPARE_STARTED = "PrepareStarted"
    PREPARE_COMPLETED = "PrepareCompleted"


@dataclass(frozen=True, slots=True, kw_only=True)
class PreparedDevice:
    """One allocated device, ready for containers.

    Attributes:
        request: as in the allocation, ``req`` or ``req/sub``.
        request_names: base names (``req`` of ``req/sub``), as the kubelet matches them.
        cdi_device_ids: fully qualified, ``vendor/class=name``; the device's own comes first.
        share_id: set for a share of a device that allows several allocations.
        admin_access: the claim may look at a device that others use.
        settings: suffix and value of environment variables for the opaque configuration, for
            example ``("SHARING_STRATEGY", "TimeSlicing")``.
        uuid: when it was prepared; shows after a reboot whether the device still is the one.
        gpu_name: the full GPU that the device is or is a part of; empty: not known.
        place: where on the GPU a MIG device is.
        made: the MIG device that the driver made for this claim; None: nothing was made.
    """

    __pydantic_config__ = _FORM

    request_names: tuple[str, ...]
    pool_name: str
    device_name: str
    cdi_device_ids: tuple[str, ...]
    request: str = ""
    share_id: str | None = None
    admin_access: bool = False
    settings: tuple[tuple[str, str], ...] = ()
    uuid: str | None = None
    gpu_name: str = ""
    kind: Kind = "full"
    place: MigPlace | None = None
    made: MigInstance | None = None

    @property
    def makes_instance(self) -> bool:
        """True if preparing it makes a MIG device, which unprepare destroys."""
        return self.kind == "mig-partition" and not self.admin_access

    @property
    def allocation(self) -> tuple[tuple[str, ...], str, str, str | None, bool]:
        """The scheduler's decision, without what the driver made of it."""
        return (
            self.request_names,
            self.pool_name,
            self.device_name,
            self.share_id,
            self.admin_access,
        )

    def conflicts_with(self, other: PreparedDevice) -> bool:
        """Return whether two claims cannot have these two devices at the same time.

        The same device, the full GPU and a part of it, or two parts in the same place. Not so for
        admin access, which only observes, and for different shares of one device.
        """
        if self.admin_access or other.admin_access:
            return False
        if self.device_name == other.device_name:
            return self.share_id is None or self.share_id == other.share_id
        if not self.gpu_name or self.gpu_name != other.gpu_name:
            return False
        if self.place is None or other.place is None:
            return True
        return self.place.overlaps(other.place)

    def is_still(self, device: Device) -> bool:
        """Return whether the node's device of that name is the one that was prepared."""
        return self.uuid is None or device.uuid is None or self.uuid == device.uuid


@dataclass(frozen=True, slots=True, kw_only=True)
class ClaimRecord:
    """One claim that is prepared, or whose preparation began.

    ``pod_claim_name`` is the pod's name for a claim made from a template, None for other claims.
    """

    __pydantic_config__ = _FORM

    uid: str
    namespace: str
    name: str
    state: ClaimState
    devices: tuple[PreparedDevice, ...]
    pod_claim_name: str | None = None

    def __str__(self) -> str:
        return f"claim {self.namespace}/{self.name} (uid {self.uid})"

    def to_json(self) -> dict[str, Any]:
        """Return the record in the checkpoint's form, without the uid, which is its key there."""
        form: dict[str, Any] = _RECORD.dump_python(
            self, mode="json", by_alias=True, exclude={"uid"}
        )
        return form

    @classmethod
    def from_json(cls, uid: str, document: Mapping[str, Any]) -> ClaimRecord:
        """Read a record from the checkpoint's form.

        Raises TypeError or ValueError if it is none.
        """
        return _RECORD.validate_python({**document, "uid": uid})


_RECORD = TypeAdapter(ClaimRecord)
