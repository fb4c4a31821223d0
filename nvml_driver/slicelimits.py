"""The API server's rules for ResourceSlices, as far as a driver can break them.

So that a driver can say what is wrong before a server refuses it, on a machine without a cluster.
Source: k8s.io/api/resource/v1/types.go at 1.37 (limits and field comments) and
k8s.io/kubernetes/pkg/apis/resource/validation.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

_Json = Mapping[str, Any]

MAX_DEVICES, MAX_ADVANCED_DEVICES, MAX_COUNTER_SETS = 128, 64, 8
MAX_COUNTERS, MAX_CONSUMPTIONS, MAX_TAINTS = 32, 2, 16
MAX_ATTRIBUTES, MAX_VALUES, MAX_TEXT = 32, 48, 64
_LABEL = re.compile(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?")
_SUBDOMAIN = re.compile(
    r"(?=.{1,253}$)[a-z0-9]([a-z0-9-]*[a-z0-9])?(\.[a-z0-9]([a-z0-9-]*[a-z0-9])?)*"
)
_IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,31}")
_SEMVER = re.compile(r"(0|[1-9]\d*)(\.(0|[1-9]\d*)){2}(-[0-9A-Za-z.-]+)?(\+[0-9A-Za-z.-]+)?")
_QUANTITY = re.compile(r"(\d+)(Ki|Mi|Gi|Ti|Pi|Ei|)")
_UNITS = ("", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei")
_ADVANCED = ("taints", "consumesCounters")


def problems(slices: Sequence[_Json], *, separate_counters: bool = True) -> list[str]:
    """What a server would refuse or a scheduler would not understand; empty if all is well.

    Stricter than a server in what only makes sense in the whole pool (names and counter sets), and
    in slices without devices and empty strings, which say nothing.

    Args:
        slices: of one driver and node, as on the wire.
        separate_counters: counter sets have slices of their own, as servers want it from 1.35 on.
    """
    found = [*_pool(slices), *(f"{where}: {what}" for where, what in _each(slices))]
    found += [
        f"{slice_['metadata']['name']}: both devices and sharedCounters"
        for slice_ in slices
        if separate_counters
        and slice_["spec"].get("devices")
        and slice_["spec"].get("sharedCounters")
    ]
    return found


def _each(slices: Sequence[_Json]) -> Iterator[tuple[str, str]]:
    sets: dict[str, _Json] = {}
    for slice_ in slices:
        for counters in slice_["spec"].get("sharedCounters", ()):
            sets[counters["name"]] = counters["counters"]
    for slice_ in slices:
        name, spec = slice_["metadata"]["name"], slice_["spec"]
        if not _SUBDOMAIN.fullmatch(name):
            yield name, "metadata.name is no DNS subdomain"
        devices, shared = spec.get("devices", []), spec.get("sharedCounters", [])
        if not devices and not shared:
            yield name, "neither devices nor sharedCounters"
        advanced = any(_is_advanced(device) for device in devices)
        limit = MAX_ADVANCED_DEVICES if advanced else MAX_DEVICES
        if len(devices) > limit:
            yield name, f"{len(devices)} devices, at most {limit}"
        if len(shared) > MAX_COUNTER_SETS:
            yield name, f"{len(shared)} counter sets, at most {MAX_COUNTER_SETS}"
        for counters in shared:
            yield from ((name, what) for what in _counter_set(counters))
        for device in devices:
            where = f"{name}/{device['name']}"
            yield from ((where, what) for what in _device(device, sets))


def _pool(slices: Sequence[_Json]) -> Iterator[str]:
    pools = [slice_["spec"]["pool"] for slice_ in slices]
    if any(pool["resourceSliceCount"] != len(slices) for pool in pools):
        yield f"resourceSliceCount is not {len(slices)} in all slices"
    if len({(pool["name"], pool["generation"]) for pool in pools}) > 1:
        yield "the slices are of several pools or generations"
    for what, names in (
        ("slices", [slice_["metadata"]["name"] for slice_ in slices]),
        ("devices", [d["name"] for s in slices for d in s["spec"].get("devices", ())]),
        ("counter sets", [c["name"] for s in slices for c in s["spec"].get("sharedCounters", ())]),
    ):
        twice = sorted({name for name in names if names.count(name) > 1})
        if twice:
            yield f"two {what} are called {', '.join(twice)}"


def _is_advanced(device: _Json) -> bool:
    lists = any(
        kind.endswith("s") for value in device.get("attributes", {}).values() for kind in value
    )
    return lists or any(device.get(field) for field in _ADVANCED)


def _counter_set(counters: _Json) -> Iterator[str]:
    if not _LABEL.fullmatch(counters["name"]):
        yield f"counter set {counters['name']} is no DNS label"
    yield from _counters(counters["counters"], f"counter set {counters['name']}")


def _counters(counters: _Json, where: str) -> Iterator[str]:
    if not 1 <= len(counters) <= MAX_COUNTERS:
        yield f"{where}: {len(counters)} counters, from 1 to {MAX_COUNTERS}"
    for name, counter in counters.items():
        if not _LABEL.fullmatch(name):
            yield f"{where}: counter {name} is no DNS label"
        if amount(counter["value"]) is None:
            yield f"{where}: counter {name}: {counter['value']!r} is no quantity"


def _device(device: _Json, sets: Mapping[str, _Json]) -> Iterator[str]:
    attributes, capacity = device.get("attributes", {}), device.get("capacity", {})
    if not _LABEL.fullmatch(device["name"]):
        yield "the name is no DNS label"
    if len(attributes) + len(capacity) > MAX_ATTRIBUTES:
        counts = f"{len(attributes)} attributes and {len(capacity)} capacities"
        yield f"{counts}, at most {MAX_ATTRIBUTES}"
    values = sum(
        len(value) if isinstance(value, list) else 1
        for attribute in attributes.values()
        for value in attribute.values()
    )
    if values > MAX_VALUES:
        yield f"{values} attribute values, at most {MAX_VALUES}"
    for name in (*attributes, *capacity):
        domain, _, identifier = name.rpartition("/")
        if not _IDENTIFIER.fullmatch(identifier) or (domain and not _good_domain(domain)):
            yield f"{name} is no qualified name"
    for name, attribute in attributes.items():
        yield from (f"attribute {name}: {what}" for what in _attribute(attribute))
    for name, entry in capacity.items():
        yield from (f"capacity {name}: {what}" for what in _capacity(entry))
        if "requestPolicy" in entry and not device.get("allowMultipleAllocations"):
            yield f"capacity {name}: requestPolicy without allowMultipleAllocations"
    yield from _consumptions(device.get("consumesCounters", []), sets)
    taints = device.get("taints", [])
    if len(taints) > MAX_TAINTS:
        yield f"{len(taints)} taints, at most {MAX_TAINTS}"
    for taint in taints:
        if taint["effect"] not in ("None", "NoSchedule", "NoExecute"):
            yield f"taint {taint['key']}: unknown effect {taint['effect']}"
    if len({(taint["key"], taint["effect"]) for taint in taints}) < len(taints):
        yield "two taints have the same key and effect"


def _good_domain(domain: str) -> bool:
    return len(domain) <= 63 and _SUBDOMAIN.fullmatch(domain) is not None


def _attribute(attribute: _Json) -> Iterator[str]:
    if len(attribute) != 1:
        yield "must have exactly one value"
        return
    [(kind, value)] = attribute.items()
    expected: dict[str, type] = {"string": str, "version": str, "int": int, "bool": bool}
    values = value if kind.endswith("s") else [value]
    type_ = expected.get(kind.removesuffix("s") if kind != "s" else kind)
    if type_ is None:
        yield f"unknown type {kind}"
        return
    for each in values:
        if type(each) is not type_:
            yield f"{each!r} is no {kind}"
        elif not isinstance(each, str):
            continue
        elif not 0 < len(each) <= MAX_TEXT:
            yield f"{each!r} has no or more than {MAX_TEXT} characters"
        elif kind.startswith("version") and not _SEMVER.fullmatch(each):
            yield f"{each!r} is no semantic version"


def _capacity(entry: _Json) -> Iterator[str]:
    value = amount(entry["value"])
    if value is None:
        yield f"{entry['value']!r} is no quantity"
        return
    policy = entry.get("requestPolicy")
    if policy is None:
        return
    valid = policy.get("validRange", {})
    default = amount(policy.get("default", "")) or 0
    low, high = amount(valid.get("min", "")) or 0, amount(valid.get("max", entry["value"])) or 0
    step = amount(valid.get("step", ""))
    if not low <= default <= high <= value:
        yield f"min {low} <= default {default} <= max {high} <= value {value} does not hold"
    if step is not None and (low + step > value or (default - low) % step or (high - low) % step):
        yield f"step {step} does not reach default, max or anything"


def _consumptions(consumed: Sequence[_Json], sets: Mapping[str, _Json]) -> Iterator[str]:
    if len(consumed) > MAX_CONSUMPTIONS:
        yield f"consumes of {len(consumed)} counter sets, at most {MAX_CONSUMPTIONS}"
    for entry in consumed:
        name = entry["counterSet"]
        yield from _counters(entry["counters"], f"consumesCounters {name}")
        if name not in sets:
            yield f"consumes of counter set {name}, which the pool does not have"
            continue
        unknown = sorted(set(entry["counters"]) - set(sets[name]))
        if unknown:
            yield f"consumes {', '.join(unknown)}, which counter set {name} does not have"
        for counter in set(entry["counters"]) & set(sets[name]):
            needs, there = (
                amount(side[counter]["value"]) or 0 for side in (entry["counters"], sets[name])
            )
            if needs > there:
                yield f"consumes {needs} of {counter}, of which {name} has {there}"


def amount(quantity: str) -> int | None:
    """The number of a quantity without fraction, such as ``15Gi``; None if it is none."""
    found = _QUANTITY.fullmatch(quantity)
    return int(found.group(1)) * 1024 ** _UNITS.index(found.group(2)) if found else None
