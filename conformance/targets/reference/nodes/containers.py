"""Containers without processes: what the two probe commands would do, and what they would see."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Set
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any, Final

from conformance.cdi.reading import ContainerEdits
from conformance.cdi.spec import DeviceNode
from conformance.probe import METADATA, Probe
from conformance.scenario.driver import devicefiles
from conformance.scenario.driver.devicefiles import OTHERS, REFUSED, DeviceFile
from conformance.scenario.observation import ContainerView
from conformance.targets.seam.values import Obj
from nvml_driver.simulated import smi

EXIT_SECONDS: Final = 1.0  # How long a container with the ``exit`` probe runs.

TERM_SECONDS: Final = 0.1
"""How long a container with the ``hold`` probe needs to end after SIGTERM."""

_DEVICES: Final = ("full", "null", "pts/ptmx", "random", "tty", "urandom", "zero")
"""Character devices that container runtimes put into every container."""

_ENVIRONMENT: Final = {
    "PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
    "HOME": "/root",
}

SHOWS: Final = " shows "
"""``OUTPUT shows DEVICE``: a variable whose value is what a container shows in a way that no edit
of CDI gives, with a device; the kernel would say it."""

CANNOT_RUN: Final = (
    "the reference runs no processes, it only knows the probe commands ${probe.hold} and "
    "${probe.exit}"
)


def probe_of(container: Mapping[str, Any]) -> Probe | None:
    """The probe that a container runs, None for anything else."""
    return Probe.of((*(container.get("command") or ()), *(container.get("args") or ())))


@dataclass(slots=True)
class Run:
    """One run of a container.

    Attributes:
        started_at, ends_at: virtual time; ends_at is None while it runs until it is told to end.
    """

    probe: Probe
    view: ContainerView
    started_at: float
    ends_at: float | None
    restarts: int = 0

    def has_ended(self, now: float) -> bool:
        """Whether it is over."""
        return self.ends_at is not None and self.ends_at <= now


class DeviceCgroup:
    """What the kernel lets containers open."""

    def permits(self, number: str, given: Set[str]) -> bool:
        """Whether a device file of a number may be opened by who was given some numbers."""
        return number in given


def view(
    pod: Mapping[str, Any],
    container: Obj,
    edits: ContainerEdits,
    probe: Probe,
    cgroup: DeviceCgroup,
) -> ContainerView:
    """What a container sees: runtime defaults, its own ``env``, then what CDI adds."""
    environment = {**_ENVIRONMENT, "HOSTNAME": pod["metadata"]["name"]}
    for variable in container.get("env") or []:
        if "valueFrom" not in variable:
            environment[variable["name"]] = str(variable.get("value") or "")
    environment.update(edits.env)
    paths = {f"/dev/{name}" for name in _DEVICES}
    paths |= {node.path for node in edits.device_nodes}
    outputs = {name: _output(name, run, edits, paths) for name, run in probe.commands.items()}
    if devicefiles.NAME in outputs:
        files = _device_files(edits.device_nodes, cgroup, makes=_makes_nodes(pod, container))
        outputs[devicefiles.NAME] = devicefiles.format_device_files(files)
    outputs |= {
        path: Path(file).read_text(encoding="utf-8")
        for path, file in edits.mounts.items()
        if path.startswith(f"{METADATA}/")
    }
    return ContainerView(environment, tuple(sorted(paths)), outputs)


def _output(name: str, run: str, edits: ContainerEdits, paths: Set[str]) -> str:
    """What a command prints: lines of a way, or the simulated nvidia-smi where it is mounted."""
    shown = [value for key, value in edits.env.items() if key.startswith(f"{name}{SHOWS}")]
    if shown or "/" in name:  # of a way (`output_name`)
        return "".join(f"{one}\n" for one in shown)
    command, _, options = run.partition(" ")
    file = edits.mounts.get(smi.CONTAINER_PATH)
    if command != PurePosixPath(smi.CONTAINER_PATH).name or file is None:
        return f"sh: {command}: not found\n"
    return smi.output(Path(file).read_text(encoding="utf-8"), options, paths)


def _makes_nodes(pod: Mapping[str, Any], container: Mapping[str, Any]) -> bool:
    """Whether a container may make device files: it is root, and asks for the capability."""
    own = container.get("securityContext") or {}
    user = own.get("runAsUser", (pod["spec"].get("securityContext") or {}).get("runAsUser"))
    return user == 0 and "MKNOD" in ((own.get("capabilities") or {}).get("add") or ())


def _device_files(
    nodes: Iterable[DeviceNode], cgroup: DeviceCgroup, *, makes: bool
) -> Iterator[DeviceFile]:
    """A container's device files, and with ``makes`` those of other numbers that it makes."""
    numbers = {node: f"{node.major}:{node.minor}" for node in nodes}
    given = {number for node, number in numbers.items() if "r" in (node.permissions or "rwm")}

    def opened(path: str, number: str) -> DeviceFile:
        refused = not cgroup.permits(number, given)
        return DeviceFile(path, number, f"{path}: {REFUSED}" if refused else "")

    for node, number in numbers.items():
        yield opened(node.path, number)
        for other in devicefiles.list_window_numbers(number) if makes else ():
            yield opened(f"{OTHERS}{other.replace(':', '-')}", other)
