"""``deviceNodes``: containers may open the device files of their devices, and no others."""

from __future__ import annotations

from itertools import combinations
from typing import Literal

from pydantic import Field

from conformance.scenario.driver.devicefiles import NAME, OTHERS, SHARED_MAJORS, DeviceFile, shown
from conformance.scenario.expectations.base import Cluster
from conformance.scenario.expectations.containers.base import ContainersExpectation, SeenBy, Views
from conformance.scenario.expectations.containers.identity import share_a_device
from conformance.text import shorten


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

    @property
    def wanted(self) -> DeviceNodes:
        return self.device_nodes

    @property
    def about(self) -> str:
        return self.wanted.relation or "opened"

    def describe(self) -> str:
        parts = ["open their device files"]
        if self.wanted.relation == "same":
            parts.append("of the same numbers")
        if self.wanted.relation == "different":
            parts.append("of no common number")
        if self.wanted.no_others:
            parts.append("and no others")
        return f"{', '.join(self.wanted.seen_by)} {' '.join(parts)}"

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
            if self.wanted.relation == "same" and its != others:
                wrong.append(f"{one} has {_told(its)}, {two} {_told(others)}")
            different = self.wanted.relation == "different"
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
        if self.wanted.no_others:
            given = {file.number for file in files if not file.path.startswith(OTHERS)}
            made = [file for file in files if file.path.startswith(OTHERS)]
            if not made and any(file.major not in SHARED_MAJORS for file in own):
                found.append("cannot make device files; it needs root and the capability MKNOD")
            more = {one.number for one in made if not one.denied} - given
            found += [f"may open {_told(more)}, which it was not given"] if more else []
        return found


def _told(numbers: frozenset[str] | set[str]) -> str:
    return ", ".join(sorted(numbers, key=lambda number: (len(number), number)))
