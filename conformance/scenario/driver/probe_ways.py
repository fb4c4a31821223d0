"""One way in which a container shows its devices: where its texts are from, and whom they name.

Whatever the way is, it comes down to lines of text that are in the container's log. A line that
fits has one text, and a text names devices by itself, by a template, an attribute, a table or a
set of numbers. Whether there are such devices is not for a profile to say (``expectations``).
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from string import Formatter
from typing import Annotated, Any, Final, Literal

from pydantic import AfterValidator, Field, model_validator

from conformance.probe import METADATA
from conformance.scenario.base import Strict
from kube.observations import ContainerView

Attributes = Mapping[str, Mapping[str, frozenset[str]]]
"""Name of a device -> name of an attribute, as the profile writes it -> its values as texts."""

SCRIPTS: Final = {
    # An interface of the pod's network namespace has a folder there; `ip` knows addresses.
    "interfaces": (
        "for i in /sys/class/net/*; do [ -e $i/address ] && read -r mac < $i/address &&"
        ' echo "${i##*/} mac $mac"; done; command -v ip > /dev/null && ip -o addr |'
        ' while read -r _ name kind address _; do echo "$name $kind $address"; done'
    ),
    # proc_pid_status(5)
    "cpus": (
        "while read -r key value; do"
        ' [ "$key" = Cpus_allowed_list: ] && echo "$value"; done < /proc/self/status'
    ),
    # the same, and the files of cgroup v2
    "memory": (
        "while read -r key value; do"
        ' [ "$key" = Mems_allowed_list: ] && echo "mems $value"; done < /proc/self/status;'
        " for f in /sys/fs/cgroup/memory.max /sys/fs/cgroup/hugetlb.*.max; do"
        ' [ -e $f ] && read -r value < $f && echo "${f##*/} $value"; done'
    ),
    # proc_pid_mountinfo(5): fields 5 and 4, and those behind the dash
    "mounts": (
        "while read -r _ _ _ root target rest; do"
        ' echo "$target $root ${rest#* - }"; done < /proc/self/mountinfo'
    ),
}
"""Kind of a way -> what prints its lines: by a POSIX shell alone, without single quotes."""

MOST_NUMBERS: Final = 8192  # Of a set: as many CPUs as Linux can have (NR_CPUS).

_NUMBER_SET = re.compile(r"\d{1,9}(-\d{1,9})?(,\d{1,9}(-\d{1,9})?)*")


def _check_regular_expression(text: str) -> str:
    """Return the text. Raises ValueError if it is not a regular expression."""
    try:
        re.compile(text)
    except re.error as error:
        raise ValueError(f"is not a regular expression: {error}") from None
    return text


RegularExpression = Annotated[str, AfterValidator(_check_regular_expression)]


class Way(Strict):
    """Lines that a container shows, and the devices that they name.

    Lines come from one of ``kind``, ``file`` and ``run``. The text of a line is the group `device`
    of its match, without that group all that matched.
    """

    kind: (
        Literal["cpus", "deviceNodes", "env", "interfaces", "memory", "metadata", "mounts"] | None
    ) = Field(
        default=None,
        description=(
            "env: NAME=value; deviceNodes: path; interfaces: NAME mac MAC, and with `ip` in the"
            " image NAME inet ADDRESS/LENGTH; cpus: what the process may run on, like 0-3; memory:"
            " mems NUMA-NODES, memory.max BYTES, hugetlb.SIZE.max BYTES; mounts: TARGET ROOT TYPE"
            " SOURCE OPTIONS; metadata: names of devices in the driver's files of KEP-5304"
        ),
    )
    file: str | None = Field(
        default=None,
        pattern=r"^/[\w./*@:+-]+$",
        description="path of a file in the container, whose lines these are; * stands for any text",
    )
    run: str | None = Field(
        default=None,
        pattern=r"^[^'\n]+$",
        description="a command for the image's shell that prints the lines; without single quotes",
    )
    line: RegularExpression = Field(
        default=".+",
        description="regular expression for a line, from its begin; other lines say nothing",
    )
    set: bool = Field(
        default=False, description="the text is a set of numbers, like 0-3,7: each is a text"
    )
    device_name: str | None = Field(
        default=None,
        description="the device's name: in cpu-{0} goes the text, in gpu-{index} a group",
    )
    attribute: str | None = Field(
        default=None,
        description=(
            "the text is a value of this attribute of the device, with its domain where that is not"
            " the driver's"
        ),
    )
    table: dict[str, str] = Field(default={}, description="text -> name of the device")
    confirms: bool = Field(
        default=False,
        description=(
            "containers without devices show something, too, as they have all CPUs that nobody has:"
            " it counts only in a container that shows devices in another way"
        ),
    )

    @model_validator(mode="after")
    def _complete(self) -> Way:
        if sum(source is not None for source in (self.kind, self.file, self.run)) != 1:
            raise ValueError("give one of kind, file and run: where the lines are from")
        if sum(map(bool, (self.device_name, self.attribute, self.table))) > 1:
            raise ValueError("give one of deviceName, attribute and table: what a text is")
        if self.device_name is not None:
            check_template(self.device_name, self.line)
        return self

    @property
    def script(self) -> str | None:
        """Return what the container runs for its lines; None if what every probe prints has them.

        Messages do not count: a container without devices may have neither the file nor the tool.
        """
        if self.file is not None:
            return f'for f in {self.file}; do [ -e "$f" ] && cat "$f"; done'
        return f"( {self.run} ) 2> /dev/null" if self.run else SCRIPTS.get(str(self.kind))

    def read_lines(self, view: ContainerView, driver: str, name: str) -> Iterable[str]:
        """Return what a container shows in this way, ``name`` in the profile of ``driver``."""
        if self.kind == "env":
            return (f"{key}={value}" for key, value in view.environment.items())
        if self.kind == "deviceNodes":
            return view.device_nodes
        if self.kind == "metadata":
            return _read_metadata_names(view.outputs, driver)
        return view.outputs.get(output_name(driver, name), "").splitlines()

    def find_device_names(self, lines: Iterable[str], attributes: Attributes) -> frozenset[str]:
        """Return the names of devices in lines; what is no name of a device stays as it is."""
        matches = (re.match(self.line, line) for line in lines)
        return frozenset(
            name
            for match in matches
            if match is not None
            for text in self._list_texts(match)
            for name in self._name_devices(text, match, attributes)
        )

    def _list_texts(self, match: re.Match[str]) -> Iterable[str]:
        groups = match.groupdict()
        text = match[0] if groups.get("device") is None else groups["device"]
        if not self.set:
            return (text,)
        return (
            map(str, parse_number_set(text))
            if _NUMBER_SET.fullmatch(text)
            else ([text] if text else ())
        )

    def _name_devices(
        self, text: str, match: re.Match[str], published: Attributes
    ) -> Iterable[str]:
        if self.device_name is not None:
            return (self.device_name.format(text, **match.groupdict("")),)
        if self.table:
            return (self.table.get(text, f"{text!r} (not in the table)"),)
        if self.attribute is None:
            return (text,)
        matching = [
            name
            for name, attributes in published.items()
            if text in attributes.get(self.attribute, ())
        ]
        return matching or (f"{self.attribute}={text}",)  # no device can have such a name


def published_attributes(devices: Iterable[Mapping[str, Any]], driver: str) -> Attributes:
    """Return attributes of a driver's devices, as ResourceSlices have them (DeviceAttribute)."""
    return {
        str(device["name"]): {
            name.removeprefix(f"{driver}/"): frozenset(map(_format_value, _list_values(value)))
            for name, value in (device.get("attributes") or {}).items()
        }
        for device in devices
    }


def _list_values(attribute: Mapping[str, Any]) -> Iterator[Any]:
    for value in attribute.values():
        yield from value if isinstance(value, list) else [value]


def _format_value(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def output_name(driver: str, way: str) -> str:
    """Return the name by which a container prints a way, beside those of another driver."""
    return f"{driver}/{way}"


def check_template(template: str, pattern: str) -> None:
    """Raise ValueError if a template has something else than groups of a regular expression."""
    groups = re.compile(pattern).groupindex
    try:
        fields = list(Formatter().parse(template))
    except ValueError as error:
        raise ValueError(f"deviceName {template!r}: {error}") from None
    for _, name, form, conversion in fields:
        if name is not None and (name not in {"0", *groups} or form or conversion):
            known_fields = ", ".join(f"{{{field}}}" for field in ("0", *groups))
            raise ValueError(f"deviceName {template!r}: {{{name}}} is not one of {known_fields}")


def parse_number_set(text: str) -> Iterator[int]:
    """Yield the numbers of a set like ``0-3,7``, at most `MOST_NUMBERS`."""
    ranges = (range_text.partition("-") for range_text in text.split(","))
    numbers = (
        number for first, _, last in ranges for number in range(int(first), int(last or first) + 1)
    )
    return islice(numbers, MOST_NUMBERS)


def _read_metadata_names(files: Mapping[str, str], driver: str) -> Iterator[str]:
    """Yield the devices in the driver's metadata files.

    Their format: k8s.io/dynamic-resource-allocation, ``api/metadata``.

    A file that cannot be read so is said by its path, which is no name of a device.
    """
    for path, text in files.items():
        if path.startswith(f"{METADATA}/") and path.endswith(f"/{driver}-metadata.json"):
            try:
                metadata, _ = json.JSONDecoder().raw_decode(text)
                yield from (
                    str(device["name"])
                    for request in metadata["requests"]
                    for device in request["devices"]
                )
            except (ValueError, KeyError, TypeError, RecursionError):
                yield path
