"""Carries out the operations of one round of churn.

An operation may come too late for what it is about, as operations know nothing of what the target
did (:mod:`conformance.engine.run.churn_operations`).
"""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from typing import Any, Final

from conformance.engine.run.attempt import ScenarioAttempt
from conformance.engine.run.churn_operations import Operation
from conformance.engine.run.ending import Interrupted
from conformance.scenario.churn import Churn
from kube.base.errors import UsageError
from kube.errors import ApiError
from kube.values import Obj, Ref

GRACE_SECONDS: Final = 30
"""Of a pod that is deleted with grace; where no kubelet ends it, it is there until it is forced."""

_TAINT: Final = {"key": "dra-conformance.dev/churn", "effect": "NoSchedule"}

_SLOW: Final = 3.0
"""How many times as long as planned a round may take before the rest of it is left out."""

_TOO_LATE: Final = frozenset({"AlreadyExists", "NotFound", "Conflict"})
"""Reasons of refusals that mean: what an operation is about has become something else meanwhile."""


class Player:
    """Makes and ends what a step's operations say. ``namespaces``: those in which it does so."""

    def __init__(self, churn: Churn, attempt: ScenarioAttempt) -> None:
        """Play in a scenario that has made its namespaces.

        Raises UsageError: a namespace is not the scenario's.
        """
        self._churn = churn
        self._attempt = attempt
        self.namespaces = churn.namespaces or (attempt.scope.namespace,)
        scenario_namespaces = {ref.name for ref in attempt.ledger.made if ref.kind == "Namespace"}
        if not scenario_namespaces.issuperset(self.namespaces):
            raise UsageError(
                f"churn: the scenario has not made all of {', '.join(self.namespaces)}"
            )

    def begin(self) -> None:
        """Have templates there, and every slice as it was written."""
        for item in self._churn.items_of("ResourceClaimTemplate"):
            for namespace in self.namespaces:
                self._try_request(self._attempt.ledger.create, _in_namespace(item, namespace))
        for item in self._churn.items_of("ResourceSlice"):
            self._publish(item)

    def play(self, operations: Sequence[Operation]) -> int:
        """Carry them out; how many of them there was time for.

        Raises:
            Interrupted: the user wants the run to end.
            ApiError: the API server refused what it must accept.
        """
        scope = self._attempt.scope
        deadline = scope.now() + self._churn.time * _SLOW
        for number, operation in enumerate(operations):
            if self._attempt.stop.is_set():
                raise Interrupted
            if scope.now() > deadline:
                return number
            if operation.pause:
                scope.pause(operation.pause)
            self._one(operation)
        return len(operations)

    def end(self) -> None:
        """Delete every pod and every claim in the namespaces of the step."""
        for namespace in self.namespaces:
            for kind in ("Pod", "ResourceClaim"):
                for item in self._churn.items_of(kind):
                    for number in range(self._churn.copies):
                        ref = Ref.of(_number_copy(item, namespace, number))
                        self._try_request(self._attempt.scope.delete, ref, 0)

    def text(self, operation: Operation) -> str:
        """An operation in words."""
        item = self._churn.objects[operation.item]
        if item["kind"] == "ResourceSlice":
            changes = {"without": operation.withdrawn, "tainted": operation.tainted}
            change_texts = [
                f", {word} {', '.join(sorted(who))}" for word, who in changes.items() if who
            ]
            name = item["metadata"]["name"] + "".join(change_texts)
            return f"{operation.action} ResourceSlice {name}"
        obj = self._copy(operation)
        text = f"{operation.action} {obj['kind']} {obj['metadata']['name']}"
        if operation.action == "make" and obj["kind"] == "Pod":
            claims = [entry.get("resourceClaimName") for entry in obj["spec"]["resourceClaims"]]
            text += f" with {', '.join(filter(None, claims))}" if any(claims) else ""
        return f"{text} in {obj['metadata']['namespace']}"

    def _one(self, operation: Operation) -> None:
        scope, item = self._attempt.scope, self._churn.objects[operation.item]
        if operation.action == "publish":
            self._publish(item, operation)
            return
        if operation.action == "remove":
            self._try_request(scope.delete, Ref.of(item))
            return
        obj = self._copy(operation)
        if operation.action == "make":
            self._try_request(self._attempt.ledger.create, obj)
        elif operation.action == "finish":
            self._try_request(
                scope.patch, Ref.of(obj), {"status": {"phase": "Succeeded"}}, "status"
            )
        else:
            grace = {"forceDelete": 0, "delete": GRACE_SECONDS if obj["kind"] == "Pod" else None}
            self._try_request(scope.delete, Ref.of(obj), grace[operation.action])

    def _publish(self, item: Mapping[str, Any], operation: Operation | None = None) -> None:
        changed = copy.deepcopy(dict(item))
        if operation is not None and "devices" in changed["spec"]:
            devices = [
                d for d in changed["spec"]["devices"] if d["name"] not in operation.withdrawn
            ]
            for device in devices:
                if device["name"] in operation.tainted:
                    device["taints"] = [dict(_TAINT)]
            changed["spec"]["devices"] = devices
        if self._attempt.scope.get(Ref.of(item)) is None:
            self._try_request(self._attempt.ledger.create, changed)
        elif "devices" in changed["spec"]:
            patch = {"spec": {"devices": changed["spec"]["devices"]}}
            self._try_request(self._attempt.scope.patch, Ref.of(item), patch)

    def _copy(self, operation: Operation) -> Obj:
        item = self._churn.objects[operation.item]
        obj = _number_copy(item, self.namespaces[operation.namespace], operation.copy)
        if obj["kind"] == "Pod":
            claims = {claim["metadata"]["name"] for claim in self._churn.items_of("ResourceClaim")}
            entries = obj["spec"].get("resourceClaims") or []
            for entry, number in zip(entries, operation.claims, strict=False):
                if entry.get("resourceClaimName") in claims:
                    entry["resourceClaimName"] += f"-{number}"
        return obj

    def _try_request(self, action: Any, *args: Any) -> None:
        """Do it; that it comes too late for what it is about is part of the churn."""
        try:
            action(*args)
        except ApiError as error:
            if error.reason not in _TOO_LATE:
                raise


def _in_namespace(item: Mapping[str, Any], namespace: str) -> Obj:
    return {**copy.deepcopy(dict(item)), "metadata": {**item["metadata"], "namespace": namespace}}


def _number_copy(item: Mapping[str, Any], namespace: str, number: int) -> Obj:
    obj = _in_namespace(item, namespace)
    obj["metadata"]["name"] += f"-{number}"
    return obj
