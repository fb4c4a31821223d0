"""Which versions of the CDI library refuse a spec that the newest takes, and who uses them.

The rules: pkg/cdi and specs-go of github.com/cncf-tags/container-device-interface, asked side by
side (ci/upstream/cdi). What else older versions read otherwise, drivers do not write: null in a
list, a key that is null, a merged key that is there already.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain
from typing import Final

from kube.cdi.spec import NO_PERMISSIONS, VERSIONS, Spec


@dataclass(frozen=True, slots=True)
class Library:
    """A version of the library.

    Attributes:
        used_by: container runtimes that have it, by their go.mod.
        newest: the newest ``cdiVersion`` that it takes.
    """

    version: str
    used_by: str
    newest: str


OLDER: Final = (
    Library("1.1.0", "containerd 2.3, newer 2.2", "1.1.0"),
    Library("1.0.1", "containerd 2.1, newer 2.0", "1.0.0"),
    Library("0.8.1", "containerd 1.7, older 2.0", "0.8.0"),
)
"""Each stands for itself and those of its minor; the newest first."""


def list_refusals(spec: Spec) -> list[str]:
    """Return a line for each older version that refuses a valid spec, with who has it and why."""
    return [
        f"library {library.version} ({library.used_by}) refuses it: {reason}"
        for library in OLDER
        for reason in _reasons(spec, library)
    ]


def _reasons(spec: Spec, library: Library) -> Iterator[str]:
    version = spec.cdi_version.removeprefix("v")
    if VERSIONS.index(version) > VERSIONS.index(library.newest):
        yield f"cdiVersion is {version}"
        return
    edits = chain([spec.container_edits], (device.container_edits for device in spec.devices))
    if any(node.permissions == NO_PERMISSIONS for part in edits for node in part.device_nodes):
        yield "permissions are none"
