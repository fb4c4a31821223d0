"""Defects of a driver: what it answers, configures, writes for containers, and takes away."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable, Iterator
from typing import Any

from kube.values import Obj
from kubesim.nodes.driver import DriverError, NodeDriver
from nvml_driver.core import DriverCore
from nvml_driver.errors import PrepareError
from nvml_driver.model.inventory import Inventory
from nvml_driver.model.prepared import ClaimRecord, PreparedDevice
from tests.mutants.driver.preparation import in_each_core, prepares, writes
from tests.mutants.replacing import Defects, Mutation, Original, instead, replace


def answers(change: Callable[[Obj, PreparedDevice], PreparedDevice]) -> Mutation:
    """What the driver answers for a device is something else: by the claim."""

    @instead(NodeDriver.prepare)
    def mutate(_: NodeDriver, original: Callable[..., list[PreparedDevice]], claim: Obj) -> Any:
        return [change(claim, device) for device in original(claim)]

    return mutate


def no_request(_claim: Obj, device: PreparedDevice) -> PreparedDevice:
    return dataclasses.replace(device, request_names=())


def as_allocated(claim: Obj, device: PreparedDevice) -> PreparedDevice:
    """The name has the alternative, by which no container asks."""
    names = tuple(
        one["request"]
        for one in claim["status"]["allocation"]["devices"]["results"]
        if one["device"] == device.device_name
    )
    return dataclasses.replace(device, request_names=names)


def config_for(kept: Callable[[str, set[str]], bool]) -> Callable[[NodeDriver, Obj], None]:
    """Configuration counts for some of the requests that it names: by name, and all results."""

    def change(_driver: NodeDriver, allocated: Obj) -> None:
        results = {one["request"] for one in allocated["results"]}
        config = []
        for item in allocated.get("config") or []:
            named = item.get("requests") or []
            left = [name for name in named if kept(name, results)]
            if left or not named:
                config.append({**item, "requests": left})
        allocated["config"] = config

    return change


@instead(NodeDriver.prepare)
def refuses_config_of_others(driver: NodeDriver, original: Original, claim: Obj) -> Any:
    for item in claim["status"]["allocation"]["devices"].get("config") or []:
        if item["opaque"]["driver"] != driver.name:
            raise DriverError(f"configuration of {item['opaque']['driver']} is unknown")
    return original(claim)


def refuses_beside(who: Callable[[ClaimRecord, ClaimRecord], ClaimRecord]) -> Mutation:
    """A device that two claims have is refused, if one of them has admin access."""

    def change(core: DriverCore) -> None:
        def refuse(original: Original, record: ClaimRecord) -> None:
            original(record)
            for other in core._checkpoint.values():
                same = {one.device_name for one in other.devices}
                if any(one.admin_access for one in who(record, other).devices) and any(
                    one.device_name in same for one in record.devices
                ):
                    raise PrepareError(f"{record}: its device is prepared for {other}")

        replace(core._preparation._refuse_overlap, refuse)

    return lambda world: in_each_core(world, change)


@instead(NodeDriver.unprepare)
def takes_all_away(driver: NodeDriver, original: Callable[[str], None], uid: str) -> None:
    """Unpreparing one claim takes away what the driver wrote for all."""
    original(uid)
    for path in driver._cdi_root.glob("*.json"):
        path.unlink()


def for_the_whole_claim(spec: str) -> str:
    """What a device gives stands where a claim's common edits are."""
    found = json.loads(spec)
    common = found.setdefault("containerEdits", {})
    for device in found["devices"]:
        for name, values in device["containerEdits"].items():
            common[name] = [*common.get(name, []), *values]
        device["containerEdits"] = {"env": ["DEVICE=1"]}
    return json.dumps(found)


def metadata(change: Callable[[list[Obj]], list[Obj]]) -> Mutation:
    """The files that describe devices to containers say something else."""

    def mutate(core: DriverCore) -> None:
        files = core._files._metadata
        assert files is not None

        def write(original: Original, record: ClaimRecord, inventory: Inventory) -> None:
            original(record, inventory)
            for owner, path in files.list_files():
                if owner == record.uid:
                    changed = change([*_documents(path.read_text(encoding="utf-8"))])
                    path.write_text("\n".join(map(json.dumps, changed)), encoding="utf-8")

        replace(files.write, write)

    return lambda world: in_each_core(world, mutate)


def _documents(text: str) -> Iterator[Obj]:
    decoder = json.JSONDecoder()
    while text.strip():
        found, end = decoder.raw_decode(text.strip())
        yield found
        text = text.strip()[end:]


def in_requests(change: Callable[[Obj], None]) -> Callable[[list[Obj]], list[Obj]]:
    def changed(documents: list[Obj]) -> list[Obj]:
        for document in documents:
            for request in document["requests"]:
                change(request)
        return documents

    return changed


def no_attributes(request: Obj) -> None:
    for device in request["devices"]:
        device.pop("attributes", None)


def no_standard_attributes(request: Obj) -> None:
    for device in request["devices"]:
        device["attributes"] = {
            name: value
            for name, value in device["attributes"].items()
            if not name.startswith("resource.kubernetes.io/")
        }


def first_device(request: Obj) -> None:
    del request["devices"][1:]


DEFECTS: Defects = {
    "cdi-edits-of-devices-are-of-claims": writes(for_the_whole_claim),
    "driver-answers-for-all-requests": answers(no_request),
    "driver-answers-with-alternatives": answers(as_allocated),
    "driver-ignores-config-for-alternatives": prepares(config_for(lambda name, _: "/" not in name)),
    "driver-ignores-config-for-their-request": prepares(
        config_for(lambda name, results: "/" in name or name in results)
    ),
    "driver-refuses-config-of-others": refuses_config_of_others,
    "driver-refuses-monitors": refuses_beside(lambda own, _other: own),
    "driver-refuses-what-is-monitored": refuses_beside(lambda _own, other: other),
    "driver-unprepares-all-claims": takes_all_away,
    "metadata-for-the-first-device-only": metadata(in_requests(first_device)),
    "metadata-of-generated-claims-elsewhere": writes(
        lambda spec: spec.replace("/resourceclaimtemplates/", "/resourceclaims/")
    ),
    "metadata-without-standard-attributes": metadata(in_requests(no_standard_attributes)),
    "metadata-without-attributes": metadata(in_requests(no_attributes)),
}
