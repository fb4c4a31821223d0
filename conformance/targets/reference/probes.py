"""What the two probe commands of scenarios would do in a container, and what they would print."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Set
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath
from typing import Any, Final

from conformance.probe import HOLD, METADATA, Probe
from conformance.scenario.driver import devicefiles
from conformance.scenario.driver.devicefiles import OTHERS, REFUSED, DeviceFile
from kube.cdi.edits import ContainerEdits
from kube.cdi.spec import DeviceNode
from kube.observations import ContainerView
from kube.values import Obj
from kubesim.nodes.containers import DeviceCgroup, basic_view
from nvml_driver.simulated import smi

SHOWS: Final = " shows "
"""``OUTPUT shows DEVICE``: a variable whose value is what a container shows in a way that no edit
of CDI gives, with a device; the kernel would say it."""


class ProbeRuntime:
    """Knows the probe commands alone (`conformance.probe`)."""

    holding = HOLD
    cannot_run = (
        "the reference runs no processes, it only knows the probe commands ${probe.hold} and "
        "${probe.exit}"
    )

    def command_of(self, container: Mapping[str, Any]) -> ProbeCommand | None:
        """Return the probe that a container runs, None for anything else."""
        words = (*(container.get("command") or ()), *(container.get("args") or ()))
        probe = Probe.of(words)
        return None if probe is None else ProbeCommand(probe)


@dataclass(frozen=True, slots=True)
class ProbeCommand:
    """A probe in a container."""

    probe: Probe

    @property
    def holds(self) -> bool:
        return self.probe.holds

    def view(
        self, pod: Mapping[str, Any], container: Obj, edits: ContainerEdits, cgroup: DeviceCgroup
    ) -> ContainerView:
        """Return what the container sees, with what the probe's commands print in it."""
        container_view = basic_view(pod, container, edits)
        commands = self.probe.commands.items()
        paths = set(container_view.device_nodes)
        outputs = {name: _output(name, run, edits, paths) for name, run in commands}
        if devicefiles.NAME in outputs:
            files = _device_files(edits.device_nodes, cgroup, makes=_makes_nodes(pod, container))
            outputs[devicefiles.NAME] = devicefiles.format_device_files(files)
        outputs |= {
            path: Path(file).read_text(encoding="utf-8")
            for path, file in edits.mounts.items()
            if path.startswith(f"{METADATA}/")
        }
        return replace(container_view, outputs=outputs)


def _output(name: str, run: str, edits: ContainerEdits, paths: Set[str]) -> str:
    """Return what a command prints: lines of a way, or nvidia-smi's where that is mounted."""
    device_texts = [value for key, value in edits.env.items() if key.startswith(f"{name}{SHOWS}")]
    if device_texts or "/" in name:  # of a way (`output_name`)
        return "".join(f"{text}\n" for text in device_texts)
    command, _, options = run.partition(" ")
    file = edits.mounts.get(smi.CONTAINER_PATH)
    if command != PurePosixPath(smi.CONTAINER_PATH).name or file is None:
        return f"sh: {command}: not found\n"
    return smi.render_output(Path(file).read_text(encoding="utf-8"), options, paths)


def _makes_nodes(pod: Mapping[str, Any], container: Mapping[str, Any]) -> bool:
    """Return whether a container may make device files: it is root with that capability."""
    security_context = container.get("securityContext") or {}
    user = security_context.get(
        "runAsUser", (pod["spec"].get("securityContext") or {}).get("runAsUser")
    )
    return user == 0 and "MKNOD" in ((security_context.get("capabilities") or {}).get("add") or ())


def _device_files(
    nodes: Iterable[DeviceNode], cgroup: DeviceCgroup, *, makes: bool
) -> Iterator[DeviceFile]:
    """Yield a container's device files, with ``makes`` also those of others that it makes."""
    numbers = {node: f"{node.major}:{node.minor}" for node in nodes}
    readable_numbers = {
        number for node, number in numbers.items() if "r" in (node.permissions or "rwm")
    }

    def opened(path: str, number: str) -> DeviceFile:
        refused = not cgroup.permits(number, readable_numbers)
        return DeviceFile(path, number, f"{path}: {REFUSED}" if refused else "")

    for node, number in numbers.items():
        yield opened(node.path, number)
        for other in devicefiles.list_window_numbers(number) if makes else ():
            yield opened(f"{OTHERS}{other.replace(':', '-')}", other)
