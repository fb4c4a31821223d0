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

from conformance.scenario.driver.devicefiles import (
    NAME,
    OTHERS,
    SHARED_MAJORS,
    DeviceFile,
    read_device_files,
)
from conformance.scenario.expectations.base import Cluster
from conformance.scenario.expectations.container_base import ContainersExpectation, SeenBy, Views
from conformance.scenario.expectations.container_identity import (
    Device,
    find_published_device,
    list_allocated_to_pod,
    share_a_device,
)
from conformance.scenario.lint_context import LintContext
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
        expected = self.hardware
        phrases = []
        if expected.count is not None:
            phrases.append(counted(expected.count, "device"))
        if expected.relation is not None:
            phrases.append("the same" if expected.relation == "same" else "no device in common")
        if expected.agrees:
            phrases.append(f"what is allocated, by {', '.join(expected.agrees)}")
        who = ", ".join(expected.seen_by)
        return f"the tool ({expected.command}) shows {who} {' and '.join(phrases)}"

    def find_problems(self, views: Views, cluster: Cluster) -> list[str]:
        hardware = self.hardware
        assert cluster.profile is not None, "scenarios of this tier run with a driver profile"
        command = cluster.profile.spec.probe.hardware[hardware.command]
        shown: dict[str, Shown] = {}
        problems = []
        for entry, view in views.items():
            name, _, container = entry.partition("/")
            pod, output = cluster.get("Pod", name), view.outputs.get(hardware.command)
            if pod is None or output is None:
                reason = "does not run the probe of this tier" if pod is not None else "is gone"
                problems.append(f"{entry} {reason}")
                continue
            shown[entry] = command.read_devices(output)
            allocated = [
                _read_published_values(held.device, cluster)
                for held in list_allocated_to_pod(pod, container, cluster)
            ]
            if MARK in output and not any(SIMULATED_ATTRIBUTE in values for values in allocated):
                problems.append(
                    f"{entry} shows simulated devices that the ResourceSlices call real"
                )
            if hardware.count not in (None, len(shown[entry])) or (
                hardware.agrees and not _are_same_devices(shown[entry], allocated, hardware.agrees)
            ):
                expected = [
                    {key: values.get(key) for key in hardware.agrees} for values in allocated
                ]
                text = _shorten_output(output)
                problems.append(f"{entry} shows {text}; allocated is {expected or 'none'}")
        if len(shown) < len(views) or (
            hardware.relation == "different" and share_a_device(shown, cluster)
        ):
            return problems
        return problems + _explain_wrong_relation(shown, hardware.relation)

    def lint(self, lint: LintContext) -> None:
        super().lint(lint)
        lint.requires(("hardware",), "hardware")


def _read_published_values(device: Device, cluster: Cluster) -> dict[str, str]:
    """Return attributes and capacity of a device as it is published: name -> text."""
    published_device = find_published_device(device, cluster)
    attributes = (published_device.get("attributes") or {}).items()
    capacity = (published_device.get("capacity") or {}).items()
    texts = {name: str(next(iter(value.values()))) for name, value in attributes}
    return texts | {name: value["value"] for name, value in capacity}


def _are_same_devices(
    shown_devices: Shown, allocated_devices: list[dict[str, str]], names: tuple[str, ...]
) -> bool:
    """Return whether these are the same devices, compared by these attributes and capacities."""
    unmatched = list(shown_devices)
    for device in allocated_devices:
        same = (
            i
            for i, candidate in enumerate(unmatched)
            if all(_has_same_value(device, candidate, name) for name in names)
        )
        index = next(same, None)
        if index is None:
            return False
        del unmatched[index]
    return not unmatched


def _has_same_value(device: Mapping[str, str], shown_device: Mapping[str, str], name: str) -> bool:
    published_text, shown_text = device.get(name), shown_device.get(name)
    if published_text is None:  # a partition has no uuid before it is made
        return True
    if shown_text is None:
        return False
    amount = _AMOUNT.fullmatch(shown_text)
    if published_text == shown_text or amount is None:
        return published_text == shown_text
    try:
        unit = parse_quantity(f"1{amount[2]}").nanos
        # Tools round to their unit.
        return abs(parse_quantity(published_text).nanos - int(amount[1]) * unit) < unit
    except QuantityError:
        return False


def _explain_wrong_relation(
    shown_by_container: Mapping[str, Shown], relation: str | None
) -> list[str]:
    """Return what is wrong with the devices of several containers."""
    device_sets = [
        {tuple(sorted(shown_device.items())) for shown_device in devices}
        for devices in shown_by_container.values()
    ]
    distinct = set().union(*device_sets)
    holds = {
        None: True,
        "same": bool(distinct) and all(devices == distinct for devices in device_sets),
        "different": all(device_sets) and len(distinct) == sum(map(len, device_sets)),
    }[relation]
    phrases = ", ".join(
        f"{entry} shows {devices or 'none'}" for entry, devices in shown_by_container.items()
    )
    return [] if holds else [f"not {relation} devices: {phrases}"]


def _shorten_output(output: str) -> str:
    """Return the end of an output, for a message."""
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
        phrases = ["open their device files"]
        if self.device_nodes.relation == "same":
            phrases.append("of the same numbers")
        if self.device_nodes.relation == "different":
            phrases.append("of no common number")
        if self.device_nodes.no_others:
            phrases.append("and no others")
        return f"{', '.join(self.device_nodes.seen_by)} {' '.join(phrases)}"

    def find_problems(self, views: Views, cluster: Cluster) -> list[str]:
        assert cluster.profile is not None, "scenarios with containers run with a driver profile"
        probe = cluster.profile.spec.probe
        problems: list[str] = []
        numbers_by_entry: dict[str, frozenset[str]] = {}
        for entry, view in views.items():
            if NAME not in view.outputs:
                return [f"{entry} does not run ${{probe.open}}"]
            files, output = read_device_files(view.outputs[NAME]), view.outputs[NAME].strip()
            if not files and output:  # the image may lack a command
                problems.append(f"{entry} says {shorten(output, 3, 300)}")
            own_files = [file for file in files if probe.is_device_node(file.path)]
            numbers_by_entry[entry] = frozenset(file.number for file in own_files)
            problems += (
                f"{entry} {problem}" for problem in self._find_file_problems(files, own_files)
            )
        for (entry, numbers), (other_entry, others_numbers) in combinations(
            numbers_by_entry.items(), 2
        ):
            if self.device_nodes.relation == "same" and numbers != others_numbers:
                other_text = f"{other_entry} {_join_numbers(others_numbers)}"
                problems.append(f"{entry} has {_join_numbers(numbers)}, {other_text}")
            different = self.device_nodes.relation == "different"
            if (
                different
                and numbers & others_numbers
                and not share_a_device((entry, other_entry), cluster)
            ):
                problems.append(
                    f"{entry} and {other_entry} both have {_join_numbers(numbers & others_numbers)}"
                )
        return problems

    def _find_file_problems(
        self, files: list[DeviceFile], driver_files: list[DeviceFile]
    ) -> list[str]:
        """Return what is wrong with the files of one container."""
        if not driver_files:
            return ["has no device file of the driver"]
        problems = [
            f"may not open {file.path} ({file.number}): {file.message}"
            for file in driver_files
            if file.refused
        ]
        problems += [
            f"has {first.path} and {second.path}, which are both {first.number}"
            for first, second in combinations(driver_files, 2)
            if first.number == second.number
        ]
        if self.device_nodes.no_others:
            given_numbers = {file.number for file in files if not file.path.startswith(OTHERS)}
            made_files = [file for file in files if file.path.startswith(OTHERS)]
            if not made_files and any(file.major not in SHARED_MAJORS for file in driver_files):
                problems.append("cannot make device files; it needs root and the capability MKNOD")
            extra_numbers = {
                first.number for first in made_files if not first.denied
            } - given_numbers
            problems += (
                [f"may open {_join_numbers(extra_numbers)}, which it was not given"]
                if extra_numbers
                else []
            )
        return problems


def _join_numbers(numbers: frozenset[str] | set[str]) -> str:
    return ", ".join(sorted(numbers, key=lambda number: (len(number), number)))
