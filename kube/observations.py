"""What can be observed of a cluster beside the objects of its API: containers, nodes, metrics.

The metrics about DRA are a closed list, by the names of Kubernetes, because a counter without an
event has no series at all: a misspelt name would read as 0. All of them are alpha, so a name can
change with a minor; the names of older minors are listed beside the present one. kube-apiserver
counts nothing about DRA (its gates are read elsewhere).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Literal

from kube.values import Obj

Component = Literal["kubelet", "kube-controller-manager", "kube-scheduler"]

Health = Literal["Healthy", "Unhealthy", "Unknown"]
"""What a pod's status says of a device (k8s.io/api/core/v1, ``ResourceHealthStatus``)."""

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


def sum_samples(samples: Iterable[Sample], labels: Mapping[str, str]) -> float:
    """Return the sum of the series that have all these labels; 0 where there is none."""
    return sum(
        sample.value
        for sample in samples
        if all(sample.labels.get(name) == value for name, value in labels.items())
    )


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
class DriverCall:
    """What a node's own driver answered of one claim that its kubelet asked it for.

    Attributes:
        claim: its name.
        operation: ``prepare`` or ``unprepare``.
        error: the driver's words, empty where it succeeded.
    """

    claim: str
    operation: str
    error: str = ""


@dataclass(frozen=True, slots=True)
class PublishedDevice:
    """A device as a ResourceSlice had it; ``node``: the slice's nodeName, "" of one without."""

    node: str
    pool: str
    device: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Decision:
    """One scheduling decision that allocated claims: what was decided, and from what.

    Attributes:
        pod: name of the pod for which the claims were allocated.
        claims: the claims that were allocated together, as they were before (no allocation).
        allocations: ``status.allocation`` of each of them, in the same order.
        snapshot: everything else the allocation depends on, at that moment: a JSON document as
            ``reference_allocator.snapshot.Snapshot.to_dict`` gives it (ResourceSlices,
            DeviceClasses, Nodes, claims that were allocated already, features).
        unknown: why the snapshot is not certain, so that the decision cannot be judged; usually "".
    """

    pod: str
    namespace: str
    node: str
    claims: tuple[Obj, ...]
    allocations: tuple[Obj, ...]
    snapshot: Obj
    unknown: str = ""
