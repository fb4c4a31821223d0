"""DeviceClasses of the driver profile, which all runs on a cluster share.

Each run adds an annotation ``dra-conformance.dev/run-<id>`` to a class that a run has made, and the
last one to leave deletes it. ``resourceVersion`` keeps two runs from changing it at once; the last
one marks it before it deletes it, so that no run joins in between. The annotation of a killed run
keeps the class alive until ``dra-conformance cleanup``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from conformance.engine.objects.ledger import RESOURCE_V1, Ledger
from conformance.scenario.driver.profile import DriverProfile
from conformance.seam.scope import Objects
from kube.base.errors import InfrastructureError, TargetError
from kube.errors import ApiError
from kube.nodes import RUN_LABEL
from kube.values import Obj, Query, Ref

_USER = f"{RUN_LABEL}-"
"""Annotation, followed by a run's id: that run uses the class."""

_LEAVING = "dra-conformance.dev/leaving"
"""Annotation: its last user is about to delete it."""

LEAVES = 30.0
"""Seconds until a deleted class must be gone."""

_ATTEMPTS = 10


def ensure_classes(profile: DriverProfile, scope: Objects, ledger: Ledger) -> tuple[str, ...]:
    """Create the classes that are missing, and share those that other runs have made.

    One that no run has made is left as it is. The ledger's cleanup leaves the others.
    Returns names of the classes that are this run's, alone or with other runs.

    Raises:
        InfrastructureError: the server refuses, or a terminating class stays.
        TargetError: no answer.
    """
    ours = []
    for entry in profile.spec.classes.values():
        shared = SharedClass(entry.name, scope, ledger.labels[RUN_LABEL])
        ledger.at_cleanup(shared.leave)
        try:
            if shared.join(entry.spec):
                ours.append(entry.name)
        except ApiError as error:
            raise InfrastructureError(
                f"{shared.ref}, which the scenarios of driver {profile.driver} need, cannot be"
                f" provided: {error.code} {error.reason}: {error.message}"
            ) from None
    return tuple(ours)


def used_by(scope: Objects, run: str) -> tuple[SharedClass, ...]:
    """The classes that a run uses, whichever run made them."""
    try:
        classes = scope.find(Query(RESOURCE_V1, "DeviceClass"))
    except ApiError as error:
        if error.code == 404:
            return ()
        raise
    names = [obj["metadata"]["name"] for obj in classes if run in _users(obj)]
    return tuple(SharedClass(name, scope, run) for name in names)


class SharedClass:
    """One DeviceClass, as one run uses it."""

    def __init__(self, name: str, scope: Objects, run: str) -> None:
        self.ref = Ref(RESOURCE_V1, "DeviceClass", name)
        self._scope = scope
        self._run = run

    def join(self, spec: Mapping[str, Any]) -> bool:
        """Create the class, or share it; False for a class that no run has made.

        Raises:
            ApiError: the server refused.
            InfrastructureError: it is terminating, and stays.
        """
        for _ in range(_ATTEMPTS):
            present_class = self._scope.get(self.ref)
            try:
                if present_class is None:
                    self._create(spec)
                elif RUN_LABEL not in _labels(present_class):
                    return False
                elif _is_leaving(present_class):
                    self._see_gone(present_class)
                    continue
                else:
                    users = _users(present_class) | {self._run}
                    self._change(
                        present_class, {"annotations": {f"{_USER}{run}": "" for run in users}}
                    )
            except ApiError as error:
                if error.reason not in {"AlreadyExists", "Conflict", "NotFound"}:
                    raise
            else:
                return True
        raise InfrastructureError(f"{self.ref}: other clients keep changing it; try again")

    def leave(self, timeout: float = LEAVES) -> Sequence[str]:
        """Stop using the class, and delete it if no other run uses it; problems in words."""
        try:
            for _ in range(_ATTEMPTS):
                present_class = self._scope.get(self.ref)
                users = _users(present_class) if present_class is not None else frozenset()
                if present_class is None or self._run not in users:
                    return ()
                try:
                    return self._leave(present_class, users - {self._run}, timeout)
                except ApiError as error:
                    if error.reason not in {"Conflict", "NotFound"}:
                        raise
        except ApiError as error:
            return (f"{self.ref} could not be deleted: {error.message}",)
        except TargetError as error:
            return (f"{self.ref} could not be deleted: {error}",)
        return (f"{self.ref} could not be deleted: other clients keep changing it",)

    def _leave(self, found: Obj, others: frozenset[str], timeout: float) -> Sequence[str]:
        gone = {f"{_USER}{self._run}": None}
        if others:  # one of them is who `dra-conformance cleanup --run` finds it by from now on
            self._change(found, {"annotations": gone, "labels": {RUN_LABEL: min(others)}})
            return ()
        # Marked in the version that was read: a run that joined meanwhile has changed it.
        mine = {"annotations": {**gone, _LEAVING: self._run}, "labels": {RUN_LABEL: self._run}}
        self._change(found, mine)
        self._scope.delete(self.ref)
        if self._scope.wait(lambda: self._is_gone(found), timeout) is None:
            return (f"{self.ref} is still there after {timeout:g} s",)
        return ()

    def _create(self, spec: Mapping[str, Any]) -> None:
        self._scope.create(
            {
                "apiVersion": self.ref.api_version,
                "kind": self.ref.kind,
                "metadata": {
                    "name": self.ref.name,
                    "labels": {RUN_LABEL: self._run},
                    "annotations": {f"{_USER}{self._run}": ""},
                },
                "spec": dict(spec),
            }
        )

    def _change(self, found: Obj, metadata: Obj) -> None:
        version = found["metadata"]["resourceVersion"]
        self._scope.patch(self.ref, {"metadata": {"resourceVersion": version, **metadata}})

    def _see_gone(self, found: Obj) -> None:
        if self._scope.wait(lambda: self._is_gone(found), LEAVES) is None:
            run = _labels(found)[RUN_LABEL]
            raise InfrastructureError(
                f"{self.ref} is being deleted by run {run} and is still there after {LEAVES:g} s;"
                f" if that run was killed, use `dra-conformance cleanup --run {run}`"
            )

    def _is_gone(self, found: Obj) -> bool | None:
        now = self._scope.get(self.ref)
        same = now is not None and now["metadata"].get("uid") == found["metadata"].get("uid")
        return None if same else True


def _labels(obj: Obj) -> Mapping[str, str]:
    return obj["metadata"].get("labels") or {}


def _users(obj: Obj) -> frozenset[str]:
    """The runs that use a class; without an annotation the one that made it."""
    notes = obj["metadata"].get("annotations") or {}
    written = {key.removeprefix(_USER) for key in notes if key.startswith(_USER)}
    maker = _labels(obj).get(RUN_LABEL)
    return frozenset(written or ({maker} if maker else ()))


def _is_leaving(obj: Obj) -> bool:
    meta = obj["metadata"]
    return "deletionTimestamp" in meta or _LEAVING in (meta.get("annotations") or {})
