"""What a target shows of nodes, containers and components, beside the objects of its API."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from kube.observations import Component, ContainerView, ListedClaim, PublishedDevice, Sample


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

    def published_before(self, driver: str) -> Sequence[PublishedDevice]:
        """Devices that a driver has published in this run, each as it was last.

        Those that it still publishes may be among them.
        """
