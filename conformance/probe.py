"""The commands that scenario containers run, and how their output is read.

A container shows which devices it has by printing its environment and its character devices, so
what it sees can be read from its log: while it runs, after it ended, and with no more permission
than reading logs. Only a POSIX shell, ``env`` and ``find`` are needed in the image, and ``cat``
where a driver gives containers metadata of their devices, which it prints, too. It also prints
what commands say of the ways in which the driver profile sees devices, and in the ``device`` tier
of the hardware; for these ``timeout`` and ``head``.

The reference's kubelet runs no process; it knows these commands and behaves as they would.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

BEGIN = "dra-conformance-probe-begin"
END = "dra-conformance-probe-end"
_NODE = "dra-conformance-device-node "
_OUTPUT = "dra-conformance-output-of "

METADATA = "/var/run/kubernetes.io/dra-device-attributes"
"""Where containers have metadata of their devices (k8s.io/dynamic-resource-allocation,
``api/metadata``)."""

_SEEN = (
    f"echo {BEGIN}; env; find /dev -type c -exec echo '{_NODE}{{}}' \\; ; "
    f'for f in {METADATA}/*/*/*/*.json; do if [ -f "$f" ]; then '
    f'echo \'{_OUTPUT}\'"$f"; cat "$f"; echo; fi; done;'
)
SECONDS = 30  # That a command may run.
BYTES = 1 << 20  # That it may print.
_COMMAND = re.compile(rf" echo '{_OUTPUT}(\S+)'; timeout \d+ sh -c '(.*?)' 2>&1 \| head ")


@dataclass(frozen=True, slots=True)
class Probe:
    """What a container runs.

    Attributes:
        holds: it runs until it is terminated; else it ends with success.
        commands: name -> shell command, without single quotes, whose output it prints, too; of one
            that takes too long or prints too much, the beginning.
    """

    holds: bool
    commands: Mapping[str, str] = field(default_factory=dict)

    @property
    def words(self) -> tuple[str, ...]:
        """The container's command."""
        more = (
            f" echo '{_OUTPUT}{name}';"
            f" timeout {SECONDS} sh -c '{run}' 2>&1 | head -c {BYTES}; echo;"
            for name, run in self.commands.items()
        )
        text = f"{_SEEN}{''.join(more)} echo {END}"
        if self.holds:
            # The trap comes first: who sees the end of what is printed may terminate it at once.
            text = f"trap 'exit 0' TERM; {text}; sleep 86400 & wait"
        return ("sh", "-c", text)

    @classmethod
    def of(cls, words: tuple[str, ...]) -> Probe | None:
        """The probe that has this command; None for anything else."""
        commands = dict(_COMMAND.findall(words[-1])) if words else {}
        found = (cls(holds, commands) for holds in (True, False))
        return next((probe for probe in found if probe.words == words), None)


HOLD = Probe(holds=True).words
"""Prints, then runs until it is terminated. ``${probe.hold}`` in a scenario."""

EXIT = Probe(holds=False).words  # Prints, then ends with success. ``${probe.exit}`` in a scenario.


@dataclass(frozen=True, slots=True)
class ProbeOutput:
    """A parsed probe.

    Attributes:
        environment: name -> value.
        outputs: name of a command, or path of a metadata file -> what was printed.
    """

    environment: dict[str, str]
    device_nodes: tuple[str, ...]
    outputs: dict[str, str] = field(default_factory=dict)


def parse(log: str) -> ProbeOutput | None:
    """Read the last complete probe in a container's log; None if there is none yet."""
    begin = log.rfind(BEGIN + "\n")
    end = log.find(END, begin)
    if begin < 0 or end < 0:
        return None
    first, *sections = log[begin:end].split(f"\n{_OUTPUT}")
    environment: dict[str, str] = {}
    nodes: list[str] = []
    for line in first.splitlines()[1:]:
        if line.startswith(_NODE):
            nodes.append(line.removeprefix(_NODE))
        elif "=" in line:
            name, _, value = line.partition("=")
            environment[name] = value
    outputs = {name: text for name, _, text in (one.partition("\n") for one in sections)}
    return ProbeOutput(environment, tuple(sorted(nodes)), outputs)
