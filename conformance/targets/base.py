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
from conformance.targets.following import Following
from conformance.targets.overlaps import Overlap

__all__ = [
    "RUN_LABEL",
    "SCENARIO_LABEL",
    "ApiError",
    "Capabilities",
    "Cause",
    "ContainerView",
    "Decision",
    "Obj",
    "Objs",
    "Overlap",
    "Ref",
    "Request",
    "Scope",
    "Target",
    "TargetError",
    "Tier",
]

Objs = list[Obj]

T = TypeVar("T")

WORKER_LABEL = "dra-conformance.dev/worker"
"""The pytest-xdist worker that made an object, beside the run's label."""

KUBELET_METRICS = "kubelet-metrics"
DISTINCT_DEVICES = "distinct-devices"
"""Abilities, see `Capabilities`."""

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
    """

    verb: Literal["create", "update", "patch", "delete", "deletecollection"]
    ref: Ref
    body: Any = None
    subresource: str = ""
    labels: Mapping[str, str] = field(default_factory=dict)
    dry_run: bool = False


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
        one_device: of the node with most devices the one that is had last: its name, and CEL that
            no other device of the driver fits.
        abilities: further things it can do: ``cdi`` (see the CDI specs of a node),
            ``kubelet-metrics`` (see how many claims a kubelet has prepared), ``double-allocation``
            (one device may be given to two claims), ``distinct-devices`` (``one_device`` is known),
            ``fault:<component>`` (restart that component, or all of a role), ``image`` (run probe
            containers).
        lacking: ability -> why it is not there, where there is more to say than that.
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

    def create(self, obj: Obj) -> Obj:
        """Create an object, unknown fields being an error (``fieldValidation=Strict``).

        For a Node that brings ``status``, the status is written too (a hollow node that is Ready).
        A namespaced object without a namespace goes into the scope's.

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

    def observe(self, pod: str, container: str) -> ContainerView | None:
        """What that container saw, None as long as it has not run the probe (see probe.py)."""
        ...

    def cdi_claims(self) -> Mapping[str, Sequence[str]]:
        """Claim uid -> names of CDI spec files that mention it, on all nodes (ability ``cdi``)."""
        ...

    def prepared_claims(self, node: str) -> int | None:
        """How many claims of the target's driver the node's kubelet has prepared.

        None where it does not tell now (ability ``kubelet-metrics``).
        """
        ...

    def claims_in_use(self, node: str) -> int:
        """How many claims with the driver's devices are allocated there and reserved."""
        ...

    def fault(self, component: str, action: str) -> None:
        """``restart`` or ``kill`` a component (ability ``fault:<component>``)."""
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
