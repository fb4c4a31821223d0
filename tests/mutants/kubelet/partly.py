"""Kubelet and driver look at a part: the beginning of a name, one device, one request."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace as changed

from conformance.targets.reference.nodes.dra_manager import DRAManager
from conformance.targets.reference.nodes.driver import NodeDriver
from conformance.targets.seam.values import Obj
from nvml_driver.model.prepared import ClaimRecord
from tests.mutants.replacing import Defects, instead


@instead("managers.devices_of")
def _names_that_begin_so(
    manager: DRAManager, _: Callable[..., Iterator[str]], claim_uid: str, request: str = ""
) -> Iterator[str]:
    """A container gets the devices of all requests whose names begin as that which it names."""
    for found in manager.prepared[claim_uid].devices.values():
        for device in found:
            if any(name.startswith(request) for name in device.request_names or [request]):
                yield from device.cdi_device_ids


@instead("managers.asked")
def _last_device_decides(
    _: DRAManager, original: Callable[..., list[str]], allocation: Obj, operation: str
) -> list[str]:
    """Of several devices of a driver the last says what is skipped."""
    found = (allocation.get("devices") or {}).get("results") or []
    last = {result["driver"]: result for result in found}
    return original({"devices": {"results": [*last.values()]}}, operation)


@instead("drivers._core._preparation._with_metadata")
def _metadata_of_first_request(
    _: NodeDriver, original: Callable[[ClaimRecord], ClaimRecord], record: ClaimRecord
) -> ClaimRecord:
    """The file of the first request is all that containers get."""
    first, *others = original(record).devices
    bare = [changed(one, cdi_device_ids=one.cdi_device_ids[:1]) for one in others]
    return changed(record, devices=(first, *bare))


DEFECTS: Defects = {
    "requests-are-found-by-their-beginning": _names_that_begin_so,
    "last-device-decides-on-skips": _last_device_decides,
    "metadata-of-the-first-request-alone": _metadata_of_first_request,
}
