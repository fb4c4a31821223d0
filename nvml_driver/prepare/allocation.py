"""Reads a ResourceClaim: what the scheduler gave to this driver on this node.

Fields: resource.k8s.io/v1 ``ResourceClaim.status.allocation.devices`` (k8s.io/api/resource/v1).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from nvml_driver.cdi import specs as cdi
from nvml_driver.config.opaque import settings_for
from nvml_driver.errors import PrepareError
from nvml_driver.model.inventory import Device, Inventory
from nvml_driver.model.prepared import ClaimRecord, ClaimState, PreparedDevice

_Json = Mapping[str, Any]
POD_CLAIM_NAME = "resource.kubernetes.io/pod-claim-name"


def base_request(request: str) -> str:
    """Return ``req`` of ``req/sub``: for the kubelet, a subrequest belongs to its request."""
    return request.partition("/")[0]


class Allocation:
    """The part of a claim's allocation that concerns one driver; ``results`` are as on the wire."""

    def __init__(self, claim: _Json, driver_name: str) -> None:
        """Read a ResourceClaim. Raises PrepareError: it is not allocated, or lacks fields."""
        metadata = claim.get("metadata") or {}
        self.uid = str(metadata.get("uid") or "")
        self.namespace = str(metadata.get("namespace") or "")
        self.name = str(metadata.get("name") or "")
        annotations = metadata.get("annotations") or {}
        self.pod_claim_name: str | None = annotations.get(POD_CLAIM_NAME)
        if not self.uid:
            raise PrepareError(f"claim {self.namespace}/{self.name} has no metadata.uid")
        allocation = (claim.get("status") or {}).get("allocation")
        if not allocation:
            raise PrepareError(f"{self} is not allocated")
        self._driver_name = driver_name
        device_allocation: _Json = allocation.get("devices") or {}
        self._configs: list[_Json] = list(device_allocation.get("config") or ())
        self.results: list[_Json] = [
            result
            for result in device_allocation.get("results") or ()
            if result.get("driver") == driver_name
        ]
        self.devices = self._read_devices()

    def __str__(self) -> str:
        return f"claim {self.namespace}/{self.name} (uid {self.uid})"

    def _read_devices(self) -> tuple[PreparedDevice, ...]:
        names: set[str] = set()
        devices = []
        for result in self.results:
            request, device = str(result["request"]), str(result["device"])
            share = result.get("shareID")
            # The uid makes a CDI name unique over time. One device can be in a claim twice, for a
            # second request with admin access; the request tells the two apart.
            name = "-".join(filter(None, (self.uid, device, share)))
            if name in names:
                name = f"{name}-{base_request(request)}"
            if name in names:
                raise PrepareError(f"{self}: device {device} is there twice for request {request}")
            names.add(name)
            devices.append(
                PreparedDevice(
                    request=request,
                    request_names=(base_request(request),),
                    pool_name=str(result["pool"]),
                    device_name=device,
                    cdi_device_ids=(cdi.qualified_name(self._driver_name, name),),
                    share_id=None if share is None else str(share),
                    admin_access=bool(result.get("adminAccess")),
                )
            )
        return tuple(devices)

    def build_record(self, inventory: Inventory, pool_name: str) -> ClaimRecord:
        """Return what to prepare, checked, with its configuration applied. Raises PrepareError."""
        pairs: list[tuple[PreparedDevice, Device]] = []
        for prepared in self.devices:
            if prepared.pool_name != pool_name:
                raise PrepareError(
                    f"{self}: device {prepared.device_name} is of pool {prepared.pool_name}, "
                    f"this node's pool is {pool_name}"
                )
            device = inventory.get(prepared.device_name)
            if device is None:
                raise PrepareError(f"{self}: this node has no device {prepared.device_name}")
            completed = replace(
                prepared,
                uuid=device.uuid,
                gpu_name=device.gpu_name,
                kind=device.kind,
                place=device.place,
            )
            for other, _ in pairs:
                if completed.conflicts_with(other):
                    raise PrepareError(
                        f"{self}: devices {other.device_name} (request {other.request}) and "
                        f"{completed.device_name} (request {completed.request}) cannot be used "
                        "together"
                    )
            pairs.append((completed, device))
        try:
            settings = settings_for(
                self._driver_name,
                self._configs,
                [(prepared.request, device.kind) for prepared, device in pairs],
                simulated=inventory.simulated,
            )
        except PrepareError as error:
            raise type(error)(f"{self}: {error}") from None
        return ClaimRecord(
            uid=self.uid,
            namespace=self.namespace,
            name=self.name,
            pod_claim_name=self.pod_claim_name,
            state=ClaimState.PREPARE_STARTED,
            devices=tuple(
                replace(prepared, settings=setting)
                for (prepared, _), setting in zip(pairs, settings, strict=True)
            ),
        )
