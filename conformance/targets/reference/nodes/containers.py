"""Containers without processes: what the two probe commands would do, and what they would see."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any, Final

from conformance import probe
from conformance.scenario.expectations.base import ContainerView
from conformance.targets.base import Obj
from nvml_driver.cdi.specs import ContainerEdits

EXIT_SECONDS: Final = 1.0
"""How long a container with the ``exit`` probe runs."""

TERM_SECONDS: Final = 0.1
"""How long a container with the ``hold`` probe needs to end after SIGTERM."""

_DEVICES: Final = ("full", "null", "pts/ptmx", "random", "tty", "urandom", "zero")
"""Character devices that container runtimes put into every container."""

_ENVIRONMENT: Final = {
    "PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
    "HOME": "/root",
}

CANNOT_RUN: Final = (
    "the reference runs no processes, it only knows the probe commands ${probe.hold} and "
    "${probe.exit}"
)


class Command(Enum):
    """What a container runs."""

    HOLD = probe.HOLD
    EXIT = probe.EXIT


def command_of(container: Mapping[str, Any]) -> Command | None:
    """The probe that a container runs, None for anything else."""
    words = (*(container.get("command") or ()), *(container.get("args") or ()))
    return next((command for command in Command if command.value == words), None)


@dataclass(slots=True)
class Run:
    """One run of a container.

    Attributes:
        view: what it saw.
        started_at, ends_at: virtual time; ends_at is None while it runs until it is told to end.
        restarts: how often it was started before.
    """

    command: Command
    view: ContainerView
    started_at: float
    ends_at: float | None
    restarts: int = 0

    def has_ended(self, now: float) -> bool:
        """Whether it is over."""
        return self.ends_at is not None and self.ends_at <= now


def view(pod: Mapping[str, Any], container: Obj, edits: ContainerEdits) -> ContainerView:
    """What a container sees: runtime defaults, its own ``env``, then what CDI adds."""
    environment = {**_ENVIRONMENT, "HOSTNAME": pod["metadata"]["name"]}
    for variable in container.get("env") or []:
        if "valueFrom" not in variable:
            environment[variable["name"]] = str(variable.get("value") or "")
    environment.update(edits.env)
    paths = {f"/dev/{name}" for name in _DEVICES}
    paths |= {node.path for node in edits.device_nodes}
    return ContainerView(environment, tuple(sorted(paths)))
