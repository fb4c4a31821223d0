"""The commands that scenario containers run, and how their output is read.

A container shows which devices it has by printing its environment and its character devices, so
what it sees can be read from its log: while it runs, after it ended, and with no more permission
than reading logs. Only a POSIX shell, ``env`` and ``find`` are needed in the image.

The reference's kubelet runs no process; it knows these commands and behaves as they would.
"""

from __future__ import annotations

from dataclasses import dataclass

BEGIN = "dra-conformance-probe-begin"
END = "dra-conformance-probe-end"
_NODE = "dra-conformance-device-node "

_PRINT = f"echo {BEGIN}; env; find /dev -type c -exec echo '{_NODE}{{}}' \\; ; echo {END}"

HOLD = ("sh", "-c", f"trap 'exit 0' TERM; {_PRINT}; sleep 86400 & wait")
"""Prints, then runs until it is terminated. ``${probe.hold}`` in a scenario. The trap comes first:
who sees the end of what is printed may terminate it at once."""

EXIT = ("sh", "-c", _PRINT)
"""Prints, then ends with success. ``${probe.exit}`` in a scenario."""


@dataclass(frozen=True, slots=True)
class ProbeOutput:
    """A parsed probe: environment (name -> value) and paths of character devices."""

    environment: dict[str, str]
    device_nodes: tuple[str, ...]


def parse(log: str) -> ProbeOutput | None:
    """Read the last complete probe in a container's log; None if there is none yet."""
    begin = log.rfind(BEGIN + "\n")
    end = log.find(END, begin)
    if begin < 0 or end < 0:
        return None
    environment: dict[str, str] = {}
    nodes: list[str] = []
    for line in log[begin:end].splitlines()[1:]:
        if line.startswith(_NODE):
            nodes.append(line.removeprefix(_NODE))
        elif "=" in line:
            name, _, value = line.partition("=")
            environment[name] = value
    return ProbeOutput(environment, tuple(sorted(nodes)))
