"""What can be observed of a cluster beside the objects of its API: containers, nodes, metrics.

The metrics about DRA are a closed list, by the names of Kubernetes, because a counter without an
event has no series at all: a misspelt name would read as 0. All of them are alpha, so a name can
change with a minor; the names of older minors are listed beside the present one. kube-apiserver
counts nothing about DRA (its gates are read elsewhere).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Literal, Protocol

from pydantic import Field, model_validator

from conformance.scenario.base import Strict

Component = Literal["kubelet", "kube-controller-manager", "kube-scheduler"]

CONTROL_PLANE: Final[tuple[Component, ...]] = ("kube-controller-manager", "kube-scheduler")

OPERATIONS: Final = "dra_operations_duration_seconds_count"
CALLS: Final = "dra_grpc_operations_duration_seconds_count"
PREPARED: Final = "dra_resource_claims_in_use"
CREATES: Final = "dynamic_resource_allocation_resourceclaim_creates_total"
CLAIMS: Final = "dynamic_resource_allocation_resource_claims"


@dataclass(frozen=True, slots=True)
class Sample:
    """One series of a metric, as a component reports it now."""

    labels: Mapping[str, str]
    value: float


@dataclass(frozen=True, slots=True)
class Metric:
    """A metric: its components, the labels of all minors, and its names in older minors."""

    components: frozenset[Component]
    labels: frozenset[str]
    formerly: tuple[str, ...] = ()


_KUBELET: Final[frozenset[Component]] = frozenset({"kubelet"})

METRICS: Final[Mapping[str, Metric]] = {
    # pkg/kubelet/metrics/metrics.go
    OPERATIONS: Metric(_KUBELET, frozenset({"operation_name", "is_error"})),
    CALLS: Metric(_KUBELET, frozenset({"driver_name", "method_name", "grpc_status_code"})),
    PREPARED: Metric(_KUBELET, frozenset({"driver_name"})),
    # k8s.io/dynamic-resource-allocation/resourceclaim/metrics; renamed in 1.37. The scheduler
    # counts the claims that it makes for extended resources.
    CREATES: Metric(
        frozenset(CONTROL_PLANE),
        frozenset({"status", "admin_access"}),
        ("resourceclaim_controller_creates_total", "scheduler_resourceclaim_creates_total"),
    ),
    # pkg/controller/resourceclaim/metrics; renamed in 1.37.
    CLAIMS: Metric(
        frozenset({"kube-controller-manager"}),
        frozenset({"allocated", "admin_access"}),
        ("resourceclaim_controller_resource_claims",),
    ),
}


class MetricOf(Strict):
    """A metric of a component: the sum of its series with these labels."""

    component: Component
    node: str | None = Field(default=None, description="the kubelet's, such as ${worker.name}")
    node_of: str | None = Field(default=None, description="the kubelet is that of this pod's node")
    name: str = Field(description="as Kubernetes 1.37 has it; older minors' names are known")
    labels: dict[str, str] = Field(
        default_factory=dict, description="all series that have these are added up"
    )
    grown_since: str | None = Field(
        default=None,
        description="name of an earlier step: by how much it has grown since that step began",
    )

    @model_validator(mode="after")
    def _check_node(self) -> MetricOf:
        named = [name for name in (self.node, self.node_of) if name is not None]
        if len(named) != (1 if self.component == "kubelet" else 0):
            raise ValueError("a kubelet is named by node or nodeOf, any other component by neither")
        return self

    def describe(self) -> str:
        """Return the metric in a line, the same for all that ask for the same."""
        where = self.node or (f"{self.node_of}'s node" if self.node_of else "")
        labels = ", ".join(f"{name}={value}" for name, value in sorted(self.labels.items()))
        metric = f"{self.name}{{{labels}}}" if labels else self.name
        return f"{metric} of {self.component}" + (f" on {where}" if where else "")


def sum_samples(samples: Iterable[Sample], labels: Mapping[str, str]) -> float:
    """Return the sum of the series that have all these labels; 0 where there is none."""
    return sum(
        sample.value
        for sample in samples
        if all(sample.labels.get(name) == value for name, value in labels.items())
    )


def name_metrics_ability(component: Component) -> str:
    """Return the ability of a target that lets a scenario read a component's metrics."""
    return "kubelet-metrics" if component == "kubelet" else f"metrics:{component}"


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

    ``cdi``: the CDI devices that the driver answered for it, fully qualified; ``share``: the id of
    its share, "" of a device that is had alone.
    """

    driver: str
    pool: str
    device: str
    cdi: tuple[str, ...]
    share: str = ""


@dataclass(frozen=True, slots=True)
class ListedClaim:
    """A ResourceClaim that a container uses, with all of its devices."""

    namespace: str
    name: str
    devices: tuple[ListedDevice, ...]


@dataclass(frozen=True, slots=True)
class PublishedDevice:
    """A device as a ResourceSlice had it; ``node``: the slice's nodeName, "" of one without."""

    node: str
    pool: str
    device: Mapping[str, Any]


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

    def claims_in_use(self, node: str, driver: str) -> int:
        """Return how many claims with a driver's devices are allocated on a node and reserved."""

    def published_before(self, driver: str) -> Sequence[PublishedDevice]:
        """Return devices that a driver has published in this run, each as it was last.

        Those that it still publishes may be among them.
        """
