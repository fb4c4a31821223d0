"""Which configuration goes into an allocation, in which order and for which requests.

Class configurations first, in the order of requests and each class once, then those of the claim
that are for all requests or name a chosen one. A list of requests that covers all of them is left
out, because an empty list says the same.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from reference_allocator.api import DeviceClass, ResourceClaim


def config_results(
    claim: ResourceClaim, names: Sequence[str], classes: Sequence[DeviceClass]
) -> list[dict[str, Any]]:
    """The `devices.config` of an AllocationResult.

    Args:
        claim: the claim.
        names: for each request the name that results use, `request` or `request/subrequest`.
        classes: for each request the class of what was chosen.

    Returns:
        v1 DeviceAllocationConfiguration objects.
    """
    found = [*_of_classes(names, classes), *_of_claim(claim, names)]
    return [_entry(source, requests, names, body) for source, requests, body in found]


_Entry = tuple[str, Sequence[str], Mapping[str, Any]]


def _of_classes(names: Sequence[str], classes: Sequence[DeviceClass]) -> list[_Entry]:
    users: dict[str, list[str]] = {}
    by_name: dict[str, DeviceClass] = {}
    for name, device_class in zip(names, classes, strict=True):
        users.setdefault(device_class.name, []).append(name)
        by_name.setdefault(device_class.name, device_class)
    return [
        ("FromClass", requests, config.configuration)
        for class_name, requests in users.items()
        for config in by_name[class_name].config
    ]


def _of_claim(claim: ResourceClaim, names: Sequence[str]) -> list[_Entry]:
    chosen = {*names, *(request.name for request in claim.requests)}
    return [
        ("FromClaim", config.requests, config.configuration)
        for config in claim.config
        if not config.requests or not chosen.isdisjoint(config.requests)
    ]


def _entry(
    source: str, requests: Sequence[str], names: Sequence[str], body: Mapping[str, Any]
) -> dict[str, Any]:
    listed = set(requests)
    covers_all = all(name in listed or name.partition("/")[0] in listed for name in names)
    entry: dict[str, Any] = {"source": source}
    if requests and not covers_all:
        entry["requests"] = list(requests)
    entry.update(body)
    return entry
