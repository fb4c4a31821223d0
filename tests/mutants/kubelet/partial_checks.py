"""Kubelet and driver look at a part: the beginning of a name, one device, one request."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace as changed

from kubesim.nodes.dra_manager import DRAManager
from kubesim.world import World
from nvml_driver.model.prepared import ClaimRecord
from tests.mutants.driver import in_each_core
from tests.mutants.replacing import Defects, instead, replace


@instead(DRAManager.devices_of)
def _names_that_begin_so(
    manager: DRAManager, _: Callable[..., Iterator[str]], claim_uid: str, request: str = ""
) -> Iterator[str]:
    """A container gets the devices of all requests whose names begin as that which it names."""
    for found in manager.prepared[claim_uid].devices.values():
        for device in found:
            if any(name.startswith(request) for name in device.request_names or [request]):
                yield from device.cdi_device_ids


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
    "requests-are-found-by-their-beginning": _names_that_begin_so,
    "metadata-of-the-first-request-alone": _metadata_of_first_request,
}
