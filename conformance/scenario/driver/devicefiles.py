"""What a container with ``${probe.open}`` shows of its device files: numbers, and what it may open.

The kernel lets a container open those device files alone whose numbers are in its device cgroup,
whatever files there are. So a file alone is half a device; and a container that may make device
files (capability MKNOD) has to be refused all numbers that it was not given.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

NAME: Final = "device-files"  # Of the probe's command.

OTHERS: Final = "/dev/dra-conformance-"
"""Where a container makes device files of numbers beside its own."""

WINDOW: Final = 32  # Minor numbers that are tried, those of its own file among them.

SHARED_MAJORS: Final = (1, 5, 10)
"""Memory devices, terminals, misc (devices.txt of the kernel): what has these is no driver's."""

_EVERY_CONTAINERS: Final = "|".join(
    f"/dev/{name}"
    for name in (
        *("null", "zero", "full", "random", "urandom", "tty", "console", "ptmx", "pts/*"),
        f"{OTHERS.removeprefix('/dev/')}*",
    )
)
_FILE: Final = "device-file "

SCRIPT: Final = (
    "{ find /dev -type c | while read -r f; do"
    f' case "$f" in {_EVERY_CONTAINERS}) continue;; esac;'
    ' n=$(stat -c %t:%T "$f"); major=$((0x${n%:*})); minor=$((0x${n#*:}));'
    f' echo "{_FILE}$major:$minor $f"; (: < "$f");'
    f' case "$major" in {"|".join(map(str, SHARED_MAJORS))}) continue;; esac;'
    f" i=$((minor / {WINDOW} * {WINDOW})); last=$((i + {WINDOW}));"
    f' while [ $i -lt $last ]; do o="{OTHERS}$major-$i";'
    ' [ -e "$o" ] || mknod "$o" c $major $i 2> /dev/null || break;'
    f' echo "{_FILE}$major:$i $o"; (: < "$o"); i=$((i + 1)); done; done; }}'
)
"""What the container runs. Files that every container has are left out; what cannot be opened says
why, in a line of its own."""

REFUSED: Final = "Operation not permitted"
"""EPERM, which the kernel answers for a number that is not in the device cgroup."""


@dataclass(frozen=True, slots=True)
class DeviceFile:
    """A device file of a container; ``number`` is ``major:minor``, ``said`` the message of open."""

    path: str
    number: str
    message: str = ""

    @property
    def major(self) -> int:
        return int(self.number.partition(":")[0])

    @property
    def refused(self) -> bool:
        """Return whether the device cgroup does not let it be opened.

        No refusal are ENXIO, no such device, and EACCES: a file may be another user's.
        """
        return REFUSED.lower() in self.message.lower()

    @property
    def denied(self) -> bool:
        """Return whether it was refused by whatever, as SELinux, which says EACCES."""
        return self.refused or "permission denied" in self.message.lower()


def read_device_files(output: str) -> list[DeviceFile]:
    files: list[DeviceFile] = []
    for line in output.splitlines():
        if line.startswith(_FILE):
            number, _, path = line.removeprefix(_FILE).partition(" ")
            files.append(DeviceFile(path, number))
        elif files:
            last = files[-1]
            files[-1] = DeviceFile(last.path, last.number, f"{last.message} {line}".strip())
    return files


def format_device_files(files: Iterable[DeviceFile]) -> str:
    """Return what the command prints where these are the files."""
    lines = []
    for file in files:
        lines.append(f"{_FILE}{file.number} {file.path}")
        lines += [file.message] if file.message else []
    return "".join(f"{line}\n" for line in lines)


def list_window_numbers(number: str) -> list[str]:
    """Return the numbers that are tried beside a device's own, itself among them."""
    major, minor = map(int, number.split(":"))
    if major in SHARED_MAJORS:
        return []
    first = minor // WINDOW * WINDOW
    return [f"{major}:{minor_number}" for minor_number in range(first, first + WINDOW)]
