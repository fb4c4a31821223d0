"""Containers without processes: what their commands would do, and what they would see.

No process is started. A `ContainerRuntime` says what a container's command does; `AnyCommand` takes
every one for a program that runs until it is told to end.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass
from typing import Any, Final, Protocol

from kube.cdi.edits import ContainerEdits
from kube.observations import ContainerView
from kube.values import Obj

EXIT_SECONDS: Final = 1.0
"""How long a container runs whose command ends by itself."""

TERM_SECONDS: Final = 0.1
"""How long a container needs to end after SIGTERM."""

_DEVICES: Final = ("full", "null", "pts/ptmx", "random", "tty", "urandom", "zero")
"""Character devices that container runtimes put into every container."""

_ENVIRONMENT: Final = {
    "PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
    "HOME": "/root",
}


class DeviceCgroup:
    """What the kernel lets containers open."""

    def permits(self, number: str, granted_numbers: Set[str]) -> bool:
        """Return whether who was given some numbers may open the device file of a number."""
        return number in granted_numbers


class Command(Protocol):
    """What a container's command does."""

    @property
    def holds(self) -> bool:
        """Return whether it runs until terminated; else it ends with success after a moment."""
        ...

    def view(
        self, pod: Mapping[str, Any], container: Obj, edits: ContainerEdits, cgroup: DeviceCgroup
    ) -> ContainerView:
        """Return what it sees of its surroundings, with what CDI adds to the container."""
        ...


class ContainerRuntime(Protocol):
    """Knows what the commands of containers do.

    Attributes:
        holding: a command that it knows to run until it is terminated.
        cannot_run: why a container waits whose command it does not know.
    """

    @property
    def holding(self) -> Sequence[str]: ...

    @property
    def cannot_run(self) -> str: ...

    def command_of(self, container: Mapping[str, Any]) -> Command | None:
        """Return what a container runs; None where it is not known."""
        ...


@dataclass(slots=True)
class Run:
    """One run of a container.

    Attributes:
        started_at, ends_at: virtual time; ends_at is None while it runs until it is told to end.
    """

    view: ContainerView
    started_at: float
    ends_at: float | None
    restarts: int = 0

    def has_ended(self, now: float) -> bool:
        """Return whether it is over."""
        return self.ends_at is not None and self.ends_at <= now


def basic_view(pod: Mapping[str, Any], container: Obj, edits: ContainerEdits) -> ContainerView:
    """Return what every container sees: runtime defaults, its own ``env``, then what CDI adds."""
    environment = {**_ENVIRONMENT, "HOSTNAME": pod["metadata"]["name"]}
    for variable in container.get("env") or []:
        if "valueFrom" not in variable:
            environment[variable["name"]] = str(variable.get("value") or "")
    environment.update(edits.env)
    paths = {f"/dev/{name}" for name in _DEVICES}
    paths |= {node.path for node in edits.device_nodes}
    return ContainerView(environment, tuple(sorted(paths)))


class AnyCommand:
    """Takes every command for a program that runs until it is told to end, and prints nothing."""

    holding: Sequence[str] = ("sleep", "infinity")
    cannot_run = ""
    holds = True

    def command_of(self, container: Mapping[str, Any]) -> AnyCommand:  # noqa: ARG002
        return self

    def view(
        self,
        pod: Mapping[str, Any],
        container: Obj,
        edits: ContainerEdits,
        cgroup: DeviceCgroup,  # noqa: ARG002
    ) -> ContainerView:
        return basic_view(pod, container, edits)
