"""Writes device metadata files, from which a container learns about its devices.

One JSON stream for each request, the same object once per API version, newest first, mounted at a
well-known path. Format and container path: ``k8s.io/dynamic-resource-allocation`` v0.37.1,
``api/metadata`` (types, paths) and ``kubeletplugin/metadata.go`` (stream, generation, mount).

Differences on purpose: on the node the files are named by the claim's uid, not by its name, so
that a claim that replaced another of its name does not share its file; and the mounts are devices
of the claim's one CDI spec, so that a claim still is one file for the container runtime.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from nvml_driver.model.inventory import Inventory
from nvml_driver.model.prepared import ClaimRecord
from nvml_driver.storage.files import remove_file, remove_scratch, write_atomic

CONTAINER_DIRECTORY = "/var/run/kubernetes.io/dra-device-attributes"
HOST_DIRECTORY = "dra-device-metadata"
API_VERSIONS = ("metadata.resource.k8s.io/v1beta1", "metadata.resource.k8s.io/v1alpha1")


def base_requests(record: ClaimRecord) -> list[str]:
    """Return the claim's requests that have devices, each once, in order."""
    return list(dict.fromkeys(name for device in record.devices for name in device.request_names))


def container_path(record: ClaimRecord, request: str, driver_name: str) -> str:
    """Return the path at which a container finds a request's file."""
    if record.pod_claim_name:
        claim = f"resourceclaimtemplates/{record.pod_claim_name}"
    else:
        claim = f"resourceclaims/{record.name}"
    return f"{CONTAINER_DIRECTORY}/{claim}/{request}/{driver_name}-metadata.json"


def build_document(
    record: ClaimRecord, request: str, inventory: Inventory, driver_name: str
) -> dict[str, Any]:
    """Return one request's ``DeviceMetadata``, without ``apiVersion``."""
    devices_of_request = [device for device in record.devices if request in device.request_names]
    devices = []
    for prepared in devices_of_request:
        entry: dict[str, Any] = {
            "driver": driver_name,
            "pool": prepared.pool_name,
            "name": prepared.device_name,
        }
        published = inventory.get(prepared.device_name)
        attributes = dict(published.attributes) if published is not None else {}
        if attributes:
            entry["attributes"] = {name: value.to_api() for name, value in attributes.items()}
        if prepared.made is not None and prepared.made.uuid is not None:
            # It did not exist when the slice was published; a container wants to know.
            entry.setdefault("attributes", {})["uuid"] = {"string": prepared.made.uuid}
        devices.append(entry)
    return {
        "kind": "DeviceMetadata",
        "metadata": {
            "name": record.name,
            "namespace": record.namespace,
            "uid": record.uid,
            "generation": 1,
        },
        **({"podClaimName": record.pod_claim_name} if record.pod_claim_name else {}),
        "requests": [{"name": devices_of_request[0].request or request, "devices": devices}],
    }


def encode_stream(content: Mapping[str, Any]) -> bytes:
    """Return a ``DeviceMetadata`` as stream, once per API version."""
    return b"".join(
        json.dumps({"apiVersion": version, **content}, indent=2).encode() + b"\n"
        for version in API_VERSIONS
    )


class MetadataFiles:
    """The metadata files of one node's claims."""

    def __init__(self, state_dir: Path, *, driver_name: str, durable: bool) -> None:
        self.root = state_dir.absolute() / HOST_DIRECTORY
        self._driver_name = driver_name
        self._durable = durable

    def host_path(self, uid: str, request: str) -> Path:
        """Return the path of a request's file on the node."""
        return self.root / f"{uid}_{request}.json"

    def write(self, record: ClaimRecord, inventory: Inventory) -> None:
        """Write the claim's files, unless the same are there. Raises OSError."""
        self.root.mkdir(parents=True, exist_ok=True, mode=0o755)
        for request in base_requests(record):
            path = self.host_path(record.uid, request)
            content = encode_stream(build_document(record, request, inventory, self._driver_name))
            if not path.exists() or path.read_bytes() != content:
                write_atomic(path, content, durable=self._durable, fault_prefix="metadata")

    def remove(self, uid: str) -> None:
        """Remove the claim's files; there need not be any. Raises OSError."""
        for owner, path in self.list_files():
            if owner == uid:
                remove_file(path, durable=self._durable, fault_prefix="metadata")

    def list_files(self) -> Iterator[tuple[str, Path]]:
        """Yield claim uid and path of each file that exists."""
        for path in sorted(self.root.glob("*.json")):
            yield path.stem.rpartition("_")[0], path

    def remove_orphans(self, claims: Mapping[str, ClaimRecord]) -> None:
        """Remove the files that belong to none of the claims. Raises OSError."""
        remove_scratch(self.root)
        for owner, path in list(self.list_files()):
            if owner not in claims:
                remove_file(path, durable=self._durable, fault_prefix="metadata")
