"""The one seam between scenarios and what they run against.

The engine knows nothing of a cluster but these protocols, so the same scenario, step by step, runs
against the in-process reference and against any API server.

A :class:`Target` is opened once per process. Each scenario gets a :class:`Scope` of its own: one
namespace plus whatever cluster-scoped objects it creates. Scopes of one target are used from
several threads at once, one thread for each scope.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Protocol, TypeVar

from conformance.seam.observation import Observation
from conformance.seam.overlaps import Overlap
from conformance.seam.values import Capabilities
from conformance.seam.watching import Following, Watching
from kube.observations import Decision, Health
from kube.values import Obj, Query, Ref, Request, User

T = TypeVar("T")


class Objects(Protocol):
    """The objects of one namespace and of the cluster: requests, and waiting for changes.

    All requests raise ApiError where the API server refuses, and TargetError without an answer.
    """

    namespace: str

    def create(self, obj: Obj, user: User | None = None) -> Obj:
        """Create an object, unknown fields being an error (``fieldValidation=Strict``).

        In the name of ``user``, or of the user who runs the suite. For a Node that brings
        ``status``, the status is written too (a hollow node that is Ready). A namespaced object
        without a namespace goes into the scope's.
        """

    def get(self, ref: Ref) -> Obj | None:
        """The object as the target sees it now, None if there is none.

        ``ref.api_version`` chooses the version in which it is returned. May be served from a
        watch cache, which always includes what this scope itself created.
        """

    def find(self, query: Query) -> list[Obj]:
        """All objects that are meant, by name."""

    def columns(self, ref: Ref) -> Mapping[str, str]:
        """What ``kubectl get`` prints of an object: column -> text; nothing where it is gone."""

    def watch(self, query: Query) -> Watching:
        """Watch from now on what :meth:`find` would show, until the scope is closed.

        A :meth:`wait` repeats its check at each event.
        """

    def send(self, request: Request) -> None:
        """Carry out a request of a scenario, whatever its verb and subresource.

        To delete an object that is already gone is not an error.
        """

    def patch(self, ref: Ref, patch: Obj, subresource: str = "") -> None:
        """Apply an RFC 7386 merge patch."""
        self.send(Request("patch", ref, patch, subresource))

    def delete(self, ref: Ref, grace_seconds: int | None = None) -> None:
        """Ask for deletion; what depends on the object goes in the background."""
        # A Job's own default would leave its pods behind.
        options: Obj = {"propagationPolicy": "Background"}
        if grace_seconds is not None:
            options["gracePeriodSeconds"] = grace_seconds
        self.send(Request("delete", ref, options))

    def at_once(self, actions: Sequence[Callable[[], None]]) -> None:
        """Do several things at the same time, and return when all are done.

        Each makes requests (:meth:`create`, :meth:`send`, and what they need to read), and raises
        nothing.
        """

    def grant(self, user: User, rules: Sequence[Obj], labels: Mapping[str, str]) -> None:
        """Let an account do what RBAC rules say in the scope's namespace, and wait until it may.

        What is made for that is labelled, and goes with the namespace (ability ``impersonation``).

        Raises:
            ApiError: refused; nobody can grant what they may not do themselves.
            TargetError: the rights did not become known.
        """

    def may(self, user: User, verb: str, query: Query, name: str = "") -> bool:
        """Return whether a user may do something; nothing is done.

        Args:
            query: which kind, where; its field selector where ``name`` is empty.
            name: of the one object that is meant; "" for all that ``query`` selects.
        """

    def wait(self, check: Callable[[], T | None], timeout: float) -> T | None:
        """Call ``check`` now and whenever something changed, until it returns not None.

        It is called at least once a second, so that a run can be interrupted, and once more when
        the time is over. What it raises ends the wait.

        Args:
            check: a cheap function of :meth:`get` and :meth:`find`.
            timeout: seconds of the target's time (virtual on the reference).

        Returns what ``check`` returned, or None when the time was over.
        """

    def pause(self, seconds: float) -> None:
        """Let the target's time pass."""

    def now(self) -> float:
        """Seconds of the target's time, as `Target.now`."""


class Faults(Protocol):
    """Disturbs components of a target, and makes devices unhealthy."""

    def disturb(self, component: str, action: str) -> None:
        """Disturb a component, or all of a role (ability ``fault:<component>``).

        ``action``: ``restart``, ``kill`` (at once), ``stop`` or ``start``. One that was stopped or
        killed does nothing until it is started; to start one that runs does nothing. Of a driver
        also ``startNext``, ``startUnregistered``, ``killNext`` and ``replace``: a next version of
        it, which ends when the driver is started. Of another driver also ``remove``: it ends, and
        what it has published goes.

        Raises TargetError: there is no such component, or it did not get ready.
        """

    def set_gates(self, component: str, gates: Mapping[str, bool]) -> None:
        """Restart a component, or all of a role, with other feature gates.

        Needs the ability ``feature-gates``.
        ``gates``: gate -> on, beside those that the target was started with; none is only those.

        Raises TargetError: there is no such component, or it did not get ready.
        """

    def set_health(self, node: str, device: Obj, health: Health) -> None:
        """Have a node's driver find a device healthy or not (ability ``device-health``).

        Raises TargetError: the driver takes no device health.
        """


class Scope(Objects, Protocol):
    """One scenario's view of a target. Opened and closed by the engine (``Target.scope``)."""

    observe: Observation
    faults: Faults

    def decisions(self) -> Sequence[Decision]:
        """Decisions taken for pods of this namespace so far, oldest first; none if not recorded."""

    def latencies(self) -> Sequence[float]:
        """Seconds from a claim and its pod to the claim's allocation; none if not recorded."""

    def overlaps(self) -> Sequence[Overlap]:
        """Devices that two claims had at once, one of them of this namespace; of the whole run."""

    def follow(self, namespaces: Sequence[str]) -> Following:
        """Follow pods and claims of some namespaces from now on, beginning with what there is."""

    def snapshot(self, pods: bool = False) -> Obj:
        """The present snapshot, with the unallocated claims of this namespace as ``claims``.

        With ``pods`` also the pods of the cluster that have or want claims, and its templates: the
        form of ``dra-conformance capture``.
        """

    def diagnostics(self) -> Mapping[str, str]:
        """Name -> text for a failure report: objects, events, logs. Never Secrets or tokens."""

    def close(self) -> None:
        """Stop watching. Deletes nothing."""


class Target(Protocol):
    """An API server with DRA behind it, or something that behaves like one."""

    name: str

    def capabilities(self) -> Capabilities:
        """What it is and can do; asked once, after it was opened.

        Raises:
            ApiError: something that must be known may not be read.
            TargetError: there was no answer.
        """
        ...

    def scope(self, namespace: str) -> Scope:
        """Start to follow a namespace (which need not exist yet)."""
        ...

    def owned(self, run: str | None = None, *, every_kind: bool = False) -> list[Ref]:
        """What scenarios made, found by the run label (of one run, or of any), in deletion order.

        ``every_kind``: also what no scenario makes, but a driver's manifests.
        """
        ...

    def now(self) -> float:
        """Seconds of the target's time, for durations."""
        ...

    def peak_memory(self) -> int | None:
        """Bytes that the programs which the target consists of had at most, beside this process.

        None where they cannot be seen, or where there are none.
        """
        ...

    def close(self) -> None:
        """Release connections and threads. Deletes nothing. Can be called again."""
        ...
