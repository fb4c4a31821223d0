"""What the driver remembers of a claim: values, and their form in the checkpoint."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any


class ClaimState(StrEnum):
    """How far a claim's preparation came."""

    PREPARE_STARTED = "PrepareStarted"
    PREPARE_COMPLETED = "PrepareCompleted"


@dataclass(frozen=True, slots=True, kw_only=True)
class PreparedDevice:
    """One allocated device, ready for containers.

    Attributes:
        request_names: base names (``req`` of ``req/sub``), as the kubelet matches them.
        pool_name: the pool.
        device_name: the device in that pool.
        cdi_device_ids: fully qualified, ``vendor/class=name``.
        share_id: set for a share of a device that allows several allocations.
        admin_access: the claim may look at a device that others use.
        settings: what the opaque configuration asks for, as suffix and value of environment
            variables, for example ``("SHARING_STRATEGY", "TimeSlicing")``.
    """

    request_names: tuple[str, ...]
    pool_name: str
    device_name: str
    cdi_device_ids: tuple[str, ...]
    share_id: str | None = None
    admin_access: bool = False
    settings: tuple[tuple[str, str], ...] = ()

    @property
    def allocation(self) -> tuple[tuple[str, ...], str, str, str | None, bool]:
        """What the scheduler decided, without what the driver made of it."""
        return (
            self.request_names,
            self.pool_name,
            self.device_name,
            self.share_id,
            self.admin_access,
        )

    def to_json(self) -> dict[str, Any]:
        """The checkpoint's form."""
        return {
            "requestNames": list(self.request_names),
            "poolName": self.pool_name,
            "deviceName": self.device_name,
            "cdiDeviceIDs": list(self.cdi_device_ids),
            "shareID": self.share_id,
            "adminAccess": self.admin_access,
            "settings": [list(pair) for pair in self.settings],
        }

    @classmethod
    def from_json(cls, document: Mapping[str, Any]) -> PreparedDevice:
        """Back from the checkpoint's form; KeyError, TypeError or ValueError if it is not one."""
        return cls(
            request_names=tuple(map(str, document["requestNames"])),
            pool_name=str(document["poolName"]),
            device_name=str(document["deviceName"]),
            cdi_device_ids=tuple(map(str, document["cdiDeviceIDs"])),
            share_id=None if document["shareID"] is None else str(document["shareID"]),
            admin_access=bool(document["adminAccess"]),
            settings=tuple((str(name), str(value)) for name, value in document["settings"]),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class ClaimRecord:
    """One claim that is prepared, or whose preparation began."""

    uid: str
    namespace: str
    name: str
    state: ClaimState
    devices: tuple[PreparedDevice, ...]

    def __str__(self) -> str:
        return f"claim {self.namespace}/{self.name} (uid {self.uid})"

    def to_json(self) -> dict[str, Any]:
        """The checkpoint's form."""
        return {
            "namespace": self.namespace,
            "name": self.name,
            "state": self.state.value,
            "devices": [device.to_json() for device in self.devices],
        }

    @classmethod
    def from_json(cls, uid: str, document: Mapping[str, Any]) -> ClaimRecord:
        """Back from the checkpoint's form; KeyError, TypeError or ValueError if it is not one."""
        return cls(
            uid=uid,
            namespace=str(document["namespace"]),
            name=str(document["name"]),
            state=ClaimState(document["state"]),
            devices=tuple(PreparedDevice.from_json(device) for device in document["devices"]),
        )
