"""What two allocations of the same claims have in common, and where they differ.

Devices are compared as multisets for each request. The rest (configuration, node selector) follows
from the devices and the claims, so that for the same devices it must be the same.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from conformance.compare.evidence import Obj, name_of
from conformance.jsondiff import json_text

Devices = dict[str, Counter[tuple[str, str, str]]]


def devices_of(allocation: Mapping[str, Any]) -> Devices:
    """Request -> (driver, pool, device) as a multiset; share ids and order do not count."""
    devices: Devices = {}
    for result in (allocation.get("devices") or {}).get("results") or ():
        names = (result.get("driver", ""), result.get("pool", ""), result.get("device", ""))
        devices.setdefault(result.get("request", ""), Counter())[names] += 1
    return devices


def beside_devices(
    claims: Sequence[Obj], found: Sequence[Obj], expected: Sequence[Obj]
) -> Iterator[str]:
    """Differences in what an allocation says besides devices, the devices being the same."""
    for claim, left, right in zip(claims, found, expected, strict=True):
        name = name_of(claim)
        for field, have, want in (
            ("devices.config", _config(left), _config(right)),
            ("nodeSelector", _selector(left), _selector(right)),
        ):
            if have != want:
                yield (
                    f"claim {name}: allocation.{field} is {json_text(have, 300)}; for these devices"
                    f" it is {json_text(want, 300)}"
                )


def preferences(
    claims: Sequence[Obj], found: Sequence[Devices], expected: Sequence[Devices]
) -> Iterator[str]:
    """Whether a less preferred alternative was taken though a preferred one was available.

    KEP-4816: the alternatives of ``firstAvailable`` are tried in their order. The search settles
    requests one after the other, so its answer binds only while all choices before are the same.
    """
    for claim, left, right in zip(claims, found, expected, strict=True):
        devices = (claim.get("spec") or {}).get("devices") or {}
        for request in devices.get("requests") or ():
            name = request.get("name", "")
            names = [f"{name}/{item.get('name', '')}" for item in request.get("firstAvailable", ())]
            taken = next((item for item in names if item in left), None)
            wanted = next((item for item in names if item in right), None)
            if taken is not None and wanted is not None and taken != wanted:
                if names.index(taken) > names.index(wanted):
                    yield (
                        f"preference: claim {name_of(claim)} got alternative {taken}, though"
                        f" {wanted} comes before it and the reference can satisfy that one"
                    )
                return
            if any(left.get(item) != right.get(item) for item in (name, *names)):
                return


def _config(allocation: Mapping[str, Any]) -> list[Any]:
    """Configurations in their order, which has a meaning; absent and empty are the same."""
    return [
        {key: value for key, value in item.items() if value not in (None, [])}
        for item in (allocation.get("devices") or {}).get("config") or ()
    ]


def _selector(allocation: Mapping[str, Any]) -> Any:
    """The node selector with terms, requirements and values in a fixed order: they are sets."""
    selector = allocation.get("nodeSelector")
    return None if not selector else _as_set(selector)


def _as_set(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _as_set(item) for key, item in sorted(value.items()) if item not in (None, [])}
    if isinstance(value, Sequence) and not isinstance(value, str):
        return sorted((_as_set(item) for item in value), key=lambda item: json_text(item, 10_000))
    return value


def names_of(found: Sequence[Devices]) -> str:
    """``gpu: gpu-0, gpu-1`` for each request, in words; at most a few of them."""
    parts = []
    for devices in found:
        for request, counted in sorted(devices.items()):
            names = sorted(device for (_, _, device), n in counted.items() for _ in range(n))
            shown = ", ".join(names[:4]) + (f" and {len(names) - 4} more" if names[4:] else "")
            parts.append(f"{shown} for {request}")
    return "; ".join(parts[:8]) + (" ..." if parts[8:] else "") or "no device"
