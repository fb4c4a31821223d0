"""What a container gets by CDI, apart from what reads specs, which is slow to import."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from kube.cdi.spec import DeviceNode


class UnresolvableError(Exception):
    """No valid spec defines a CDI device, or two do."""


@dataclass(frozen=True, slots=True)
class ContainerEdits:
    """What a container gets: environment, device files, each path once, and mounts.

    ``mounts``: path in the container -> path on the node.
    """

    env: Mapping[str, str]
    device_nodes: tuple[DeviceNode, ...]
    mounts: Mapping[str, str] = field(default_factory=dict)
