"""``hardware`` and ``deviceNodes``: what a vendor's tool and device files show in containers.

A driver says twice what a device is: in its ResourceSlice, by which the scheduler chooses, and by
what it puts into containers. The tool asks the hardware, and so is a third witness.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from itertools import combinations
from typing import ClassVar, Literal

from pydantic import Field, model_validator

from conformance.scenario.driver.devicefiles import NAME, OTHERS, SHARED_MAJORS, DeviceFile, shown
from conformance.scenario.expectations.base import Cluster, Known
from conformance.scenario.expectations.container_base import ContainersExpectation, SeenBy, Views
from conformance.scenario.expectations.container_identity import (
    Device,
    allocated_to,
    published,
    share_a_device,
)
from kube.base.text import counted, shorten
from kube.simulated import MARK, SIMULATED_ATTRIBUTE
from reference_allocator.api.quantity import QuantityError, parse_quantity

_AMOUNT = re.compile(r"(\d+) ?([KMGT]i|)B?")  # How tools write an amount: ``15360 MiB``.

Shown = list[dict[str, str]]
"""Devices that a tool shows, each as name of an attribute or a capacity -> text."""


class Hardware(SeenBy):
    """What the vendor's tool shows in containers."""

    command: str = Field(
        default="list", description="name below probe.hardware of the driver profile"
    )
    agrees: tuple[str, ...] = Field(
        default=(),
        description=(
            "attributes and capacity in which the devices that are shown are those that the"
            " container was allocated, as their ResourceSlice has them (where it has them)"
        ),
    )
    relation: Literal["same", "different"] | None = Field(
        default=None, description="all show the same devices, or no two show a common one"
    )
    count: int | None = Field(default=None, ge=0, description="how many devices each shows")

    @model_validator(mode="after")
    def _complete(self) -> Hardware:
        if not self.agrees and self.relation is None and self.count is None:
            raise ValueError("expect agrees, a relation or a count")
        return self


class HardwareExpectation(ContainersExpectation):
    """What the vendor's tool shows in containers (tier device)."""

    final: ClassVar[bool] = True  # the probe asks once, when its container starts

    hardware: Hardware

    def describe(self) -> str:
        wanted = self.hardware
        parts = []
        if wanted.count is not None:
            parts.append(counted(wanted.count, "device"))
        if wanted.relation is not None:
            parts.append("the same" if wanted.relation == "same" else "no device in common")
        if wanted.agrees:
            parts.append(f"what is allocated, by {', '.join(wanted.agrees)}")
        who = ", ".join(wanted.seen_by)
        return f"the tool ({wanted.command}) shows {who} {' and '.join(parts)}"

    def wrong(self, views: Views, cluster: Cluster) -> list[str]:
        wanted = self.hardware
        assert cluster.profile is not None, "scenarios of this tier run with a driver profile"
        command = cluster.profile.spec.probe.hardware[wanted.command]
        shown: dict[str, Shown] = {}
        wrong = []
        for entry, view in views.items():
            name, _, container = entry.partition("/")
            pod, output = cluster.get("Pod", name), view.outputs.get(wanted.command)
            if pod is None or output is None:
                what = "does not run the probe of this tier" if pod is not None else "is gone"
                wrong.append(f"{entry} {what}")
                continue
            shown[entry] = command.devices(output)
            own = [_texts(one.device, cluster) for one in allocated_to(pod, container, cluster)]
            if MARK in output and not any(SIMULATED_ATTRIBUTE in one for one in own):
                wrong.append(f"{entry} shows simulated devices that the ResourceSlices call real")
            if wanted.count not in (None, len(shown[entry])) or (
                wanted.agrees and not _agree(shown[entry], own, wanted.agrees)
            ):
                expected = [{key: one.get(key) for key in wanted.agrees} for one in own]
                wrong.append(f"{entry} shows {_said(output)}; allocated is {expected or 'none'}")
        if len(shown) < len(views) or (
            wanted.relation == "different" and share_a_device(shown, cluster)
        ):
            return wrong
        return wrong + _related(shown, wanted.relation)

    def lint(self, known: Known) -> None:
        super().lint(known)
        known.needed(("hardware",), "hardware")


def _texts(device: Device, cluster: Cluster) -> dict[str, str]:
    """Attributes and capacity of a device as it is published: name -> text."""
    found = published(device, cluster)
    attributes = (found.get("attributes") or {}).items()
    capacity = (found.get("capacity") or {}).items()
    texts = {name: str(next(iter(value.values()))) for name, value in attributes}
    return texts | {name: value["value"] for name, value in capacity}


def _agree(shown: Shown, own: list[dict[str, str]], names: tuple[str, ...]) -> bool:
    """Whether they are the same devices, by these of what is said of them."""
    left = list(shown)
    for device in own:
        same = (i for i, one in enumerate(left) if all(_same(device, one, name) for name in names))
        index = next(same, None)
        if index is None:
            return False
        del left[index]
    return not left


def _same(device: Mapping[str, str], shown: Mapping[str, str], name: str) -> bool:
    said, text = device.get(name), shown.get(name)
    if said is None:  # a partition has no uuid before it is made
        return True
    if text is None:
        return False
    amount = _AMOUNT.fullmatch(text)
    if said == text or amount is None:
        return said == text
    try:
        unit = parse_quantity(f"1{amount[2]}").nanos
        # Tools round to their unit.
        return abs(parse_quantity(said).nanos - int(amount[1]) * unit) < unit
    except QuantityError:
        return False


def _related(shown: Mapping[str, Shown], relation: str | None) -> list[str]:
    """What is wrong with the devices of several containers."""
    found = [{tuple(sorted(one.items())) for one in devices} for devices in shown.values()]
    distinct = set().union(*found)
    holds = {
        None: True,
        "same": bool(distinct) and all(devices == distinct for devices in found),
        "different": all(found) and len(distinct) == sum(map(len, found)),
    }[relation]
    each = ", ".join(f"{entry} shows {devices or 'none'}" for entry, devices in shown.items())
    return [] if holds else [f"not {relation} devices: {each}"]


def _said(output: str) -> str:
    """An output, for a message."""
    return repr(output.strip()[-300:]) if output.strip() else "nothing"


class DeviceNodes(SeenBy):
    """Device files of containers that run ``${probe.open}``."""

    relation: Literal["same", "different"] | None = Field(
        default=None,
        description="all have files of the same numbers (major:minor), or no two of a common one",
    )
    no_others: bool = Field(
        default=False,
        description=(
            "the containers, which may make device files (root, capability MKNOD), may open none of"
            " the numbers beside their own"
        ),
    )


class DeviceNodesExpectation(ContainersExpectation):
    """The device files of containers can be opened, one number for each device."""

    device_nodes: DeviceNodes

    def describe(self) -> str:
        parts = ["open their device files"]
        if self.device_nodes.relation == "same":
            parts.append("of the same numbers")
        if self.device_nodes.relation == "different":
            parts.append("of no common number")
        if self.device_nodes.no_others:
            parts.append("and no others")
        return f"{', '.join(self.device_nodes.seen_by)} {' '.join(parts)}"

    def wrong(self, views: Views, cluster: Cluster) -> list[str]:
        assert cluster.profile is not None, "scenarios with containers run with a driver profile"
        probe = cluster.profile.spec.probe
        wrong: list[str] = []
        numbers: dict[str, frozenset[str]] = {}
        for entry, view in views.items():
            if NAME not in view.outputs:
                return [f"{entry} does not run ${{probe.open}}"]
            files, output = shown(view.outputs[NAME]), view.outputs[NAME].strip()
            if not files and output:  # the image may lack a command
                wrong.append(f"{entry} says {shorten(output, 3, 300)}")
            own = [file for file in files if probe.is_device_node(file.path)]
            numbers[entry] = frozenset(file.number for file in own)
            wrong += (f"{entry} {problem}" for problem in self._problems(files, own))
        for (one, its), (two, others) in combinations(numbers.items(), 2):
            if self.device_nodes.relation == "same" and its != others:
                wrong.append(f"{one} has {_told(its)}, {two} {_told(others)}")
            different = self.device_nodes.relation == "different"
            if different and its & others and not share_a_device((one, two), cluster):
                wrong.append(f"{one} and {two} both have {_told(its & others)}")
        return wrong

    def _problems(self, files: list[DeviceFile], own: list[DeviceFile]) -> list[str]:
        """What is wrong with the files of one container."""
        if not own:
            return ["has no device file of the driver"]
        found = [
            f"may not open {file.path} ({file.number}): {file.said}" for file in own if file.refused
        ]
        found += [
            f"has {one.path} and {two.path}, which are both {one.number}"
            for one, two in combinations(own, 2)
            if one.number == two.number
        ]
        if self.device_nodes.no_others:
            given = {file.number for file in files if not file.path.startswith(OTHERS)}
            made = [file for file in files if file.path.startswith(OTHERS)]
            if not made and any(file.major not in SHARED_MAJORS for file in own):
                found.append("cannot make device files; it needs root and the capability MKNOD")
            more = {one.number for one in made if not one.denied} - given
            found += [f"may open {_told(more)}, which it was not given"] if more else []
        return found


def _told(numbers: frozenset[str] | set[str]) -> str:
    return ", ".join(sorted(numbers, key=lambda number: (len(number), number)))
