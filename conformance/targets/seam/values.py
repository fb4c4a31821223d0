"""What crosses the seam between scenarios and targets: requests, capabilities, decisions.

Kubernetes objects cross it as plain JSON (``dict`` with the API's camelCase names, ``apiVersion``
and ``kind`` always set). The protocols themselves are in :mod:`conformance.targets.seam.scope`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

from conformance.clusters.base import RUN_LABEL
from kube.base.errors import TargetError
from kube.errors import ApiError, Cause
from kube.slices import results_of
from kube.values import Obj

__all__ = ["RUN_LABEL", "ApiError", "Cause", "Obj", "TargetError", "results_of"]

WORKER_LABEL = "dra-conformance.dev/worker"
"""The pytest-xdist worker that made an object, beside the run's label."""

KUBELET_METRICS = "kubelet-metrics"
POD_RESOURCES = "pod-resources"
ANOTHER_SCHEDULER = "another-scheduler"
DISTINCT_DEVICES = "distinct-devices"
SHARED_DEVICES, PARTITIONS = "shared-devices", "partitions"
ROOT_CONTAINERS = "root-containers"  # Abilities, see `Capabilities`.

CONSTRAINTS = "security.openshift.io/v1"
"""Where it is served, namespaces get a range of users a moment after they were made, and containers
may have no other one."""

SCENARIO_LABEL = "dra-conformance.dev/scenario"

Tier = Literal["allocation", "node", "device"]


@dataclass(frozen=True, slots=True)
class Ref:
    """Names one object: ``namespace`` is None for a cluster-scoped kind."""

    api_version: str
    kind: str
    name: str
    namespace: str | None = None

    @classmethod
    def of(cls, obj: Mapping[str, Any]) -> Ref:
        """The reference to an object that has ``apiVersion``, ``kind`` and ``metadata.name``."""
        meta = obj["metadata"]
        return cls(obj["apiVersion"], obj["kind"], meta["name"], meta.get("namespace"))

    def __str__(self) -> str:
        return f"{self.kind} {self.name}"


@dataclass(frozen=True, slots=True)
class Query:
    """Which objects of one kind are meant, in the words that lists and watches have.

    Attributes:
        namespace: in which they are; None is the scope's (or none, for a cluster-scoped kind).
        fields: a field selector, which the API server evaluates.
    """

    api_version: str
    kind: str
    labels: Mapping[str, str] | None = None
    namespace: str | None = None
    fields: Mapping[str, str] | None = None


@dataclass(frozen=True, slots=True)
class User:
    """A service account in whose name a request is made.

    ``node``: the node on which it acts, as the token of a pod there says; empty for none.
    """

    namespace: str
    name: str
    node: str = ""

    def __str__(self) -> str:
        return f"system:serviceaccount:{self.namespace}:{self.name}"


@dataclass(frozen=True, slots=True)
class FieldManager:
    """Who applies fields by server-side apply, and whether against the will of others."""

    name: str
    force: bool = False


@dataclass(frozen=True, slots=True)
class Request:
    """A request that changes something, as a scenario words it.

    Attributes:
        ref: the object; for ``deletecollection`` its name is empty.
        body: the object, the patch (a mapping is a merge patch, a list a JSON patch), or the
            options of a deletion (``metav1.DeleteOptions``).
        subresource: for example ``status``; with ``create`` ``eviction`` or ``binding``.
        labels: of what is deleted by ``deletecollection``.
        user: in whose name; None is the user who runs the suite.
        manager: of a patch that is a server-side apply; the body is what is applied.
    """

    verb: Literal["create", "update", "patch", "delete", "deletecollection"]
    ref: Ref
    body: Any = None
    subresource: str = ""
    labels: Mapping[str, str] = field(default_factory=dict)
    dry_run: bool = False
    user: User | None = None
    manager: FieldManager | None = None


class OneDevice(NamedTuple):
    """A device that can be asked for alone.

    Attributes:
        selector: CEL that no other device of the driver fits.
        shared: two or more claims may have shares of it now.
    """

    name: str
    selector: str
    shared: bool = False


@dataclass(frozen=True, slots=True)
class Capabilities:
    """What a target is and can do; decides which scenarios run on it.

    Attributes:
        kubernetes_version: of the API server, for example ``1.37.1``.
        kubelet_version: of the oldest kubelet of ``nodes``; empty if it is of the same minor.
        kubelet_gates: kubelets' feature gates that may not be as the API server's.
        served_apis: group/versions, for example ``resource.k8s.io/v1``, ``v1``.
        unserved: tier -> why it is not served, where there is more to say than that.
        driver: the driver whose devices the ``node`` tier uses, None without one.
        nodes: nodes with a kubelet that the suite may use.
        devices: how many devices of that driver the ``node`` tier may use at once (this and the
            next are 0 until ``targets.offer`` has counted them for a profile).
        devices_on: node -> how many of them may be used there at once. A device that can be used
            from several nodes counts on each, one that claims may share as often as they may.
        different_on: node -> how many different devices these are, where some are shares of one; a
            request for several gets as many.
        other_driver: another driver, whose devices are on the same nodes; None without one.
        other_devices_on: node -> how many of its devices may be used there.
        one_device_on: node -> the device that is allocated last there, where an attribute tells it
            from all others of the driver.
        abilities: further things it can do: ``cdi`` (see the CDI specs of a node),
            ``kubelet-metrics``, ``metrics:<component>`` (read what it counts), ``pod-resources``
            (ask kubelets by that API), ``double-allocation`` (one device may be given to two
            claims), ``distinct-devices`` (``one_device_on`` has the node with most),
            ``shared-devices`` (that device has two free shares), ``partitions`` (two free devices
            of a node draw on one set of counters), ``root-containers`` (containers may be root, and
            more), ``another-scheduler`` (it has the pods that name none, and the default one is
            beside it), ``impersonation`` (requests in the name of accounts that the suite gives
            rights), ``fault:<component>`` (stop and start that component, or all of a role),
            ``device-health`` (have the driver find devices healthy or not), ``upgrade`` and
            ``feature-gates`` (restart components as the next minor, or with other gates), ``image``
            (run probe containers).
        lacking: ability -> why it is not there, where there is more to say than that; ``devices``
            says it of devices where none is free.
        feature_gates: gates that are known to be on or off; a gate that is not in it is unknown.
        concurrent: several scenarios can run at once, as its time is not virtual.
        simulated: what is simulated, in words, for reports; empty where nothing is.
        versions: component versions for reports (kubernetes, containerd, driver, reference, ...).
    """

    kubernetes_version: str
    served_apis: frozenset[str]
    tiers: frozenset[Tier]
    unserved: Mapping[Tier, str] = field(default_factory=dict)
    driver: str | None = None
    nodes: tuple[str, ...] = ()
    devices: int = 0
    devices_on: Mapping[str, int] = field(default_factory=dict)
    different_on: Mapping[str, int] = field(default_factory=dict)
    other_driver: str | None = None
    other_devices_on: Mapping[str, int] = field(default_factory=dict)
    one_device_on: Mapping[str, OneDevice] = field(default_factory=dict)
    abilities: frozenset[str] = frozenset()
    lacking: Mapping[str, str] = field(default_factory=dict)
    feature_gates: Mapping[str, bool] = field(default_factory=dict)
    concurrent: bool = False
    simulated: tuple[str, ...] = ()
    versions: Mapping[str, str] = field(default_factory=dict)
    kubelet_version: str = ""
    kubelet_gates: Mapping[str, bool] = field(default_factory=dict)


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


SIMULATED = "dra-conformance.dev/simulated"
"""Attribute of devices that are simulated (nvml_driver sets it)."""


def simulated_devices(driver: str | None, slices: Iterable[Obj]) -> list[str]:
    """In words, that a driver's devices are simulated, where its slices say so themselves."""
    for item in slices:
        if item["spec"].get("driver") != driver:
            continue
        for device in item["spec"].get("devices") or []:
            # v1beta1 has the attributes one level deeper.
            attributes = (device.get("basic") or device).get("attributes") or {}
            if (attributes.get(SIMULATED) or {}).get("bool"):
                return [f"the devices of {driver}"]
    return []


def cells_of(table: Mapping[str, Any]) -> Mapping[str, str]:
    """Column -> text of the only row of a ``meta.k8s.io/v1`` Table; nothing where it has none."""
    names = [str(column["name"]) for column in table.get("columnDefinitions") or ()]
    rows: Sequence[Any] = table.get("rows") or ()
    return dict(zip(names, map(str, rows[0]["cells"]), strict=True)) if len(rows) == 1 else {}


def device_key(entry: Mapping[str, Any]) -> tuple[str | None, ...]:
    """What tells the device, or share of one, of a result or a report from any other."""
    return tuple(entry.get(field) for field in ("driver", "pool", "device", "shareID"))


def selected_node(selector: Mapping[str, Any] | None) -> str:
    """The one node that a NodeSelector names, "" where it names none or says more.

    As ``nodeNameFromAllocation`` of pkg/registry/resource/utils.go.
    """
    match selector:
        case {"nodeSelectorTerms": [{"matchFields": [field], **more}]} if not any(more.values()):
            match field:
                case {"key": "metadata.name", "operator": "In", "values": [node]}:
                    return str(node)
    return ""
