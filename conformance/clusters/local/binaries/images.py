"""The two images of a local cluster, made here: no registry is asked.

One layer with one static program (ci/local-cluster/node/pod-shell) and a link for each of its
commands. The scenario image has a shell as its command; the sandbox image pauses. Both go into one
archive in the format of `docker save`, which containerd imports. `write_images` makes others too.
"""

from __future__ import annotations

import hashlib
import io
import json
import platform
import tarfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

SCENARIO_IMAGE = "dra-conformance.local/scenario:1"
SANDBOX_IMAGE = "dra-conformance.local/sandbox:1"

COMMANDS = (
    *("cat", "echo", "env", "find", "head", "hostname", "ls"),
    *("mknod", "pause", "sh", "sleep", "stat", "timeout"),
)
"""What pod-shell can be called as."""

_ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}
_EPOCH = "1970-01-01T00:00:00Z"


@dataclass(frozen=True)
class Image:
    """An image of one layer.

    ``config``: of the containers, as in an OCI image's configuration ("Cmd", "Entrypoint").
    """

    layer: bytes
    config: Mapping[str, Any] = field(default_factory=dict)


def write_archive(path: Path, program: Path, sandbox: str = SANDBOX_IMAGE) -> None:
    """Write both images to `path`, a tar for `ctr images import`. Same input, same bytes."""
    write_images(path, own_images(program, sandbox))


def own_images(program: Path, sandbox: str) -> dict[str, Image]:
    """Name -> image: the scenarios', and the sandbox under the name that the kubelet's asks for."""
    layer = _layer(program)
    return {
        SCENARIO_IMAGE: Image(layer, {"Cmd": ["/bin/sh"]}),
        sandbox: Image(layer, {"Entrypoint": ["/bin/pause"]}),
    }


def write_images(path: Path, images: Mapping[str, Image]) -> None:
    """Write images to `path`, a tar for `ctr images import`; a layer of several is in it once."""
    manifest, layers = [], {}
    with tarfile.open(path, "w") as archive:
        for number, (name, image) in enumerate(images.items()):
            config = f"config-{number}.json"
            _add(archive, config, json.dumps(_config(image)).encode())
            if id(image.layer) not in layers:
                layers[id(image.layer)] = f"layer-{number}.tar"
                _add(archive, f"layer-{number}.tar", image.layer)
            layer = layers[id(image.layer)]
            manifest.append({"Config": config, "RepoTags": [name], "Layers": [layer]})
        _add(archive, "manifest.json", json.dumps(manifest).encode())


def _config(image: Image) -> dict[str, Any]:
    machine = platform.machine()
    return {
        "architecture": _ARCHITECTURES.get(machine, machine),
        "os": "linux",
        "created": _EPOCH,
        "config": {"Env": ["PATH=/usr/bin:/bin"], **image.config},
        "rootfs": {
            "type": "layers",
            "diff_ids": [f"sha256:{hashlib.sha256(image.layer).hexdigest()}"],
        },
        "history": [{"created": _EPOCH, "created_by": "dra-conformance"}],
    }


def _layer(program: Path) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as tar:
        for directory, mode in (("bin", 0o755), ("etc", 0o755), ("root", 0o700), ("tmp", 0o1777)):
            entry = tarfile.TarInfo(directory)
            entry.type, entry.mode = tarfile.DIRTYPE, mode
            tar.addfile(entry)
        _add(tar, f"bin/{program.name}", program.read_bytes(), mode=0o755)
        _add(tar, "etc/passwd", b"root:x:0:0:root:/root:/bin/sh\n")
        _add(tar, "etc/group", b"root:x:0:\n")
        for command in COMMANDS:
            entry = tarfile.TarInfo(f"bin/{command}")
            entry.type, entry.linkname, entry.mode = tarfile.SYMTYPE, program.name, 0o777
            tar.addfile(entry)
    return buffer.getvalue()


def _add(tar: tarfile.TarFile, name: str, data: bytes, mode: int = 0o644) -> None:
    entry = tarfile.TarInfo(name)
    entry.size, entry.mode = len(data), mode
    tar.addfile(entry, io.BytesIO(data))
