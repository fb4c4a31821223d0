"""What the devices of two pods have in common: a rail, a PCIe root, a NUMA node; or do not.

No rule of DRA spans two pods, so that each may be right and both together slow: each pod's GPU and
NIC are on one rail, and the pods' rails differ.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from conformance.compare.evidence import Object, ask_reference, claim_names, full_name, key_of
from kube.base.errors import UsageError
from kube.base.text import join_some
from kube.slices import results_of
from reference_allocator.api import DeviceId, ResourceSlice
from reference_allocator.snapshot import Snapshot

Values = Mapping[str, frozenset[str]]
"""Attribute with its domain -> the values that a pod's devices have."""


@dataclass(frozen=True, slots=True)
class CommonAttributes:
    """What two pods' devices have in common.

    Attributes:
        shared: attribute -> values that devices of both pods have.
        different: attribute that devices of both have -> the values of the one and of the other.
    """

    pods: tuple[str, str]
    shared: Mapping[str, tuple[str, ...]]
    different: Mapping[str, tuple[tuple[str, ...], tuple[str, ...]]]

    @property
    def text(self) -> str:
        """The text for people."""
        return "\n".join(self._lines())

    def _lines(self) -> Iterator[str]:
        first, second = self.pods
        if not (self.shared or self.different):
            yield f"{first} and {second}: their devices have no attribute in common"
        for name, (of_first, of_second) in self.different.items():
            yield (
                f"{first} and {second} share no value of {name}: {join_some(of_first)}, and"
                f" {join_some(of_second)}"
            )
        for name, values in self.shared.items():
            yield f"{first} and {second} share {name}: {join_some(values)}"


def compare_pods(snapshot: Snapshot, first: str, second: str) -> CommonAttributes:
    """Compare the attributes of the devices that two pods ``namespace/name`` have.

    Attributes whose values are all different (serial numbers) say nothing and are left out.
    Raises UsageError: there is no such pod, or it has no devices.
    """

    def ask() -> CommonAttributes:
        attributes, telling = _read_attributes(snapshot)
        of_first, of_second = (
            _values_of(snapshot, pod, attributes, telling) for pod in (first, second)
        )
        common = sorted(of_first.keys() & of_second.keys())
        shared = {name: tuple(sorted(of_first[name] & of_second[name])) for name in common}
        return CommonAttributes(
            (first, second),
            {name: values for name, values in shared.items() if values},
            {
                name: (tuple(sorted(of_first[name])), tuple(sorted(of_second[name])))
                for name, values in shared.items()
                if not values
            },
        )

    return ask_reference(ask)


def _read_attributes(snapshot: Snapshot) -> tuple[Mapping[DeviceId, Values], set[str]]:
    """Return the attributes of each device, and which have a value that two devices share."""
    attributes: dict[DeviceId, Values] = {}
    times: dict[str, Counter[str]] = defaultdict(Counter)
    for item in map(ResourceSlice.from_dict, snapshot.slices):
        for device in item.devices:
            values = {
                name if "/" in name else f"{item.driver}/{name}": frozenset(map(str, value.values))
                for name, value in device.attributes.items()
                if value.values
            }
            attributes[DeviceId(item.driver, item.pool, device.name)] = values
            for name, several in values.items():
                times[name].update(several)
    return attributes, {name for name, count in times.items() if max(count.values()) > 1}


def _values_of(
    snapshot: Snapshot, pod: str, attributes: Mapping[DeviceId, Values], telling: set[str]
) -> dict[str, frozenset[str]]:
    """Return the values that a pod's devices have. Raises UsageError: it has none."""
    obj: Object | None = next((item for item in snapshot.pods if full_name(item) == pod), None)
    if obj is None:
        raise UsageError(f"{pod}: there is no Pod with devices of that name; give NAMESPACE/NAME")
    keys = {(key_of(obj)[0], name) for name in claim_names(obj)}
    devices = [
        DeviceId(item["driver"], item["pool"], item["device"])
        for claim in snapshot.allocated
        if key_of(claim) in keys
        for item in results_of(claim)
    ]
    if not devices:
        raise UsageError(f"{pod}: has no devices yet; explain it alone")
    merged: dict[str, frozenset[str]] = {}
    for device in devices:
        for name, values in attributes.get(device, {}).items():
            if name in telling:
                merged[name] = merged.get(name, frozenset()) | values
    return merged
