"""The one seam between scenarios and what they run against.

The engine knows nothing of a cluster but this protocol, so the same scenario, step by step, runs
against the in-process reference and against any API server. Kubernetes objects cross the seam as
plain JSON (``dict`` with the API's camelCase names, ``apiVersion`` and ``kind`` always set).

A :class:`Target` is opened once per process. Each scenario gets a :class:`Scope` of its own: one
namespace plus whatever cluster-scoped objects it creates. Scopes of one target are used from
several threads at once, one thread for each scope.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol, TypeVar

from conformance.clusters.base import RUN_LABEL
from conformance.errors import TargetError
from conformance.kubeapi.errors import ApiError, Cause, Obj
from conformance.scenario.expectations.base import ContainerView
from conformance.scenario.metrics import Component, Sample
from conformance.scenario.podresources import ListedClaim
from conformance.scenario.stimulus import Health
from conformance.targets.following import Following
from conformance.targets.overlaps import Overlap
from conformance.targets.watching import Watching

__all__ = [
    "RUN_LABEL",
    "SCENARIO_LABEL",
    "ApiError",
    "Capabilities",
    "Cause",
    "Component",
    "ContainerView",
    "Decision",
    "FieldManager",
    "Obj",
    "Objs",
    "Overlap",
    "Ref",
    "Request",
    "Sample",
    "Scope",
    "Target",
    "TargetError",
    "Tier",
    "User",
]

Objs = list[Obj]

T = TypeVar("T")

WORKER_LABEL = "dra-conformance.dev/worker"
"""The pytest-xdist worker that made an object, beside the run's label."""

KUBELET_METRICS = "kubelet-metrics"
POD_RESOURCES = "pod-resources"
DISTINCT_DEVICES = "distinct-devices"
ROOT_CONTAINERS = "root-containers"
"""Abilities, see `Capabilities`."""

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
class User:
    """A service account in whose name a request is made.

    Attributes:
        namespace: of the account.
        name: of the account.
        node: the node on which it acts, as the token of a pod there says; empty for none.
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
        verb: as RBAC knows it.
        ref: the object; for ``deletecollection`` its name is empty.
        body: the object, the patch (a mapping is a merge patch, a list a JSON patch), or the
            options of a deletion (``metav1.DeleteOptions``).
        subresource: for example ``status``; with ``create`` ``eviction`` or ``binding``.
        labels: of what is deleted by ``deletecollection``.
        dry_run: nothing is stored.
        user: in whose name; None is who runs the suite.
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


@dataclass(frozen=True, slots=True)
class Capabilities:
    """What a target is and can do; decides which scenarios run on it.

    Attributes:
        kubernetes_version: for example ``1.37.1``.
        served_apis: group/versions, for example ``resource.k8s.io/v1``, ``v1``.
        tiers: the tiers that it can serve.
        unserved: tier -> why it is not served, where there is more to say than that.
        driver: the driver whose devices the ``node`` tier uses, None without one.
        nodes: nodes with a kubelet that the suite may use.
        devices: how many devices of that driver the ``node`` tier may use at once (this and the
            next are 0 until ``targets.offer`` has counted them for a profile).
        devices_on: node -> how many of them may be used there at once. A device that can be used
            from several nodes counts on each.
        other_driver: another driver, whose devices are on the same nodes; None without one.
        other_devices_on: node -> how many of its devices may be used there.
        one_device: of the node with most devices the one that is had last: its name, and CEL that
            no other device of the driver fits.
        abilities: further things it can do: ``cdi`` (see the CDI specs of a node),
            ``kubelet-metrics``, ``metrics:<component>`` (read what it counts), ``pod-resources``
            (ask kubelets by that API),
            ``double-allocation`` (one device may be given to two claims), ``distinct-devices``
            (``one_device`` is known), ``root-containers`` (containers may be root, and more),
            ``impersonation`` (requests in the name of accounts that the suite gives rights),
            ``fault:<component>`` (stop and start that component, or all of a role),
            ``device-health`` (have the driver find devices healthy or not), ``image`` (run probe
            containers).
        lacking: ability -> why it is not there, where there is more to say than that; ``devices``
            says it of devices where none is free.
        feature_gates: gates that are known to be on or off; a gate that is not in it is unknown.
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
    other_driver: str | None = None
    other_devices_on: Mapping[str, int] = field(default_factory=dict)
    one_device: tuple[str, str] = ("", "")
    abilities: frozenset[str] = frozenset()
    lacking: Mapping[str, str] = field(default_factory=dict)
    feature_gates: Mapping[str, bool] = field(default_factory=dict)
    simulated: tuple[str, ...] = ()
    versions: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Decision:
    """One scheduling decision that allocated claims: what was decided, and from what.

    Attributes:
        pod: name of the pod for which the claims were allocated.
        namespace: namespace of the pod and its claims.
        node: the node that was chosen.
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


class Scope(Protocol):
    """One scenario's view of a target. Opened and closed by the engine (``Target.scope``)."""

    namespace: str

    def create(self, obj: Obj, user: User | None = None) -> Obj:
        """Create an object, unknown fields being an error (``fieldValidation=Strict``).

        In the name of ``user``, or of who runs the suite. For a Node that brings ``status``, the
        status is written too (a hollow node that is Ready). A namespaced object without a namespace
        goes into the scope's.

        Raises:
            ApiError: the API server refused it.
            TargetError: there was no answer.
        """
        ...

    def get(self, ref: Ref) -> Obj | None:
        """The object as the target sees it now, None if there is none.

        ``ref.api_version`` chooses the version in which it is returned. May be served from a
        watch cache, which always includes what this scope itself created.
        """
        ...

    def list(
        self,
        api_version: str,
        kind: str,
        labels: Mapping[str, str] | None = None,
        namespace: str | None = None,
        fields: Mapping[str, str] | None = None,
    ) -> Objs:
        """All objects of a kind in a namespace, by default the scope's (all if cluster-scoped).

        Those with all the labels; ``fields`` is a field selector, which the API server evaluates.
        """
        ...

    def watch(
        self,
        api_version: str,
        kind: str,
        labels: Mapping[str, str] | None = None,
        namespace: str | None = None,
        fields: Mapping[str, str] | None = None,
    ) -> Watching:
        """Watch from now on what :meth:`list` would show; until :meth:`close`.

        A :meth:`wait` looks again at each event.

        Raises:
            ApiError: the API server refuses.
            TargetError: there was no answer.
        """
        ...

    def patch(self, ref: Ref, patch: Obj, subresource: str | None = None) -> Obj:
        """Apply an RFC 7386 merge patch and return the result."""
        ...

    def delete(self, ref: Ref, grace_seconds: int | None = None) -> None:
        """Ask for deletion; an object that is already gone is not an error."""
        ...

    def send(self, request: Request) -> None:
        """Carry out a request of a scenario, whatever its verb and subresource.

        Raises:
            ApiError: the API server refused it.
            TargetError: there was no answer.
        """
        ...

    def at_once(self, actions: Sequence[Callable[[], None]]) -> None:
        """Do several things at the same time, and return when all are done.

        Each makes requests (:meth:`create`, :meth:`send`, and what they need to read), and raises
        nothing.
        """
        ...

    def grant(self, user: User, rules: Sequence[Obj], labels: Mapping[str, str]) -> None:
        """Let an account do what RBAC rules say in the scope's namespace, and wait until it may.

        What is made for that is labelled, and goes with the namespace (ability ``impersonation``).

        Raises:
            ApiError: refused; nobody can grant what they may not do themselves.
            TargetError: the rights did not become known.
        """
        ...

    def wait(self, check: Callable[[], T | None], timeout: float) -> T | None:
        """Call ``check`` now and whenever something changed, until it returns not None.

        It is called at least once a second, so that a run can be interrupted, and once more when
        the time is over. What it raises ends the wait.

        Args:
            check: a cheap function of :meth:`get` and :meth:`list`.
            timeout: seconds of the target's time (virtual on the reference).

        Returns:
            What ``check`` returned, or None when the time was over.
        """
        ...

    def pause(self, seconds: float) -> None:
        """Let the target's time pass."""
        ...

    def now(self) -> float:
        """Seconds of the target's time, as `Target.now`."""
        ...

    def observe(self, pod: str, container: str) -> ContainerView | None:
        """What that container saw, None as long as it has not run the probe (see probe.py)."""
        ...

    def cdi_claims(self) -> Mapping[str, Sequence[str]]:
        """Claim uid -> names of CDI spec files that mention it, on all nodes (ability ``cdi``)."""
        ...

    def cdi_specs(self) -> Sequence[tuple[str, Obj]]:
        """Name and content of all CDI specs, on all nodes (ability ``cdi``)."""
        ...

    def samples(self, component: Component, name: str, node: str | None) -> Sequence[Sample] | None:
        """The series of a metric of ``conformance.scenario.metrics``, whatever this minor calls it.

        Of the kubelet of a node (ability ``kubelet-metrics``), or of a component of the control
        plane (``metrics:<component>``). None where it does not tell now.
        """
        ...

    def pod_resources(self, node: str, pod: str, container: str) -> Sequence[ListedClaim] | None:
        """What the PodResources API of the node's kubelet says of a container of this namespace.

        None where it does not list it, or does not answer now (ability ``pod-resources``).
        """
        ...

    def claims_in_use(self, node: str, driver: str) -> int:
        """How many claims with a driver's devices are allocated there and reserved."""
        ...

    def fault(self, component: str, action: str) -> None:
        """Disturb a component, or all of a role (ability ``fault:<component>``).

        Args:
            component: its name, or its role.
            action: ``restart``, ``kill`` (at once), ``stop`` or ``start``. One that was stopped or
                killed does nothing until it is started; to start one that runs does nothing. Of a
                driver also ``startNext``, ``startUnregistered``, ``killNext`` and ``replace``: a
                next version of it, which ends when the driver is started. Of another driver also
                ``remove``: it ends, and what it has published goes.
        """
        ...

    def set_health(self, node: str, device: Obj, health: Health) -> None:
        """Have a node's driver find a device healthy or not (ability ``device-health``).

        Args:
            node: its name.
            device: the device as its ResourceSlice has it.
            health: what it is from now on.

        Raises:
            TargetError: the driver cannot be told.
        """
        ...

    def decisions(self) -> Sequence[Decision]:
        """Decisions taken for pods of this namespace so far, oldest first."""
        ...

    def overlaps(self) -> Sequence[Overlap]:
        """Devices that two claims had at once, one of them of this namespace; of the whole run."""
        ...

    def follow(self, namespaces: Sequence[str]) -> Following:
        """Follow pods and claims of some namespaces from now on, beginning with what there is."""
        ...

    def again(self) -> AbstractContextManager[Scope | None]:
        """The same namespace in a new target like this one; None where there is but one."""
        ...

    def snapshot(self) -> Obj:
        """The present snapshot, with the unallocated claims of this namespace as ``claims``."""
        ...

    def diagnostics(self) -> Mapping[str, str]:
        """Name -> text for a failure report: objects, events, logs. Never Secrets or tokens."""
        ...

    def close(self) -> None:
        """Stop watching. Deletes nothing."""
        ...


class Target(Protocol):
    """An API server with DRA behind it, or something that behaves like one."""

    name: str

    def capabilities(self) -> Capabilities:
        """What it is and can do; asked once, after it was opened."""
        ...

    def scope(self, namespace: str) -> Scope:
        """Start to follow a namespace (which need not exist yet)."""
        ...

    def owned(self, run: str | None = None, *, every_kind: bool = False) -> list[Ref]:
        """What scenarios made, told by the run label (of one run, or of any), in deletion order.

        Args:
            run: its id.
            every_kind: also what no scenario makes, but a driver's manifests.
        """
        ...

    def now(self) -> float:
        """Seconds of the target's time, for durations."""
        ...

    def close(self) -> None:
        """Release connections and threads. Deletes nothing."""
        ...
