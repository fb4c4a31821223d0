"""The two images of a local cluster, made here: no registry is asked.

One layer with one static program (ci/local-cluster/node/pod-shell) and a link for each of its
commands. The scenario image has a shell as its command; the sandbox image pauses. Both go into one
archive in the format of `docker save`, which containerd imports. `write_images` makes others too.

Tools that a vendor's driver brings into containers (nvidia-smi) are linked to a C library, which
is the image's to have. For them the layer has this machine's.
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

from kube.base.libraries import LIBRARY_FOLDERS, find_below

SCENARIO_IMAGE = "dra-conformance.local/scenario:1"
SANDBOX_IMAGE = "dra-conformance.local/sandbox:1"

COMMANDS = (
    *("cat", "echo", "env", "find", "head", "hostname", "ls"),
    *("mknod", "pause", "sh", "sleep", "stat", "timeout"),
)
"""What pod-shell can be called as."""

_ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}
_LOADERS = {"x86_64": "lib64/ld-linux-x86-64.so.2", "aarch64": "lib/ld-linux-aarch64.so.1"}
"""Where programs look for the loader (the ABI of each architecture)."""
_C_LIBRARY = ("libc.so.6", "libm.so.6", "libdl.so.2", "libpthread.so.0", "librt.so.1")
_PATH = "PATH=/usr/bin:/bin"
_EPOCH = "1970-01-01T00:00:00Z"


@dataclass(frozen=True)
class Image:
    """An image of one layer.

    ``config``: of the containers, as in an OCI image's configuration ("Cmd", "Entrypoint").
    """

    layer: bytes
    config: Mapping[str, Any] = field(default_factory=dict)


def write_archive(path: Path, program: Path, libraries: Mapping[str, bytes] | None = None) -> None:
    """Write both images to `path`, a tar for `ctr images import`. Same input, same bytes.

    Args:
        libraries: what `c_library` has found, for the tools of a vendor's driver.
    """
    write_images(path, own_images(program, SANDBOX_IMAGE, libraries))


def c_library(root: Path = Path("/")) -> dict[str, bytes]:
    """Return path in an image -> content of this machine's glibc; empty without one (musl)."""
    loader = _LOADERS.get(platform.machine(), "")
    path_by_name = {name: find_below(root, LIBRARY_FOLDERS, name) for name in _C_LIBRARY}
    if not (root / loader).is_file() or path_by_name["libc.so.6"] is None:
        return {}
    files = [path for path in path_by_name.values() if path is not None]
    inside = {str(path.relative_to(root)): path.read_bytes() for path in files}
    return inside | {loader: (root / loader).read_bytes()}


def own_images(
    program: Path, sandbox: str, libraries: Mapping[str, bytes] | None = None
) -> dict[str, Image]:
    """Return name -> image: the scenarios', and the sandbox as the kubelet's runtime names it."""
    layer = _layer(program, libraries or {})
    # A loader searches the folders of its own distribution only, and a driver's libraries are
    # where the node has them.
    search = "LD_LIBRARY_PATH=" + ":".join(f"/{folder}" for folder in LIBRARY_FOLDERS)
    env = {"Env": [_PATH, search]} if libraries else {}
    return {
        SCENARIO_IMAGE: Image(layer, {"Cmd": ["/bin/sh"], **env}),
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
        "config": {"Env": [_PATH], **image.config},
        "rootfs": {
            "type": "layers",
            "diff_ids": [f"sha256:{hashlib.sha256(image.layer).hexdigest()}"],
        },
        "history": [{"created": _EPOCH, "created_by": "dra-conformance"}],
    }


def _layer(program: Path, libraries: Mapping[str, bytes]) -> bytes:
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
        for name, content in libraries.items():
            _add(tar, name, content, mode=0o755)
    return buffer.getvalue()


def _add(tar: tarfile.TarFile, name: str, data: bytes, mode: int = 0o644) -> None:
    entry = tarfile.TarInfo(name)
    entry.size, entry.mode = len(data), mode
    tar.addfile(entry, io.BytesIO(data))
