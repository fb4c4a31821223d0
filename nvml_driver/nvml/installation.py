"""Where NVIDIA's driver is installed: its tools and libraries, which NVML does not report.

On most nodes that is ``/``; where a container installs the driver, a directory like
``/run/nvidia/driver``. This driver itself may run in a container that sees it elsewhere: what is
looked at and run is below ``container``, what container runtimes read is below ``host``. Folders as
kubernetes-sigs/dra-driver-nvidia-gpu searches them, ``cmd/gpu-kubelet-plugin/root.go``.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

LIBRARY_FOLDERS = (
    "usr/lib64",
    "usr/lib/x86_64-linux-gnu",
    "usr/lib/aarch64-linux-gnu",
    "lib64",
    "lib/x86_64-linux-gnu",
    "lib/aarch64-linux-gnu",
)
TOOL_FOLDERS = ("opt/bin", "usr/bin", "usr/sbin", "bin", "sbin")
_LINKS = 16  # that one name may go through


@dataclass(frozen=True, slots=True, kw_only=True)
class DriverRoot:
    """The root of the driver's installation, as the node (``host``) and this process name it."""

    host: Path = Path("/")
    container: Path = Path("/")

    def tool(self, name: str) -> Path | None:
        """A program, as this process sees it; None if there is none."""
        return self._first(TOOL_FOLDERS, name)

    def library(self, name: str) -> Path | None:
        return self._first(LIBRARY_FOLDERS, name)

    def resolve(self, path: Path) -> Path | None:
        """Where links lead, an absolute one being meant from the root; None: nowhere, or out."""
        inside = path
        for _ in range(_LINKS):
            if not inside.is_symlink():
                return inside if inside.is_file() else None
            target = inside.readlink()
            if target.is_absolute():
                inside = self.container / target.relative_to("/")
            else:
                parent = inside.parent.resolve()
                inside = (parent / target).parent.resolve() / target.name
            if not inside.is_relative_to(self.container.resolve()) and not inside.is_relative_to(
                self.container
            ):
                return None
        return None

    def _first(self, folders: tuple[str, ...], name: str) -> Path | None:
        for folder in folders:
            path = self.container / folder / name
            if self.resolve(path) is not None:
                return path
        return None
