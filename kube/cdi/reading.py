"""What a container runtime makes of the CDI specs in its folders.

The rules: github.com/cncf-tags/container-device-interface v1.1.2, pkg/cdi (cache.go, spec-dirs.go,
container-edits.go) and internal/ociedit; `ci/fuzz-cdi` holds the two against one another.
"""

from __future__ import annotations

import os
import posixpath
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, TypeVar

from kube.base.text import one_line
from kube.cdi.edits import ContainerEdits, UnresolvableError
from kube.cdi.spec import CdiDevice, Edits, Spec, faults_of_net_devices, parse

V = TypeVar("V")

MAX_FILES: Final = 4096
"""Of a folder; a runtime would read more."""


@dataclass(frozen=True, slots=True)
class Definition:
    """A CDI device with the file and the spec that define it."""

    device: CdiDevice
    file: Path
    spec: Spec


@dataclass(frozen=True, slots=True)
class Folders:
    """What a runtime finds in its folders.

    Attributes:
        specs: file -> spec, of each file that is valid, in the order in which they are read.
        definitions: CDI id -> what it stands for. Of two folders the later one decides; what two
            files of one folder define stands for nothing, whatever other folders say.
        faults: file or folder -> what is wrong with it, such a pair for each file of it.
    """

    specs: Mapping[Path, Spec]
    definitions: Mapping[str, Definition]
    faults: Mapping[Path, Sequence[str]]

    def list_messages(self) -> list[str]:
        """Return a line for each thing that is wrong, with the name of its file."""
        return [f"{path.name}: {fault}" for path, faults in self.faults.items() for fault in faults]


def read_folders(folders: Iterable[Path]) -> Folders:
    """Read the specs in folders, the one that decides last."""
    specs: dict[Path, Spec] = {}
    definitions: dict[str, Definition] = {}
    faults: dict[Path, list[str]] = {}
    conflicts: set[str] = set()
    for folder in folders:
        of_folder: dict[str, Definition] = {}
        for file, spec in _specs(folder, faults):
            specs[file] = spec
            for device in spec.devices:
                name = f"{spec.kind}={device.name}"
                if name in of_folder:
                    conflicts.add(name)
                    other = of_folder[name].file
                    for conflicting, with_file in ((file, other), (other, file)):
                        fault = f"{with_file.name} defines {name}, too, so neither counts"
                        faults.setdefault(conflicting, []).append(fault)
                else:
                    of_folder[name] = Definition(device, file, spec)
        definitions |= of_folder
    for name in conflicts:
        del definitions[name]
    return Folders(specs, definitions, faults)


def device_ids(folders: Iterable[Path]) -> dict[str, CdiDevice]:
    """Return CDI id -> device, of all that a runtime can give to containers."""
    return {
        name: definition.device for name, definition in read_folders(folders).definitions.items()
    }


def resolve(folders: Iterable[Path], ids: Iterable[str]) -> ContainerEdits:
    """Return what a container with these CDI devices gets.

    The edits of a spec come once, before those of its first device, and devices in the order
    given. Of a variable, a device file or a mount of a path the last value holds; a variable stays
    at its place, the others move behind.

    Raises:
        UnresolvableError: a runtime would not start the container.
    """
    folders = tuple(folders)
    in_folders = read_folders(folders)
    edits: list[Edits] = []
    applied: set[Path] = set()
    for name in ids:
        definition = in_folders.definitions.get(name)
        if definition is None:
            where = ", ".join(map(str, folders))
            why = "; ".join(
                [f"no spec in {where} defines it, or two do", *in_folders.list_messages()]
            )
            raise UnresolvableError(f"unresolvable CDI device {name}: {one_line(why, 400)}")
        if definition.file not in applied:
            applied.add(definition.file)
            edits.append(definition.spec.container_edits)
        edits.append(definition.device.container_edits)
    return _apply(edits)


def _apply(edits: Sequence[Edits]) -> ContainerEdits:
    net_devices = tuple(device for part in edits for device in part.net_devices)
    for fault in faults_of_net_devices(net_devices):
        raise UnresolvableError(f"CDI devices cannot be injected together: {fault}")
    env: dict[str, str] = {}
    for variable in (variable for part in edits for variable in part.env):
        name, _, value = variable.partition("=")
        env[name] = value
    nodes = _last_of_each((node.path, node) for part in edits for node in part.device_nodes)
    mounts = _last_of_each(
        (mount.container_path, mount.host_path) for part in edits for mount in part.mounts
    )
    rdt = [part.intel_rdt for part in edits if part.intel_rdt is not None]
    groups = dict.fromkeys(gid for part in edits for gid in part.additional_gids if gid != 0)
    return ContainerEdits(
        env,
        tuple(nodes.values()),
        dict(sorted(mounts.items(), key=lambda mount: _count_parts(mount[0]))),
        {device.host_interface_name: device.name for device in net_devices},
        rdt[-1] if rdt else None,
        tuple(groups),
    )


def _last_of_each(pairs: Iterable[tuple[str, V]]) -> dict[str, V]:
    values: dict[str, V] = {}
    for path, value in pairs:
        values.pop(path, None)
        values[path] = value
    return values


def _count_parts(path: str) -> int:
    """Return how many slashes a path has once it is cleaned; Python would keep a second leading."""
    rooted = path.startswith("/")
    return rooted + posixpath.normpath(path).lstrip("/").count("/")


def node_paths(folders: Iterable[Path], ids: Iterable[str]) -> set[str]:
    """Return what the specs that define such ids need of a node: mount sources and device files.

    Not those device files whose type and numbers they say, which a runtime need not look at
    (pkg/cdi/container-edits_unix.go, fillInfo).
    """
    paths: set[str] = set()
    requested_ids = set(ids)
    for spec in read_folders(folders).specs.values():
        if requested_ids.isdisjoint(f"{spec.kind}={device.name}" for device in spec.devices):
            continue
        for edits in (spec.container_edits, *(device.container_edits for device in spec.devices)):
            paths.update(mount.host_path for mount in edits.mounts)
            paths.update(
                node.host_path or node.path
                for node in edits.device_nodes
                if not (node.type and (node.major or node.type == "p"))
            )
    return {path for path in paths if path.startswith("/")}  # a tmpfs has none


def _specs(folder: Path, faults: dict[Path, list[str]]) -> Iterator[tuple[Path, Spec]]:
    """Yield file and spec of each valid file; ``faults`` gets what is wrong with the others."""
    for file in _files(folder, faults):
        try:
            yield file, parse(file)
        except FileNotFoundError:
            continue  # removed since it was listed
        except (OSError, ValueError) as error:
            faults[file] = [one_line(_why(error), 200)]


def _files(folder: Path, faults: dict[Path, list[str]]) -> list[Path]:
    try:
        with os.scandir(folder) as entries:
            names = [
                entry.name
                for entry in entries
                if entry.name.endswith((".json", ".yaml"))
                and not entry.is_dir(follow_symlinks=False)
            ]
    except FileNotFoundError:
        return []
    except OSError as error:
        faults[folder] = [f"cannot be listed: {error.strerror}"]
        return []
    if len(names) > MAX_FILES:
        faults[folder] = [f"has {len(names)} specs; {MAX_FILES} of them are read"]
    return [folder / name for name in sorted(names, key=os.fsencode)[:MAX_FILES]]


def _why(error: Exception) -> str:
    return (error.strerror or str(error)) if isinstance(error, OSError) else str(error)
