"""Finds what a container needs of NVIDIA's driver besides device files: its libraries and tools.

They have to be those of the kernel driver that runs, so they come from the node, not from the
image. Which they are is found as NVIDIA's container toolkit does, ``pkg/nvcdi/driver-nvml.go``: all
libraries with the driver's version in their name, and some programs; each appears in the container
where it is in the driver's root.

A program asks for ``libcuda.so.1``, which is a link. With NVIDIA's CDI hook (a program of the
toolkit, on the node) links are made in the container, and its loader's cache is written anew.
Without it, the library is mounted once more for each of its names; a loader whose cache does not
know it finds it if the folder is one that it searches anyway, and not in an image of another
distribution family.
"""

from __future__ import annotations

import logging
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

from kube.base.libraries import LIBRARY_FOLDERS
from nvml_driver.nvml.installation import DriverRoot

_LOG = logging.getLogger(__name__)
VERSIONED = "libnvidia-ml.so.1"  # The link whose target names the driver's version.
UNVERSIONED = ("libnvidia-nvvm70.so.",)
"""Beginnings of names of libraries whose version is not the driver's."""
TOOLS = (
    "nvidia-smi",
    "nvidia-debugdump",
    "nvidia-persistenced",
    "nvidia-cuda-mps-control",
    "nvidia-cuda-mps-server",
)
_NVML = re.compile(r"\s(/\S.*)/libnvidia-ml\.so\.[^/]*$", re.MULTILINE)
_OPTIONS = ["ro", "nosuid", "nodev", "bind"]


@dataclass(frozen=True, slots=True, kw_only=True)
class _File:
    """One file of the driver, below the root, and the links beside it that lead to it."""

    path: PurePosixPath
    links: tuple[PurePosixPath, ...] = ()


def describe_loaded_library(maps: Path) -> str:
    """Return where a process has NVML from, as a hint; empty where that is not known.

    The loader's configuration may name other folders than those that are searched here.

    Args:
        maps: of the process (proc(5)).
    """
    try:
        match = _NVML.search(maps.read_text(errors="replace"))
    except OSError:
        return ""
    if match is None:
        return ""
    hint = f"; this process has it from {match[1]}"
    for folder in LIBRARY_FOLDERS:
        if match[1].endswith(f"/{folder}"):
            return f"{hint}, so the root may be {match[1].removesuffix(f'/{folder}') or '/'}"
    return hint


class DriverLibraries:
    """The files of one node's driver, as edits of a CDI spec."""

    def __init__(self, root: DriverRoot, hook: Path | None = None) -> None:
        """Look below ``root``; ``hook`` is NVIDIA's CDI hook, as the node names it."""
        self._root = root
        self._hook = hook
        self._cached: tuple[object, dict[str, Any]] = (None, {})

    def find_edits(self) -> dict[str, Any]:
        """Return ``mounts``, and ``env`` and ``hooks`` if there are any; empty without a driver."""
        state = self._read_state()
        if state != self._cached[0]:
            self._cached = (state, self._build_edits())
        return self._cached[1]

    def _read_state(self) -> object:
        marks = [self._root.find_library(VERSIONED)]
        for folder in LIBRARY_FOLDERS:
            try:
                marks.append((self._root.container / folder).stat().st_mtime_ns)  # type: ignore[arg-type]
            except OSError:
                continue
        return tuple(marks), self._read_version()

    def _read_version(self) -> str | None:
        link = self._root.find_library(VERSIONED)
        target = None if link is None else self._root.resolve_links(link)
        if target is None or target.name == VERSIONED:
            return None
        return target.name.removeprefix("libnvidia-ml.so.")

    def _build_edits(self) -> dict[str, Any]:
        version = self._read_version()
        if version is None:
            _LOG.warning(
                "containers get no libraries of the NVIDIA driver: %s is not below %s as a link to "
                "the driver's version (--nvidia-driver-root, --container-driver-root)%s",
                *(
                    VERSIONED,
                    self._root.container,
                    describe_loaded_library(Path("/proc/self/maps")),
                ),
            )
            return {}
        libraries = list(self._find_libraries(version))
        tools = [
            _File(path=PurePosixPath(path.relative_to(self._root.container)))
            for path in map(self._root.find_tool, TOOLS)
            if path is not None
        ]
        mounts = [self._describe_mount(file.path, file.path) for file in [*libraries, *tools]]
        edits: dict[str, Any] = {"mounts": mounts}
        cuda = [file.path.parent for file in libraries if file.path.name.startswith("libcuda.so.")]
        if cuda:
            edits["env"] = [f"NVIDIA_CTK_LIBCUDA_DIR=/{cuda[0]}"]
        if self._hook is None:
            mounts += [
                self._describe_mount(file.path, link) for file in libraries for link in file.links
            ]
        else:
            edits["hooks"] = self._describe_hooks(self._hook, libraries)
        _LOG.info("containers get %d files of the NVIDIA driver %s", len(mounts), version)
        return edits

    def _find_libraries(self, version: str) -> Iterator[_File]:
        searched: set[Path] = set()
        for name in LIBRARY_FOLDERS:
            folder = (self._root.container / name).resolve()
            if folder in searched or not folder.is_relative_to(self._root.container.resolve()):
                continue  # one is often a link to the other
            searched.add(folder)
            yield from self._find_in_folder(folder, version)

    def _find_in_folder(self, folder: Path, version: str) -> Iterator[_File]:
        try:
            entries = sorted(os.scandir(folder), key=lambda entry: entry.name)
        except OSError:
            return
        links: dict[str, list[str]] = {}
        files: list[str] = []
        for entry in entries:
            if ".so" not in entry.name:
                continue
            if entry.is_symlink():
                target = self._root.resolve_links(Path(entry.path))
                if target is not None and target.parent == folder:
                    links.setdefault(target.name, []).append(entry.name)
            elif entry.is_file() and (
                entry.name.endswith(f".so.{version}") or entry.name.startswith(UNVERSIONED)
            ):
                files.append(entry.name)
        inside = PurePosixPath(folder.relative_to(self._root.container.resolve()))
        for name in files:
            yield _File(
                path=inside / name, links=tuple(inside / link for link in links.get(name, ()))
            )

    def _describe_mount(self, file: PurePosixPath, at: PurePosixPath) -> dict[str, Any]:
        return {
            "hostPath": str(self._root.host / file),
            "containerPath": f"/{at}",
            "options": _OPTIONS,
        }

    def _describe_hooks(self, hook: Path, libraries: list[_File]) -> list[dict[str, Any]]:
        """Return ``create-symlinks`` and ``update-ldcache``, as by ``nvidia-ctk cdi generate``."""
        links = [
            word
            for file in libraries
            for link in file.links
            for word in ("--link", f"{file.path.name}::/{link}")
        ]
        folders = [
            word
            for folder in dict.fromkeys(file.path.parent for file in libraries)
            for word in ("--folder", f"/{folder}")
        ]
        commands = [("create-symlinks", links), ("update-ldcache", folders)]
        return [
            {"hookName": "createContainer", "path": str(hook), "args": [hook.name, command, *words]}
            for command, words in commands
            if words
        ]
