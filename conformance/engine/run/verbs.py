"""What a step does: a class for each verb, which is a field of ``conformance.scenario.steps.Step``.

Verbs that send a request which the API server must accept share a class: what they ask for is in
:mod:`conformance.engine.run.changes`, as an expectation ``rejected`` asks for the same.
"""

from __future__ import annotations

import contextlib
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from conformance.engine.run.attempt import ScenarioAttempt
from conformance.engine.run.awaiting import await_expectation
from conformance.engine.run.changes import NotOneError, send
from conformance.engine.run.churn_rounds import churn
from conformance.engine.run.ending import Divergence
from conformance.engine.run.faults import disturb, stimulate
from conformance.scenario.steps import Step
from conformance.seam.overlaps import COPIED
from kube.errors import ApiError
from kube.values import Obj, Ref

DELETE_PROTECTION = "resource.kubernetes.io/delete-protection"
"""Finalizer of a claim that is allocated (k8s.io/api/resource/v1, ``Finalizer``)."""

ADMISSION_SECONDS = 10.0
"""How far an admission plugin's watches may be behind."""

Observed = list[dict[str, Any]]
"""What the expectations of a step observed, comparable between targets."""


@dataclass(frozen=True, slots=True)
class Verb(ABC):
    """What one step does. ``step``: the step, with its captured values filled in."""

    step: Step
    attempt: ScenarioAttempt

    @abstractmethod
    def perform(self) -> Observed:
        """Do it, and return what was observed, which is nothing for most verbs.

        Raises:
            Divergence: an expectation does not hold, or the API server refused what it must accept.
            TargetError: the target broke.
        """


class ApplyObjects(Verb):
    """Create objects that the API server must accept."""

    def perform(self) -> Observed:
        for obj in self.step.apply or ():
            self._create(dict(obj))
        return []

    def _create(self, obj: dict[str, Any]) -> None:
        """Create an object.

        An admission plugin that knows other objects from watches may refuse it for a moment
        (NodeDeclaredFeatureValidator, and a feature that was only just declared).
        """
        user = self.attempt.user(self.step.account)
        refusal: list[ApiError] = []

        def try_to_create() -> Obj | None:
            try:
                return self.attempt.ledger.create(obj, user)
            except ApiError as error:
                refusal[:] = [error]
                if error.reason != "Forbidden":
                    raise
                return None

        with contextlib.suppress(ApiError):
            if try_to_create() is not None:
                return
            if self.attempt.wait(try_to_create, ADMISSION_SECONDS) is not None:
                return
        [error] = refusal
        name = f"{obj.get('kind')} {obj.get('metadata', {}).get('name')}"
        raise Divergence(f"{name} to be accepted", f"{error.code} {error.reason}: {error.message}")


class ExpectAll(Verb):
    """See that expectations hold, one after the other."""

    def perform(self) -> Observed:
        return [
            await_expectation(expectation, self.attempt) for expectation in self.step.expect or ()
        ]


class SendChanges(Verb):
    """Send changes or deletions that the API server must accept."""

    def perform(self) -> Observed:
        try:
            send(self.step, self.step.delete or (), self.attempt)
        except NotOneError as error:
            raise Divergence(error.wanted, error.found) from None
        except ApiError as error:
            expected = f"to {self.step.describe()}, which must be accepted"
            raise Divergence(expected, str(error)) from None
        return []


class CaptureObjects(Verb):
    """Remember objects as they are now, for later expectations and steps."""

    def perform(self) -> Observed:
        for name, selector in (self.step.capture or {}).items():
            objects = self.attempt.find(selector)
            if len(objects) != 1:
                raise Divergence(f"one {selector.describe()} to capture", f"{len(objects)}")
            self.attempt.captured[name] = objects[0]
        return []


class StartWatches(Verb):
    """Watch objects from now on."""

    def perform(self) -> Observed:
        for name, selector in (self.step.watch or {}).items():
            self.attempt.watch(name, selector)
        return []


class LetTimePass(Verb):
    """Do nothing for some time."""

    def perform(self) -> Observed:
        with self.attempt.slot.observe():
            self.attempt.scope.pause(self.step.wait or 0.0)
        return []


class Churning(Verb):
    """Do many things at random, and see that no rule is broken."""

    def perform(self) -> Observed:
        assert self.step.churn is not None
        return [churn(self.step.churn, self.attempt)]


class DisturbComponent(Verb):
    """Stop, start or restart a component."""

    def perform(self) -> Observed:
        assert self.step.fault is not None
        disturb(self.step.fault, self.attempt)
        return []


class SetDeviceHealth(Verb):
    """Have the driver find devices healthy or not."""

    def perform(self) -> Observed:
        assert self.step.stimulate is not None
        stimulate(self.step.stimulate, self.attempt)
        return []


class CopyAllocation(Verb):
    """Write an allocation as the scheduler does: the finalizer first, then the status."""

    def perform(self) -> Observed:
        assert self.step.copy_allocation is not None
        names = self.step.copy_allocation
        source = self.attempt.get("ResourceClaim", names.source) or {}
        allocation = (source.get("status") or {}).get("allocation")
        claim = self.attempt.get("ResourceClaim", names.to)
        if allocation is None or claim is None:
            raise Divergence(f"claim {names.source} allocated, and claim {names.to}", "one is not")
        finalizers = [*(claim["metadata"].get("finalizers") or []), DELETE_PROTECTION]
        marks = {"finalizers": finalizers, "annotations": {COPIED: names.source}}
        ref = Ref.of(claim)
        try:
            self.attempt.scope.patch(ref, {"metadata": marks})
            self.attempt.scope.patch(ref, {"status": {"allocation": allocation}}, "status")
        except ApiError as error:
            raise Divergence(f"the allocation of {names.to} to be accepted", str(error)) from None
        return []


VERBS: Final[Mapping[str, type[Verb]]] = {
    "apply": ApplyObjects,
    "bind": SendChanges,
    "capture": CaptureObjects,
    "churn": Churning,
    "copy_allocation": CopyAllocation,
    "delete": SendChanges,
    "evict": SendChanges,
    "expect": ExpectAll,
    "fault": DisturbComponent,
    "patch": SendChanges,
    "server_side_apply": SendChanges,
    "stimulate": SetDeviceHealth,
    "update": SendChanges,
    "wait": LetTimePass,
    "watch": StartWatches,
}
"""Field of a step -> what it does."""
