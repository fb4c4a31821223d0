"""Defects of the driver: what it prepares, and what it leaves behind."""

from __future__ import annotations

import re
import uuid
from collections.abc import Callable
from dataclasses import replace as changed
from typing import Any

from conformance.targets.reference.nvml import NvmlDriver
from kube.cdi.edits import UnresolvableError
from kube.values import Obj
from kubesim.nodes.driver import DriverError, NodeDriver, SlicePublisher
from kubesim.store import clone, name_of, uid_of
from kubesim.world import World
from nvml_driver.core import DriverCore
from nvml_driver.model.inventory import Inventory
from nvml_driver.model.prepared import ClaimRecord, PreparedDevice
from reference_allocator.api.quantity import parse_quantity
from tests.mutants.replacing import Defects, Mutation, Original, instead, part, replace


def loses_cdi_specs(world: World) -> None:
    """A driver that starts believes its checkpoint, whether the CDI specs are there or not."""
    lost: set[str] = set()
    for kubelet in world.kubelets:
        assert kubelet.driver is not None

        def reboot(original: Callable[[], None], driver: NodeDriver = kubelet.driver) -> None:
            lost.update(driver.spec_files())
            original()

        def edits(original: Original, ids: list[str]) -> Any:
            if any(uid in one for one in ids for uid in lost):
                raise UnresolvableError("unresolvable CDI devices")
            return original(ids)

        replace(kubelet.driver.reboot, reboot)
        replace(kubelet.driver.edits, edits)


def prepares(change: Callable[[NodeDriver, Obj], None]) -> Mutation:
    """The driver prepares something else than what the claim says."""

    @instead(NodeDriver.prepare)
    def mutate(driver: NodeDriver, original: Original, claim: Obj) -> Any:
        other = clone(claim)
        change(driver, other["status"]["allocation"]["devices"])
        return original(other)

    return mutate


def first_devices(driver: NodeDriver, allocated: Obj) -> None:
    """Every claim gets the devices that the node has first."""
    for result, name in zip(allocated["results"], driver.devices, strict=False):
        result["device"] = name


def without_config(source: str) -> Callable[[NodeDriver, Obj], None]:
    def change(_driver: NodeDriver, allocated: Obj) -> None:
        found = allocated.get("config") or []
        allocated["config"] = [item for item in found if item["source"] != source]

    return change


def config_of_all_requests(_driver: NodeDriver, allocated: Obj) -> None:
    for item in allocated.get("config") or []:
        item["requests"] = [result["request"] for result in allocated["results"]]


@instead(NodeDriver.unprepare)
def leaves_cdi_spec(driver: NodeDriver, original: Callable[[str], None], uid: str) -> None:
    names = driver.spec_files().get(uid, [])
    kept = {name: (driver._cdi_root / name).read_bytes() for name in names}
    original(uid)
    for name, content in kept.items():
        (driver._cdi_root / name).write_bytes(content)


def next_device(driver: NodeDriver, allocated: Obj) -> None:
    """A claim gets the neighbours of its devices."""
    names = driver.devices
    for result in allocated["results"]:
        if result["device"] in names:
            result["device"] = names[(names.index(result["device"]) + 1) % len(names)]


def slices_without_owner(world: World) -> None:
    store = world.cluster.store

    def sync(original: Callable[[], None]) -> None:
        original()
        for item in store.all("ResourceSlice"):
            if item["metadata"].get("ownerReferences"):
                store.modify(item, lambda new: new["metadata"].pop("ownerReferences"))

    publisher = part(world, SlicePublisher)
    replace(publisher.sync, sync)
    publisher.sync()


@instead(NodeDriver.prepare)
def gives_others_when_asked_again(driver: NodeDriver, original: Original, claim: Obj) -> Any:
    if uid_of(claim) in driver.spec_files():
        claim = clone(claim)
        next_device(driver, claim["status"]["allocation"]["devices"])
    return original(claim)


@instead(NodeDriver.unprepare)
def refuses_unknown_claims(driver: NodeDriver, original: Callable[[str], None], uid: str) -> None:
    if uid not in driver.spec_files():
        raise DriverError(f"claim {uid} is not prepared")
    original(uid)


def in_each_core(world: World, change: Callable[[DriverCore], None]) -> None:
    """Also in those that a restart of the driver makes."""
    for driver in drivers(world):
        assert isinstance(driver, NvmlDriver)
        change(driver._core)

        def restart(original: Callable[[], None], driver: NvmlDriver = driver) -> None:
            original()
            change(driver._core)

        replace(driver.restart, restart)


def prepares_devices_in_use(world: World) -> None:
    in_each_core(world, lambda core: replace(core._preparation._refuse_overlap, lambda *_: None))


def keeps_old_devices(world: World) -> None:
    prepares_devices_in_use(world)
    for driver in drivers(world):
        old: dict[str, Obj] = {}

        def prepare(original: Original, claim: Obj, old: dict[str, Obj] = old) -> Any:
            return original(old.setdefault(uid_of(claim), clone(claim)))

        replace(driver.prepare, prepare)


def loses_its_memory(world: World) -> None:
    for driver in drivers(world):
        assert isinstance(driver, NvmlDriver)

        def restart(original: Callable[[], None], driver: NvmlDriver = driver) -> None:
            driver._core._checkpoint.path.unlink()
            original()

        replace(driver.restart, restart)


def publishes(change: Callable[[list[Obj]], None]) -> Mutation:
    """The slices of each node say something else of its devices."""

    def mutate(world: World) -> None:
        publisher = part(world, SlicePublisher)
        published = [(node, clone(wanted)) for node, wanted in publisher._published]
        for _, wanted in published:
            change(wanted["spec"].get("devices") or [])
            publisher._stored[name_of(wanted)] = wanted["spec"]
        publisher._published = tuple(published)
        publisher.sync()
        for driver in drivers(world):  # what it will publish again, when something else changes
            plain = clone(list(driver._plain))
            for wanted in plain:
                change(wanted["spec"].get("devices") or [])
            driver._plain = tuple(plain)
            driver._publish({})

    return mutate


def bus_ids_as_roots(devices: list[Obj]) -> None:
    for device in devices:
        address = device["attributes"]["resource.kubernetes.io/pciBusID"]
        device["attributes"]["resource.kubernetes.io/pcieRoot"] = address


def metadata_of_another_claim(world: World) -> None:
    def change(core: DriverCore) -> None:
        files = core._files._metadata
        assert files is not None

        def write(original: Original, record: ClaimRecord, inventory: Inventory) -> None:
            original(record, inventory)
            for owner, path in files.list_files():
                if owner == record.uid:
                    path.write_text(path.read_text().replace(record.uid, f"{uuid.UUID(int=0)}"))

        replace(files.write, write)

    in_each_core(world, change)


def writes(change: Callable[[str], str]) -> Mutation:
    """The driver writes something else into its CDI specs: from the text that is right."""

    @instead(NodeDriver.prepare)
    def mutate(driver: NodeDriver, original: Original, claim: Obj) -> Any:
        found = original(claim)
        for path in driver._cdi_root.glob("*.json"):
            path.write_text(change(path.read_text(encoding="utf-8")), encoding="utf-8")
        return found

    return mutate


def another_claim(spec: str) -> str:
    return re.sub(r'(_RESOURCE_CLAIM=)[^"]+', r"\1other", spec)


def more_memory(devices: list[Obj]) -> None:
    for device in devices:
        memory = parse_quantity(device["capacity"]["memory"]["value"])
        device["capacity"]["memory"]["value"] = str(memory.add(memory))


def publishes_once(world: World) -> None:
    publisher = part(world, SlicePublisher)
    publisher._gone = frozenset(kubelet.node for kubelet in world.kubelets)


def drivers(world: World) -> list[NodeDriver]:
    return [kubelet.driver for kubelet in world.kubelets if kubelet.driver is not None]


def offers_unhealthy_devices(world: World) -> None:
    for driver in drivers(world):
        replace(driver._publish, lambda original, _taints: original({}))


Prepared = list[PreparedDevice]


def answers(change: Callable[[Prepared], Prepared]) -> Mutation:
    """The driver tells the kubelet something else than what it has prepared."""

    def mutate(world: World) -> None:
        for driver in drivers(world):
            replace(driver.prepare, lambda original, claim: change(original(claim)))

    return mutate


def without_share_ids(devices: Prepared) -> Prepared:
    return [changed(device, share_id=None) for device in devices]


def first_of_each_gpu(devices: Prepared) -> Prepared:
    """Of several partitions of a GPU the first is given for all."""
    ids = {device.gpu_name: device.cdi_device_ids for device in reversed(devices)}
    return [changed(device, cdi_device_ids=ids[device.gpu_name]) for device in devices]


def _metadata_of_first_request(world: World) -> None:
    """The file of the first request is all that containers get."""

    def first_alone(
        original: Callable[[ClaimRecord], ClaimRecord], record: ClaimRecord
    ) -> ClaimRecord:
        first, *others = original(record).devices
        bare = [changed(one, cdi_device_ids=one.cdi_device_ids[:1]) for one in others]
        return changed(record, devices=(first, *bare))

    in_each_core(world, lambda core: replace(core._preparation._with_metadata, first_alone))


DEFECTS: Defects = {
    "driver-loses-cdi-specs": loses_cdi_specs,
    "driver-gives-others-when-asked-again": gives_others_when_asked_again,
    "driver-keeps-old-devices": keeps_old_devices,
    "driver-loses-its-memory": loses_its_memory,
    "driver-prepares-devices-in-use": prepares_devices_in_use,
    "driver-publishes-once": publishes_once,
    "driver-refuses-unknown-claims": refuses_unknown_claims,
    "driver-configures-all-devices": prepares(config_of_all_requests),
    "driver-ignores-claim-config": prepares(without_config("FromClaim")),
    "driver-ignores-class-config": prepares(without_config("FromClass")),
    "metadata-of-another-claim": metadata_of_another_claim,
    "shows-another-claim": writes(another_claim),
    "slices-have-bus-ids-as-roots": publishes(bus_ids_as_roots),
    "slices-promise-more-memory": publishes(more_memory),
    "slices-without-owner": slices_without_owner,
    "leaves-cdi-spec": leaves_cdi_spec,
    "wrong-device-in-container": prepares(next_device),
    "driver-offers-unhealthy-devices": offers_unhealthy_devices,
    "driver-answers-without-share-ids": answers(without_share_ids),
    "driver-gives-first-partition-twice": answers(first_of_each_gpu),
    "metadata-of-the-first-request-alone": _metadata_of_first_request,
}
