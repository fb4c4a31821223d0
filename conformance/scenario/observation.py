"""What can be observed of a cluster's nodes and components beside the objects of its API."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from conformance.scenario.metrics import Component, Sample


@dataclass(frozen=True, slots=True)
class ContainerView:
    """What one container sees of its surroundings, read from inside it.

    Attributes:
        environment: the container's environment, name -> value.
        device_nodes: paths of the character devices below ``/dev`` in the container.
        outputs: name of a command of the probe, or path of a metadata file -> what it printed.
    """

    environment: Mapping[str, str]
    device_nodes: tuple[str, ...]
    outputs: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ListedDevice:
    """A device of a claim, as a kubelet's PodResources API lists it (KEP-3695).

    Attributes:
        driver, pool, device: as in the claim's allocation.
        cdi: the CDI devices that the driver answered for it, fully qualified.
    """

    driver: str
    pool: str
    device: str
    cdi: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ListedClaim:
    """A ResourceClaim that a container uses, with all of its devices."""

    namespace: str
    name: str
    devices: tuple[ListedDevice, ...]


class Observation(Protocol):
    """Observes pods of one namespace, and the nodes and components of the whole cluster."""

    def container(self, pod: str, container: str) -> ContainerView | None:
        """What a container saw; None as long as it has not run the probe (``probe.py``)."""

    def cdi_claims(self) -> Mapping[str, Sequence[str]]:
        """Claim uid -> names of the CDI spec files that mention it, on all nodes.

        Needs the ability ``cdi``.
        """

    def cdi_specs(self) -> Sequence[tuple[str, dict[str, Any]]]:
        """Name and content of all CDI specs, on all nodes (ability ``cdi``)."""

    def samples(self, component: Component, name: str, node: str | None) -> Sequence[Sample] | None:
        """The series of a metric by its newest name; None if its component does not answer now.

        ``kubelet`` goes with its ``node`` (ability ``kubelet-metrics``), other components are of
        the control plane (``metrics:<component>``).
        """

    def pod_resources(self, pod: str, container: str) -> Sequence[ListedClaim] | None:
        """What the PodResources API of the pod's kubelet says of a container.

        Needs the ability ``pod-resources``. None where the pod is on no node, or the kubelet does
        not list it or does not answer now.
        """

    def claims_in_use(self, node: str, driver: str) -> int:
        """How many claims with a driver's devices are allocated on a node and reserved."""
