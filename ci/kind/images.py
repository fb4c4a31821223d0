"""The images of a kind node's own pods and of scenarios, as one archive (`ci/kind/node-files`).

Usage: images.py ARCHIVE NAMES ROOT BINARIES KUBE. NAMES is a file with what kubeadm lists, then the
sandbox's name; ROOT is the node's, which iptables comes from; the others are folders of programs.
A name for which there is no program (CoreDNS) is left out.
"""

from __future__ import annotations

import io
import subprocess
import sys
import tarfile
from collections.abc import Iterator
from pathlib import Path

from localkube.binaries.images import Image, own_images, write_images
from localkube.binaries.versions import POD_SHELL

XTABLES = "/usr/sbin/xtables-nft-multi"


def main(archive: Path, names: Path, root: Path, *folders: Path) -> None:
    """Write the archive."""
    *listed, sandbox = names.read_text().split()
    [pod_shell] = programs(POD_SHELL, folders)
    images = own_images(pod_shell, sandbox)
    for name in listed:
        command = name.split(":")[0].split("/")[-1]
        for program in programs(command, folders):
            files = {f"usr/local/bin/{command}": program}
            links = {}
            if command == "kube-proxy":
                files |= iptables(root)
                links = {f"usr/sbin/{name}": XTABLES for name in iptables_commands()}
            images[name] = Image(layer(files, links), {"Env": ["PATH=/usr/local/bin:/usr/sbin"]})
    write_images(archive, images)


def programs(name: str, folders: tuple[Path, ...]) -> list[Path]:
    """The program of that name, if one of the folders has it."""
    return [folder / name for folder in folders if (folder / name).is_file()][:1]


def iptables(root: Path) -> dict[str, Path]:
    """Path in the image -> file below the root: iptables with its libraries and extensions."""
    said = subprocess.run(
        ["chroot", root, "ldd", XTABLES], capture_output=True, text=True, check=True
    ).stdout
    paths = [XTABLES, *(word for word in said.split() if word.startswith("/"))]
    paths += [f"/{path.relative_to(root)}" for path in root.glob("usr/lib/*/xtables/*.so")]
    return {path[1:]: root / path[1:] for path in paths}


def iptables_commands() -> Iterator[str]:
    """The names that kube-proxy calls it by."""
    for family in ("iptables", "ip6tables"):
        yield from (family, f"{family}-save", f"{family}-restore")


def layer(files: dict[str, Path], links: dict[str, str]) -> bytes:
    """A tar of programs and links."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as tar:
        for path, file in sorted(files.items()):
            entry = tarfile.TarInfo(path)
            entry.mode, entry.size = 0o755, file.stat().st_size
            with file.open("rb") as source:
                tar.addfile(entry, source)
        for path, target in links.items():
            entry = tarfile.TarInfo(path)
            entry.type, entry.linkname = tarfile.SYMTYPE, target
            tar.addfile(entry)
    return buffer.getvalue()


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:]))
