"""The two images of a local cluster, made here: no registry is asked.

One layer with a statically linked busybox and a link for each of its commands. The scenario image
has a shell as its command; the sandbox ("pause") image sleeps. Both go into one archive in the
format of `docker save`, which containerd imports.
"""

from __future__ import annotations

import hashlib
import io
import json
import platform
import struct
import subprocess
import tarfile
from pathlib import Path
from typing import Any

from conformance.clusters.base import ClusterError

SCENARIO_IMAGE = "dra-conformance.local/scenario:1"
SANDBOX_IMAGE = "dra-conformance.local/sandbox:1"

_BUSYBOX_PLACES = (Path("/bin/busybox"), Path("/usr/bin/busybox"))
_ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}
_PT_INTERP = 3
_EPOCH = "1970-01-01T00:00:00Z"


def find_busybox() -> Path | None:
    """A statically linked busybox of this machine: it must run in an image that has no libc."""
    for path in _BUSYBOX_PLACES:
        if path.is_file() and is_static(path):
            return path
    return None


def is_static(program: Path) -> bool:
    """Whether a 64-bit ELF program asks for no interpreter (has no PT_INTERP header, elf(5))."""
    with program.open("rb") as file:
        header = file.read(64)
        if len(header) < 64 or header[:5] != b"\x7fELF\x02":
            return False
        order = "<" if header[5] == 1 else ">"
        (offset,) = struct.unpack_from(order + "Q", header, 32)
        size, count = struct.unpack_from(order + "HH", header, 54)
        file.seek(offset)
        table = file.read(size * count)
    kinds = (struct.unpack_from(order + "I", table, size * index)[0] for index in range(count))
    return _PT_INTERP not in kinds


def busybox_commands(busybox: Path) -> list[str]:
    """Names of the commands that this busybox has.

    Raises:
        ClusterError: it does not run.
    """
    done = subprocess.run(
        [str(busybox), "--list"], capture_output=True, text=True, check=False, timeout=30
    )
    if done.returncode != 0:
        raise ClusterError(f"{busybox} --list failed: {done.stderr.strip()}")
    return [name for name in done.stdout.split() if name != "busybox"]


def write_archive(path: Path, busybox: Path, commands: list[str]) -> None:
    """Write both images to `path`, a tar for `ctr images import`. Same input, same bytes."""
    layer = _layer(busybox, commands)
    images = {
        SCENARIO_IMAGE: {"Cmd": ["/bin/sh"]},
        SANDBOX_IMAGE: {"Entrypoint": ["/bin/busybox", "sleep", "2147483647"]},
    }
    manifest = []
    with tarfile.open(path, "w") as archive:
        _add(archive, "layer.tar", layer)
        for number, (name, config) in enumerate(images.items()):
            file = f"config-{number}.json"
            _add(archive, file, json.dumps(_config(layer, config)).encode())
            manifest.append({"Config": file, "RepoTags": [name], "Layers": ["layer.tar"]})
        _add(archive, "manifest.json", json.dumps(manifest).encode())


def _config(layer: bytes, config: dict[str, Any]) -> dict[str, Any]:
    machine = platform.machine()
    return {
        "architecture": _ARCHITECTURES.get(machine, machine),
        "os": "linux",
        "created": _EPOCH,
        "config": {"Env": ["PATH=/bin"], **config},
        "rootfs": {"type": "layers", "diff_ids": [f"sha256:{hashlib.sha256(layer).hexdigest()}"]},
        "history": [{"created": _EPOCH, "created_by": "dra-conformance"}],
    }


def _layer(busybox: Path, commands: list[str]) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as tar:
        for directory, mode in (("bin", 0o755), ("etc", 0o755), ("root", 0o700), ("tmp", 0o1777)):
            entry = tarfile.TarInfo(directory)
            entry.type, entry.mode = tarfile.DIRTYPE, mode
            tar.addfile(entry)
        _add(tar, "bin/busybox", busybox.read_bytes(), mode=0o755)
        _add(tar, "etc/passwd", b"root:x:0:0:root:/root:/bin/sh\n")
        _add(tar, "etc/group", b"root:x:0:\n")
        for command in sorted(commands):
            entry = tarfile.TarInfo(f"bin/{command}")
            entry.type, entry.linkname, entry.mode = tarfile.SYMTYPE, "busybox", 0o777
            tar.addfile(entry)
    return buffer.getvalue()


def _add(tar: tarfile.TarFile, name: str, data: bytes, mode: int = 0o644) -> None:
    entry = tarfile.TarInfo(name)
    entry.size, entry.mode = len(data), mode
    tar.addfile(entry, io.BytesIO(data))
