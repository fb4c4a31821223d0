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
from typing import Any, Final, Literal

from pydantic import Field, field_validator, model_validator

from conformance.probe import METADATA
from conformance.scenario.base import Strict
from conformance.scenario.observation import ContainerView

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

_SET = re.compile(r"\d{1,9}(-\d{1,9})?(,\d{1,9}(-\d{1,9})?)*")


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
    line: str = Field(
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

    @field_validator("line")
    @classmethod
    def _regex(cls, value: str) -> str:
        return regular_expression(value)

    @model_validator(mode="after")
    def _complete(self) -> Way:
        if sum(one is not None for one in (self.kind, self.file, self.run)) != 1:
            raise ValueError("give one of kind, file and run: where the lines are from")
        if sum(map(bool, (self.device_name, self.attribute, self.table))) > 1:
            raise ValueError("give one of deviceName, attribute and table: what a text is")
        if self.device_name is not None:
            check_template(self.device_name, self.line)
        return self

    @property
    def script(self) -> str | None:
        """What the container has to run for its lines; None: what every probe prints has them.

        Messages do not count: a container without devices may have neither the file nor the tool.
        """
        if self.file is not None:
            return f'for f in {self.file}; do [ -e "$f" ] && cat "$f"; done'
        return f"( {self.run} ) 2> /dev/null" if self.run else SCRIPTS.get(str(self.kind))

    def lines(self, view: ContainerView, driver: str, name: str) -> Iterable[str]:
        """What a container shows in this way, called ``name`` in the profile of ``driver``."""
        if self.kind == "env":
            return (f"{key}={value}" for key, value in view.environment.items())
        if self.kind == "deviceNodes":
            return view.device_nodes
        if self.kind == "metadata":
            return _described(view.outputs, driver)
        return view.outputs.get(output_name(driver, name), "").splitlines()

    def devices(self, lines: Iterable[str], known: Attributes) -> frozenset[str]:
        """Names of the devices that lines name; what is no name of a device is said as it is."""
        found = (re.match(self.line, line) for line in lines)
        return frozenset(
            name
            for match in found
            if match is not None
            for text in self._texts(match)
            for name in self._named(text, match, known)
        )

    def _texts(self, match: re.Match[str]) -> Iterable[str]:
        groups = match.groupdict()
        text = match[0] if groups.get("device") is None else groups["device"]
        if not self.set:
            return (text,)
        return map(str, numbers(text)) if _SET.fullmatch(text) else ([text] if text else ())

    def _named(self, text: str, match: re.Match[str], known: Attributes) -> Iterable[str]:
        if self.device_name is not None:
            return (self.device_name.format(text, **match.groupdict("")),)
        if self.table:
            return (self.table.get(text, f"{text!r} (not in the table)"),)
        if self.attribute is None:
            return (text,)
        having = [name for name, own in known.items() if text in own.get(self.attribute, ())]
        return having or (f"{self.attribute}={text}",)  # no device can have such a name


def published_attributes(devices: Iterable[Mapping[str, Any]], driver: str) -> Attributes:
    """What devices of a driver have, as their ResourceSlices say (v1, DeviceAttribute)."""
    return {
        str(device["name"]): {
            name.removeprefix(f"{driver}/"): frozenset(map(_text, _values(value)))
            for name, value in (device.get("attributes") or {}).items()
        }
        for device in devices
    }


def _values(attribute: Mapping[str, Any]) -> Iterator[Any]:
    for value in attribute.values():
        yield from value if isinstance(value, list) else [value]


def _text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def output_name(driver: str, way: str) -> str:
    """By what name a container prints a way, beside those of another driver."""
    return f"{driver}/{way}"


def regular_expression(text: str) -> str:
    """The text. Raises ValueError: it is no regular expression."""
    try:
        re.compile(text)
    except re.error as error:
        raise ValueError(f"is not a regular expression: {error}") from None
    return text


def check_template(template: str, pattern: str) -> None:
    """Raises ValueError: a template has something else than groups of a regular expression."""
    groups = re.compile(pattern).groupindex
    try:
        parts = list(Formatter().parse(template))
    except ValueError as error:
        raise ValueError(f"deviceName {template!r}: {error}") from None
    for _, name, form, conversion in parts:
        if name is not None and (name not in {"0", *groups} or form or conversion):
            known = ", ".join(f"{{{one}}}" for one in ("0", *groups))
            raise ValueError(f"deviceName {template!r}: {{{name}}} is not one of {known}")


def numbers(text: str) -> Iterator[int]:
    """The numbers of a set like ``0-3,7``, at most `MOST_NUMBERS`."""
    parts = (part.partition("-") for part in text.split(","))
    every = (number for one, _, last in parts for number in range(int(one), int(last or one) + 1))
    return islice(every, MOST_NUMBERS)


def _described(files: Mapping[str, str], driver: str) -> Iterator[str]:
    """The devices in the driver's metadata files (k8s.io/dynamic-resource-allocation/api/metadata).

    A file that cannot be read so is said by its path, which is no name of a device.
    """
    for path, text in files.items():
        if path.startswith(f"{METADATA}/") and path.endswith(f"/{driver}-metadata.json"):
            try:
                found, _ = json.JSONDecoder().raw_decode(text)
                yield from (
                    str(device["name"])
                    for request in found["requests"]
                    for device in request["devices"]
                )
            except (ValueError, KeyError, TypeError, RecursionError):
                yield path
