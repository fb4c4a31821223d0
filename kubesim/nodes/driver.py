"""The driver of a node: what the kubelet asks of it, and what it keeps published.

What a container gets is read back from the CDI specs that the driver wrote to disk, as a container
runtime does.
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Protocol

from kube.cdi.edits import ContainerEdits
from kube.observations import Health
from kube.values import Obj, Ref
from kubesim.apiserver import patches
from kubesim.apiserver.server import ApiServer
from kubesim.cluster import Cluster
from kubesim.store import clone, name_of, uid_of


class DriverError(Exception):
    """A driver refuses a call; the message becomes its error to the kubelet."""


class PreparedDevice(Protocol):
    """What a driver answers of an allocated device that is ready for containers.

    Attributes:
        request_names: base names (``req`` of ``req/sub``) of the requests that it is for.
        cdi_device_ids: fully qualified, ``vendor/class=name``.
        share_id: set for a share of a device that allows several allocations.
    """

    @property
    def request_names(self) -> tuple[str, ...]: ...

    @property
    def pool_name(self) -> str: ...

    @property
    def device_name(self) -> str: ...

    @property
    def cdi_device_ids(self) -> tuple[str, ...]: ...

    @property
    def share_id(self) -> str | None: ...


class NodeDriver(ABC):
    """A driver on one node, as the kubelet calls it; which driver it is, is not known here.

    A driver defines five calls: ``prepare``, ``unprepare``, ``set_health``, ``known_health`` and
    ``claim_of``. All others have an answer here, from the CDI specs that it has written.

    ``stopped_at``: virtual time, None while it runs.
    """

    def __init__(self, name: str, cdi_root: Path, slices: Sequence[Obj]) -> None:
        self.name = name
        self.slices = self._plain = tuple(slices)
        self.stopped_at: float | None = None
        self._cdi_root = cdi_root
        self._fixed: Mapping[str, Sequence[Obj]] = {}

    @property
    def devices(self) -> list[str]:
        """Names of the devices that it publishes."""
        device_lists = [item["spec"].get("devices") or () for item in self.slices]
        return [device["name"] for devices in device_lists for device in devices]

    def taint(self, taints: Mapping[str, Sequence[Obj]]) -> None:
        """Publish taints too, whatever the health of devices: device -> taints."""
        self._fixed = taints
        self._publish({})

    def health(self, device: str) -> tuple[Health, str]:
        """Return the health that the driver reports to the kubelet, with a message."""
        return self.known_health(device) if self.stopped_at is None else ("Unknown", "")

    @abstractmethod
    def set_health(self, device: str, health: Health) -> None:
        """Find a device healthy or not from now on."""

    @abstractmethod
    def known_health(self, device: str) -> tuple[Health, str]:
        """Return the health of a device as a driver that runs knows it, and a message."""

    @abstractmethod
    def claim_of(self, spec_file: Path) -> str | None:
        """Return the uid of the claim that a CDI spec is for; None: it is not this driver's."""

    def _publish(self, further_taints: Mapping[str, Sequence[Obj]]) -> None:
        """Publish taints beside those that are fixed: device -> taints."""
        slices = (_add_taints(item, self._fixed) for item in self._plain)
        self.slices = tuple(_add_taints(item, further_taints) for item in slices)

    @abstractmethod
    def prepare(self, claim: Obj) -> Sequence[PreparedDevice]:
        """Answer NodePrepareResources for one claim. Raises DriverError: it could not."""

    @abstractmethod
    def unprepare(self, uid: str) -> None:
        """Answer NodeUnprepareResources for one claim. Raises DriverError: it could not."""

    def restart(self) -> None:  # noqa: B027 -- most have nothing to take up again
        """Start again, with what is on disk."""

    def start_next(self) -> None:  # noqa: B027 -- as restart
        """Begin a second instance, with what is on disk, which is asked from now on."""

    def end_next(self) -> None:  # noqa: B027 -- as restart
        """End the second instance at once; the first is asked again."""

    def reboot(self) -> None:
        """Lose what lies in memory: ``/run``, and with it the CDI specs."""
        for path in self._cdi_root.glob("*"):
            path.unlink()

    def edits(self, cdi_device_ids: Iterable[str]) -> ContainerEdits:
        """Return what a container with these CDI devices gets. Raises UnresolvableError."""
        # Here, because it takes a fifth of the time in which a server without drivers starts.
        from kube.cdi.reading import resolve

        return resolve([self._cdi_root], cdi_device_ids)

    def specs(self) -> list[tuple[str, Obj]]:
        """Return name and content of the CDI specs on disk."""
        paths = sorted(self._cdi_root.glob("*.json"))
        return [(path.name, json.loads(path.read_text(encoding="utf-8"))) for path in paths]

    def spec_files(self) -> Mapping[str, list[str]]:
        """Return claim uid -> names of the CDI specs on disk that are for it."""
        files_by_claim: dict[str, list[str]] = {}
        for path in sorted(self._cdi_root.glob("*.json")):
            uid = self.claim_of(path)
            if uid is not None:
                files_by_claim.setdefault(uid, []).append(path.name)
        return files_by_claim


class SlicePublisher:
    """Keeps the drivers' ResourceSlices published: made again when deleted, restored when edited.

    A driver built on upstream's library does the same (k8s.io/dynamic-resource-allocation/
    resourceslice); so a scenario that interferes finds what it would find in a cluster.
    """

    watches = frozenset({"Node", "ResourceSlice"})

    def __init__(
        self,
        cluster: Cluster,
        api: ApiServer,
        published: Iterable[tuple[str | None, Obj]],
        gone: Collection[str],
        runs: Callable[[str | None], bool],
    ) -> None:
        """Publish slices, each with the node that owns it, if one does.

        Args:
            cluster: where they are published.
            api: through which, so that fields behind a gate that is off do not get in.
            gone: nodes whose driver publishes once and then no more.
        """
        self._cluster = cluster
        self._store = cluster.store
        self._api = api
        self._published = tuple(published)
        self._gone = gone
        self._runs = runs
        self._stored: dict[str, Obj] = {}
        """Name -> spec as the API server has stored it."""

    def sync(self) -> None:
        if not self._cluster.gates.get("DynamicResourceAllocation"):
            return
        for node_name, published_slice in self._published:
            if not self._runs(node_name):
                continue
            node = None if node_name is None else self._store.get("Node", "", node_name)
            stored = self._stored.get(name_of(published_slice))
            if (node_name is not None and node is None) or (stored and node_name in self._gone):
                continue
            present = self._store.get("ResourceSlice", "", name_of(published_slice))
            if present is None:
                self._stored[name_of(published_slice)] = self._api.create(
                    _set_owner(published_slice, node), ""
                )["spec"]
            elif present["spec"] != stored:
                self._store.replace({**clone(present), "spec": stored})

    def change_slices(self, node: str, slices: Sequence[Obj]) -> None:
        """Publish these slices of a node's driver from now on, or others of their names."""
        new = {name_of(item): item for item in slices}
        published_names = {name_of(item) for _, item in self._published}
        self._published = (
            *((owner, new.get(name_of(item), item)) for owner, item in self._published),
            *((node, item) for name, item in new.items() if name not in published_names),
        )
        for name, changed_slice in new.items():
            if self._store.get("ResourceSlice", "", name) is None:
                self._stored.pop(name, None)  # made anew when the driver publishes again
                continue
            owned_slice = _set_owner(changed_slice, self._store.get("Node", "", node))
            self._stored[name] = self._api.change(
                Ref.of(changed_slice), patches.make_change("update", owned_slice), None, ""
            )["spec"]


def _add_taints(resource_slice: Obj, taints: Mapping[str, Sequence[Obj]]) -> Obj:
    spec = resource_slice["spec"]
    if not spec.get("devices"):
        return resource_slice
    devices = [
        {**device, "taints": [*(device.get("taints") or []), *taints[device["name"]]]}
        if device["name"] in taints
        else device
        for device in spec["devices"]
    ]
    return {**resource_slice, "spec": {**spec, "devices": devices}}


def _set_owner(published: Obj, node: Obj | None) -> Obj:
    if node is None:
        return published
    reference = {
        "apiVersion": "v1",
        "kind": "Node",
        "name": name_of(node),
        "uid": uid_of(node),
        "controller": True,
    }
    meta = {**published["metadata"], "ownerReferences": [reference]}
    return {**published, "metadata": meta}
