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
        numbered_devices = [
            list(
                enumerate(
                    device
                    for resource_slice in published
                    for device in resource_slice["spec"].get("devices") or ()
                )
            )
            for published in (network, slices)
        ]
        self._positions = {
            device["name"]: position for devices in numbered_devices for position, device in devices
        }
        self._devices = {
            device["name"]: _without_own_domain(device, profile.driver)
            for devices in numbered_devices
            for _, device in devices
        }
        self._held: dict[str, set[tuple[str, str, str]]] = {}
        self._not_healthy: dict[str, Health] = {}
        self._cdi_root.mkdir(parents=True, exist_ok=True)

    def prepare(self, claim: Obj) -> list[PreparedDevice]:
        uid, allocation = claim["metadata"]["uid"], claim["status"]["allocation"]["devices"]
        results = [item for item in allocation["results"] if item["driver"] == self.name]
        for result in results:
            if REFUSED in self._matching_configurations(result, allocation.get("config") or ()):
                raise DriverError(f"request {result['request']}: refused by its configuration")
        self._hold(uid, results)
        names = [_cdi_name(uid, result) for result in results]
        edits = {
            name: self._make_edits(uid, result, results, allocation.get("config") or ())
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
        """Set the health of a device; it is tainted where the profile says so."""
        self._not_healthy.pop(device, None)
        if health != "Healthy":
            self._not_healthy[device] = health
        if "taintsUnhealthyDevices" in self._profile.traits:
            taint = {"key": f"{self.name}/unhealthy", "effect": "NoSchedule"}
            unhealthy = [
                name
                for name, device_health in self._not_healthy.items()
                if device_health == "Unhealthy"
            ]
            self._publish({name: [taint] for name in unhealthy})

    def known_health(self, device: str) -> tuple[Health, str]:
        """Return a device's health and a message; Unknown where the profile can set none."""
        reports_health = self._profile.stimulus is not None
        return self._not_healthy.get(device, "Healthy" if reports_health else "Unknown"), ""

    def claim_of(self, spec_file: Path) -> str | None:
        return cdi.claim_uid_of(spec_file, self.name)

    def _hold(self, uid: str, results: Sequence[Obj]) -> None:
        """Note what a claim has. Raises DriverError: another has it, and the driver looks."""
        claim_devices = {
            (item["pool"], item["device"], item.get("shareID") or "")
            for item in results
            if not item.get("adminAccess")
        }
        if "refusesDevicesInUse" in self._profile.traits:
            for other, held in self._held.items():
                if other != uid and claim_devices & held:
                    device = min(claim_devices & held)[1]
                    raise DriverError(f"device {device} is prepared for claim {other}")
        self._held[uid] = claim_devices

    def _make_edits(
        self, uid: str, result: Obj, results: Sequence[Obj], config: Sequence[Obj]
    ) -> Mapping[str, Any]:
        """Return the ``containerEdits`` of one allocated device.

        What no edit of CDI can give, an interface or CPUs, is a variable that simulated containers
        know (`probes._output`).
        """
        request = result["request"]
        request_devices = [
            other_result["device"] for other_result in results if other_result["request"] == request
        ]
        together = {name: self._positions[name] for name in request_devices}
        device = self._devices[result["device"]]
        position = self._positions[result["device"]]
        allocated = Allocated(device, position, uid, request.partition("/")[0], together)
        try:
            simulated_edits = self._profile.simulated.make_edits(
                allocated, self._matching_configurations(result, config)
            )
        except ValueError as error:
            raise DriverError(f"the driver profile's simulated: {error}") from None
        environment = simulated_edits.environment | {
            f"{output_name(self.name, way)}{SHOWS}{result['device']}": "\n".join(lines)
            for way, lines in simulated_edits.ways.items()
        }
        edits: dict[str, Any] = {"env": [f"{name}={value}" for name, value in environment.items()]}
        if nodes := simulated_edits.device_nodes:
            first = position * len(nodes)
            edits["deviceNodes"] = [
                {"path": path, "type": "c", "major": MAJOR, "minor": first + index}
                for index, path in enumerate(nodes)
            ]
        return edits

    def _matching_configurations(self, result: Obj, config: Sequence[Obj]) -> Iterator[str]:
        """Yield names of the profile's configurations that an allocation has for a device."""
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
    """Return a device as profiles name it (v1, QualifiedName: ``driver/name`` is the same)."""
    attributes = device.get("attributes") or {}
    plain_attributes = {
        name.removeprefix(f"{driver}/"): value for name, value in attributes.items()
    }
    return {**device, "attributes": plain_attributes}


def _cdi_name(uid: str, result: Obj) -> str:
    """Return the name of a device, or of a share of it; two pools may have the same names."""
    pool = result["pool"].replace("/", "_")
    return "-".join(filter(None, (uid, pool, result["device"], result.get("shareID"))))


def describe_slices(profile: ProfileSpec, node: str) -> list[Obj]:
    """Return the ResourceSlices of a node that has the devices of a profile."""
    devices = profile.simulated.devices
    chunks = [
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
                "pool": {"name": node, "generation": 1, "resourceSliceCount": len(chunks)},
                "devices": list(chunk),
            },
        }
        for index, chunk in enumerate(chunks)
    ]
