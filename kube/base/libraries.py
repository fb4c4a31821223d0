"""Shared libraries and programs below the root of an installation, which need not be ``/``."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

LIBRARY_FOLDERS = (
    "usr/lib64",
    "usr/lib/x86_64-linux-gnu",
    "usr/lib/aarch64-linux-gnu",
    "lib64",
    "lib/x86_64-linux-gnu",
    "lib/aarch64-linux-gnu",
)
"""Where distributions have shared libraries, as kubernetes-sigs/dra-driver-nvidia-gpu searches
them (``cmd/gpu-kubelet-plugin/root.go``)."""

_LINKS = 16  # that one name may go through


def find_below(root: Path, folders: Iterable[str], name: str) -> Path | None:
    """Return the first file of that name in these folders below a root; None if there is none."""
    for folder in folders:
        path = root / folder / name
        if resolve_below(root, path) is not None:
            return path
    return None


def resolve_below(root: Path, path: Path) -> Path | None:
    """Return the file that links lead to, absolute ones from the root; None: none, or out of it."""
    inside = path
    for _ in range(_LINKS):
        if not inside.is_symlink():
            return inside if inside.is_file() else None
        target = inside.readlink()
        if target.is_absolute():
            inside = root / target.relative_to("/")
        else:
            parent = inside.parent.resolve()
            inside = (parent / target).parent.resolve() / target.name
        if not inside.is_relative_to(root.resolve()) and not inside.is_relative_to(root):
            return None
    return None
