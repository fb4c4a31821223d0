"""What a container gets by CDI, apart from what reads specs, which is slow to import."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from kube.cdi.spec import DeviceNode, IntelRdt


class UnresolvableError(Exception):
    """A container runtime refuses to give a container some CDI devices."""


@dataclass(frozen=True, slots=True)
class ContainerEdits:
    """What a container gets: environment, device files, each path once, and more, in order.

    Attributes:
        mounts: path in the container -> path on the node, by how many folders are above them.
        net_devices: name of a network device on the node -> in the container.
        intel_rdt: that of the last device that has one.
        additional_gids: groups of its process, each once; never 0.
    """

    env: Mapping[str, str]
    device_nodes: tuple[DeviceNode, ...]
    mounts: Mapping[str, str] = field(default_factory=dict)
    net_devices: Mapping[str, str] = field(default_factory=dict)
    intel_rdt: IntelRdt | None = None
    additional_gids: tuple[int, ...] = ()
