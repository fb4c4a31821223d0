"""What a target shows of nodes, containers and components, beside the objects of its API."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from kube.observations import (
    Component,
    ContainerView,
    DriverCall,
    ListedClaim,
    PublishedDevice,
    Sample,
)


class Observation(Protocol):
    """Observes pods of one namespace, and the nodes and components of the whole cluster."""

    def container(self, pod: str, container: str) -> ContainerView | None:
        """Return what a container saw; None as long as it has not run the probe (``probe.py``)."""

    def cdi_claims(self) -> Mapping[str, Sequence[str]]:
        """Return the CDI spec files of claims on all nodes: claim uid -> names of files.

        Needs the ability ``cdi``.
        """

    def cdi_specs(self) -> Sequence[tuple[str, dict[str, Any]]]:
        """Return name and content of all CDI specs, on all nodes (ability ``cdi``)."""

    def samples(self, component: Component, name: str, node: str | None) -> Sequence[Sample] | None:
        """Return a metric's series by its newest name; None if its component does not answer now.

        ``kubelet`` goes with its ``node`` (ability ``kubelet-metrics``), other components are of
        the control plane (``metrics:<component>``).
        """

    def pod_resources(self, pod: str, container: str) -> Sequence[ListedClaim] | None:
        """Return what the PodResources API of the pod's kubelet says of a container.

        Needs the ability ``pod-resources``. None where the pod is on no node, or the kubelet does
        not list it or does not answer now.
        """

    def driver_calls(self) -> Sequence[DriverCall] | None:
        """Return what the nodes' own drivers answered of the namespace's claims, in order.

        None where that is not known: only our driver's log tells it. Another driver's calls, which
        runs while a scenario needs it, are not among them.
        """

    def claims_in_use(self, node: str, driver: str) -> int:
        """Return how many claims with a driver's devices are allocated on a node and reserved."""

    def published_before(self, driver: str) -> Sequence[PublishedDevice]:
        """Return devices that a driver has published in this run, each as it was last.

        Those that it still publishes may be among them.
        """
