"""A driver as a local cluster starts it: a command with an environment.

Which driver that is, and what it does with devices, is not known here. Everything in which drivers
differ for who starts them is a field of `DriverProgram`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from localkube.base import ClusterUsageError
from localkube.processes.tools import find_program, find_tool

Words = tuple[str, ...]
"""A command: the program, then its arguments."""


def nothing_to_check() -> None:
    """Refuse nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DriverProgram:
    """A DRA driver that runs as a process beside each kubelet.

    Attributes:
        name: the name its ResourceSlices carry in ``spec.driver``.
        command: its command on a node, of the folder for files of its own there.
        environment: variables beside those that every driver gets (spec.py).
        on_node: whether it runs in its node's namespaces, so that what it has hard-coded is the
            node's; if not, it needs nothing of the node but its sockets and folders.
        brings_tools: whether containers get programs from it that are linked to a C library.
        kept: names below its folder of what it keeps, which go when it is given other devices.
        lost_at_reboot: paths below its folder of what does not outlive a reboot of its node.
        check: refuses what cannot work before anything is started; raises ClusterUsageError.
    """

    name: str
    command: Callable[[Path], Words]
    environment: Mapping[str, str] = field(default_factory=dict)
    on_node: bool = True
    brings_tools: bool = True
    kept: tuple[str, ...] = ()
    lost_at_reboot: tuple[str, ...] = ()
    check: Callable[[], None] = nothing_to_check


def command_driver(name: str, command: Words) -> DriverProgram:
    """Return the driver of a user's command, run in its node and in the folder where it was named.

    Raises ClusterUsageError: the command is empty.
    """
    if not command:
        raise ClusterUsageError("the driver command is empty")

    def words(_folder: Path) -> Words:
        here = f"--chdir={Path.cwd()}"  # who enters a mount namespace stands in its root
        return (find_tool("env"), here, find_program(command[0]), *command[1:])

    def check() -> None:
        find_program(command[0])

    return DriverProgram(name=name, command=words, check=check)
