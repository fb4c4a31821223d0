"""A driver that exists only as a description: its devices, and how a container shows them.

So a profile and its scenarios can be tried without the driver and without a cluster. The devices
come from the profile (``spec.simulated.devices``), or are what a cluster's driver has published.
What a container gets goes through CDI specs on disk, as with a driver that is there.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from conformance.scenario.driver.probe_ways import output_name
from conformance.scenario.driver.profile import REFUSED, ProfileSpec
from conformance.scenario.driver.simulated import Allocated
from conformance.targets.reference.probes import SHOWS
from conformance.targets.reference.refusals import told_to_kubelet
from kube.observations import Health
from kube.values import Obj
from kubesim.nodes.driver import DriverError, NodeDriver
from nvml_driver.cdi import specs as cdi
from nvml_driver.model.prepared import PreparedDevice
from nvml_driver.simulated.node import MAJOR

_DEVICES_PER_SLICE: Final = 64  # As many as a slice may have when devices have taints or counters.


class DescribedDriver(NodeDriver):
    """The driver of a profile on one node.

    Args:
        profile: its classes are not used here, only ``driver``, ``config``, ``traits``,
            ``stimulus`` and ``simulated``.
        cdi: where its CDI specs are.
        network: what is published for all nodes, and what it can prepare as well.
    """

    def __init__(
        self, profile: ProfileSpec, cdi: Path, slices: Sequence[Obj], network: Sequence[Obj] = ()
    ) -> None:
        super().__init__(profile.driver, cdi, slices)
        self._profile = profile
        every = [
            list(enumerate(device for one in item for device in one["spec"].get("devices") or ()))
            for item in (network, slices)
        ]
        self._places = {device["name"]: place for item in every for place, device in item}
        self._devices = {
            device["name"]: _without_own_domain(device, profile.driver)
            for item in every
            for _, device in item
        }
        self._held: dict[str, set[tuple[str, str, str]]] = {}
        self._not_healthy: dict[str, Health] = {}
        self._cdi_root.mkdir(parents=True, exist_ok=True)

    def prepare(self, claim: Obj) -> list[PreparedDevice]:
        uid, allocation = claim["metadata"]["uid"], claim["status"]["allocation"]["devices"]
        results = [item for item in allocation["results"] if item["driver"] == self.name]
        for result in results:
            if REFUSED in self._configured(result, allocation.get("config") or ()):
                raise DriverError(f"request {result['request']}: refused by its configuration")
        self._hold(uid, results)
        names = [_cdi_name(uid, result) for result in results]
        edits = {
            name: self._edits(uid, result, results, allocation.get("config") or ())
            for name, result in zip(names, results, strict=True)
        }
        spec = {
            "cdiVersion": cdi.VERSION,
            "kind": f"{cdi.vendor_name(self.name)}/{cdi.CLASS}",
            "devices": [{"name": name, "containerEdits": edit} for name, edit in edits.items()],
        }
        with told_to_kubelet():
            cdi.spec_path(self._cdi_root, self.name, uid).write_bytes(cdi.encode_spec(spec))
        names_shares = "namesShares" in self._profile.traits
        return [
            PreparedDevice(
                request_names=(result["request"].partition("/")[0],),
                pool_name=result["pool"],
                device_name=result["device"],
                cdi_device_ids=(cdi.qualified_name(self.name, name),),
                share_id=result.get("shareID") if names_shares else None,
            )
            for name, result in zip(names, results, strict=True)
        ]

    def unprepare(self, uid: str) -> None:
        self._held.pop(uid, None)
        with told_to_kubelet():
            cdi.spec_path(self._cdi_root, self.name, uid).unlink(missing_ok=True)

    def set_health(self, device: str, health: Health) -> None:
        """It taints the device where its profile says so."""
        self._not_healthy.pop(device, None)
        if health != "Healthy":
            self._not_healthy[device] = health
        if "taintsUnhealthyDevices" in self._profile.traits:
            taint = {"key": f"{self.name}/unhealthy", "effect": "NoSchedule"}
            unhealthy = [name for name, one in self._not_healthy.items() if one == "Unhealthy"]
            self._publish({name: [taint] for name in unhealthy})

    def known_health(self, device: str) -> tuple[Health, str]:
        """A driver whose health cannot be set need not report any."""
        told = self._profile.stimulus is not None
        return self._not_healthy.get(device, "Healthy" if told else "Unknown"), ""

    def claim_of(self, spec_file: Path) -> str | None:
        return cdi.claim_uid_of(spec_file, self.name)

    def _hold(self, uid: str, results: Sequence[Obj]) -> None:
        """Note what a claim has; where the driver looks, no other may have it."""
        own = {
            (item["pool"], item["device"], item.get("shareID") or "")
            for item in results
            if not item.get("adminAccess")
        }
        if "refusesDevicesInUse" in self._profile.traits:
            for other, held in self._held.items():
                if other != uid and own & held:
                    device = min(own & held)[1]
                    raise DriverError(f"device {device} is prepared for claim {other}")
        self._held[uid] = own

    def _edits(
        self, uid: str, result: Obj, results: Sequence[Obj], config: Sequence[Obj]
    ) -> Mapping[str, Any]:
        """``containerEdits`` of one allocated device.

        What no edit of CDI can give, an interface or CPUs, is a variable that simulated containers
        know (`probes._output`).
        """
        request = result["request"]
        own = [each["device"] for each in results if each["request"] == request]
        together = {name: self._places[name] for name in own}
        device = self._devices[result["device"]]
        place = self._places[result["device"]]
        allocated = Allocated(device, place, uid, request.partition("/")[0], together)
        try:
            shown = self._profile.simulated.make_edits(allocated, self._configured(result, config))
        except ValueError as error:
            raise DriverError(f"the driver profile's simulated: {error}") from None
        environment = shown.environment | {
            f"{output_name(self.name, way)}{SHOWS}{result['device']}": "\n".join(lines)
            for way, lines in shown.ways.items()
        }
        edits: dict[str, Any] = {"env": [f"{name}={value}" for name, value in environment.items()]}
        if nodes := shown.device_nodes:
            first = place * len(nodes)
            edits["deviceNodes"] = [
                {"path": path, "type": "c", "major": MAJOR, "minor": first + index}
                for index, path in enumerate(nodes)
            ]
        return edits

    def _configured(self, result: Obj, config: Sequence[Obj]) -> Iterator[str]:
        """Names of the profile's configurations that an allocation has for a device."""
        request = result["request"]
        for item in config:
            opaque, requests = item.get("opaque") or {}, item.get("requests") or []
            if requests and not {request, request.partition("/")[0]} & set(requests):
                continue
            if opaque.get("driver") == self.name:
                for name, parameters in self._profile.config.items():
                    if parameters == opaque.get("parameters"):
                        yield name


def _without_own_domain(device: Obj, driver: str) -> Obj:
    """A device as profiles speak of it (v1, QualifiedName: ``driver/name`` is the same as name)."""
    attributes = device.get("attributes") or {}
    own = {name.removeprefix(f"{driver}/"): value for name, value in attributes.items()}
    return {**device, "attributes": own}


def _cdi_name(uid: str, result: Obj) -> str:
    """Of a device, or of a share of it. Devices of two pools may have the same name."""
    pool = result["pool"].replace("/", "_")
    return "-".join(filter(None, (uid, pool, result["device"], result.get("shareID"))))


def described(profile: ProfileSpec, node: str) -> list[Obj]:
    """The ResourceSlices of a node that has the devices of a profile."""
    devices = profile.simulated.devices
    parts = [
        devices[start : start + _DEVICES_PER_SLICE]
        for start in range(0, len(devices), _DEVICES_PER_SLICE)
    ]
    return [
        {
            "apiVersion": "resource.k8s.io/v1",
            "kind": "ResourceSlice",
            "metadata": {"name": f"{node}-{profile.driver}-{index}"},
            "spec": {
                "driver": profile.driver,
                "nodeName": node,
                "pool": {"name": node, "generation": 1, "resourceSliceCount": len(parts)},
                "devices": list(part),
            },
        }
        for index, part in enumerate(parts)
    ]
