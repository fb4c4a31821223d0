"""What a container runtime makes of the CDI specs in its folders.

The rules: github.com/cncf-tags/container-device-interface, pkg/cdi (cache.go, container-edits.go).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final

from pydantic import ValidationError

from kube.base.text import one_line
from kube.cdi.edits import ContainerEdits, UnresolvableError
from kube.cdi.spec import CdiDevice, DeviceNode, Spec, parse

MAX_FILES: Final = 4096


def device_ids(folders: Iterable[Path]) -> dict[str, CdiDevice]:
    """Return CDI id -> device, of all valid spec files; files that are not valid are left out."""
    devices, _ = read_devices(folders)
    return devices


def read_devices(folders: Iterable[Path]) -> tuple[dict[str, CdiDevice], list[str]]:
    """Return CDI id -> device of each valid spec, and a message for each file that is not valid.

    Also for each device that two files define: a runtime then takes neither.
    """
    devices: dict[str, CdiDevice] = {}
    wrong: list[str] = []
    for name, device, file, _ in _devices(folders, wrong):
        if name in devices:
            wrong.append(f"{file.name}: another file defines {name}, too")
        devices[name] = device
    return devices, wrong


def resolve(folder: Path, ids: Iterable[str]) -> ContainerEdits:
    """Return what a container with these CDI devices gets.

    The edits of a spec come once, before those of its devices in the order given; a later value of
    a variable, a device file or a mount of a path replaces an earlier one.

    Raises:
        UnresolvableError: a runtime would not start the container.
    """
    wrong: list[str] = []
    defined: dict[str, list[tuple[CdiDevice, Spec]]] = {}
    for name, device, _, spec in _devices([folder], wrong):
        defined.setdefault(name, []).append((device, spec))
    env: dict[str, str] = {}
    nodes: dict[str, DeviceNode] = {}
    mounts: dict[str, str] = {}
    applied: set[int] = set()
    for name in ids:
        if len(definitions := defined.get(name, [])) != 1:
            why = [f"{len(definitions)} specs in {folder} define it", *wrong]
            raise UnresolvableError(f"unresolvable CDI device {name}: {'; '.join(why)}")
        [(device, spec)] = definitions
        common = () if id(spec) in applied else (spec.container_edits,)
        applied.add(id(spec))
        for edits in (*common, device.container_edits):
            env |= {
                key: value for key, _, value in (variable.partition("=") for variable in edits.env)
            }
            nodes |= {node.path: node for node in edits.device_nodes}
            mounts |= {mount.container_path: mount.host_path for mount in edits.mounts}
    return ContainerEdits(env, tuple(nodes.values()), mounts)


def node_paths(folders: Iterable[Path], ids: Iterable[str]) -> set[str]:
    """Return what the specs that define such ids need of a node: mount sources and device files.

    Not those device files whose type and numbers they say, which a runtime need not look at
    (pkg/cdi/container-edits_unix.go, fillInfo).
    """
    paths: set[str] = set()
    requested_ids = set(ids)
    for file in _files(folders):
        with suppress(OSError, ValueError):
            spec = parse(file)
            if requested_ids.isdisjoint(f"{spec.kind}={device.name}" for device in spec.devices):
                continue
            for edits in (
                spec.container_edits,
                *(device.container_edits for device in spec.devices),
            ):
                paths.update(mount.host_path for mount in edits.mounts)
                paths.update(
                    node.host_path or node.path
                    for node in edits.device_nodes
                    if not (node.type and (node.major or node.type == "p"))
                )
    return {path for path in paths if path.startswith("/")}  # a tmpfs has none


def _devices(
    folders: Iterable[Path], wrong: list[str]
) -> Iterator[tuple[str, CdiDevice, Path, Spec]]:
    """Yield id, device, file and spec of all that valid files define; ``wrong`` gets the others."""
    for file in _files(folders):
        try:
            spec = parse(file)
        except FileNotFoundError:
            continue  # removed since it was listed
        except (OSError, ValueError) as error:
            wrong.append(f"{file.name}: {_why(error)}")
            continue
        for device in spec.devices:
            yield f"{spec.kind}={device.name}", device, file, spec


def _files(folders: Iterable[Path]) -> list[Path]:
    files = [
        file
        for folder in folders
        if folder.is_dir()
        for file in folder.iterdir()
        if file.suffix in (".json", ".yaml") and not file.name.startswith(".")
    ]
    return sorted(files)[:MAX_FILES]


def _why(error: Exception) -> str:
    if isinstance(error, ValidationError):
        first = error.errors()[0]
        return f"{'.'.join(map(str, first['loc']))}: {one_line(first['msg'], 150)}"
    return one_line(error, 200)
