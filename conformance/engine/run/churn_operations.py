"""The operations of one round of churn: what a seed means, and carrying it out.

They depend on the step and the seed alone, never on what the target does. So any of them may come
too late (the pod was evicted, the claim is still in use), and any part of them can be carried out.
They touch the namespaces of their scenario, and nothing else.
"""

from __future__ import annotations

import copy
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any, Final

from conformance.engine.run.context import Context, Interrupted
from conformance.scenario.churn import Churn
from kube.base.errors import UsageError
from kube.errors import ApiError
from kube.values import Obj, Ref

_AT_ONCE: Final = 0.6
"""The part of operations that follow the one before without a pause: races need company."""

_Place = tuple[int, int, int]  # item, namespace, copy


@dataclass(frozen=True, slots=True)
class Operation:
    """One thing to do.

    Attributes:
        pause: seconds before it.
        action: ``make``, ``finish``, ``delete``, ``forceDelete``, ``publish`` or ``remove``.
        item: which of the step's objects.
        claims: of a new pod, for each entry of its ``resourceClaims``: which copy of that claim.
        withdrawn, tainted: names of the devices of a slice that is published.
    """

    pause: float
    action: str
    item: int
    namespace: int = 0
    copy: int = 0
    claims: tuple[int, ...] = ()
    withdrawn: frozenset[str] = frozenset()
    tainted: frozenset[str] = frozenset()


def operations(churn: Churn, seed: int) -> list[Operation]:
    """As many as the step's time and rate allow."""
    dealer = _Dealer(churn, seed)
    return [dealer.draw() for _ in range(max(1, round(churn.time * churn.rate)))]


class _Dealer:
    """Draws operations; knows what those before have made, if all went well."""

    def __init__(self, churn: Churn, seed: int) -> None:
        self._churn = churn
        self._dice = Random(seed)  # noqa: S311 -- to be repeated, not to be secret
        self._there: set[_Place] = set()
        self._ending: set[_Place] = set()
        slices = churn.of_kind("ResourceSlice")
        self._published = set(slices)
        self._withdrawn = dict.fromkeys(slices, frozenset[str]())
        self._tainted = dict.fromkeys(slices, frozenset[str]())
        mix, claims = churn.mix, bool(churn.of_kind("ResourceClaim"))
        self._draws = (self._pod, self._claim, self._presence, self._taint)
        self._weights = (mix.pods, mix.claims * claims, *(
            weight * bool(slices) for weight in (mix.slices, mix.taints)
        ))  # fmt: skip

    def draw(self) -> Operation:
        longest = 2 / self._churn.rate / (1 - _AT_ONCE)
        at_once = self._dice.random() < _AT_ONCE
        pause = 0.0 if at_once else round(self._dice.uniform(0, longest), 3)
        [draw] = self._dice.choices(self._draws, self._weights)
        return draw(pause)

    def _place(self, kind: Any) -> _Place:
        item = self._dice.choice(self._churn.of_kind(kind))
        namespace = self._dice.randrange(max(1, len(self._churn.namespaces)))
        return item, namespace, self._dice.randrange(self._churn.copies)

    def _pod(self, pause: float) -> Operation:
        place = self._place("Pod")
        if place not in self._there:
            self._there.add(place)
            entries = self._churn.objects[place[0]].get("spec", {}).get("resourceClaims") or ()
            claims = tuple(self._dice.randrange(self._churn.copies) for _ in entries)
            return Operation(pause, "make", *place, claims=claims)
        mix = self._churn.mix
        ends = {"finish": mix.finish, "delete": mix.delete, "forceDelete": mix.force_delete}
        [action] = self._dice.choices(list(ends), list(ends.values()))
        if action == "forceDelete" or place in self._ending:
            # One that has ended, or should, is there until somebody deletes it at once.
            self._there.remove(place)
            self._ending.discard(place)
            return Operation(pause, "forceDelete", *place)
        self._ending.add(place)
        return Operation(pause, action, *place)

    def _claim(self, pause: float) -> Operation:
        place = self._place("ResourceClaim")
        action = "delete" if place in self._there else "make"
        self._there ^= {place}
        return Operation(pause, action, *place)

    def _presence(self, pause: float) -> Operation:
        item = self._dice.choice(list(self._withdrawn))
        if item in self._published and self._dice.random() < 1 / 3:
            self._published.remove(item)
            return Operation(pause, "remove", item)
        if item in self._published:
            # The scheduler counts what devices consume that are published: one that goes while it
            # is in use would be the driver's own mistake.
            names = [d["name"] for d in self._devices(item) if "consumesCounters" not in d]
            self._withdrawn[item] = self._some(names, 1 / 3)
        return self._publish(pause, item)

    def _taint(self, pause: float) -> Operation:
        item = self._dice.choice(list(self._tainted))
        self._tainted[item] = self._some([d["name"] for d in self._devices(item)], 1 / 4)
        return self._publish(pause, item)

    def _publish(self, pause: float, item: int) -> Operation:
        self._published.add(item)
        withdrawn, tainted = self._withdrawn[item], self._tainted[item]
        return Operation(pause, "publish", item, withdrawn=withdrawn, tainted=tainted)

    def _some(self, names: list[str], part: float) -> frozenset[str]:
        return frozenset(name for name in names if self._dice.random() < part)

    def _devices(self, item: int) -> list[Any]:
        return self._churn.objects[item].get("spec", {}).get("devices") or []


GRACE_SECONDS: Final = 30
"""Of a pod that is deleted with grace; where no kubelet ends it, it is there until it is forced."""

_TAINT: Final = {"key": "dra-conformance.dev/churn", "effect": "NoSchedule"}

_SLOW: Final = 3.0
"""How many times as long as planned a round may take before the rest of it is left out."""

_TOO_LATE: Final = frozenset({"AlreadyExists", "NotFound", "Conflict"})
"""Reasons of refusals that mean: what an operation is about has become something else meanwhile."""


class Player:
    """Makes and ends what a step's operations say. ``namespaces``: those in which it does so."""

    def __init__(self, churn: Churn, context: Context) -> None:
        """Play in a scenario that has made its namespaces.

        Raises UsageError: a namespace is not the scenario's.
        """
        self._churn = churn
        self._context = context
        self.namespaces = churn.namespaces or (context.scope.namespace,)
        own = {ref.name for ref in context.ledger.made if ref.kind == "Namespace"}
        if not own.issuperset(self.namespaces):
            raise UsageError(
                f"churn: the scenario has not made all of {', '.join(self.namespaces)}"
            )

    def begin(self) -> None:
        """Have templates there, and every slice as it was written."""
        for item in self._churn.items_of("ResourceClaimTemplate"):
            for namespace in self.namespaces:
                self._attempt(self._context.ledger.create, _named(item, namespace))
        for item in self._churn.items_of("ResourceSlice"):
            self._publish(item)

    def play(self, operations: Sequence[Operation]) -> int:
        """Carry them out; how many of them there was time for.

        Raises:
            Interrupted: the user wants the run to end.
            ApiError: the API server refused what it must accept.
        """
        deadline = time.monotonic() + self._churn.time * _SLOW
        for number, operation in enumerate(operations):
            if self._context.stop.is_set():
                raise Interrupted
            if time.monotonic() > deadline:
                return number
            if operation.pause:
                self._context.scope.pause(operation.pause)
            self._one(operation)
        return len(operations)

    def end(self) -> None:
        """Delete every pod and every claim in the namespaces of the step."""
        for namespace in self.namespaces:
            for kind in ("Pod", "ResourceClaim"):
                for item in self._churn.items_of(kind):
                    for number in range(self._churn.copies):
                        ref = Ref.of(_copied(item, namespace, number))
                        self._attempt(self._context.scope.delete, ref, 0)

    def text(self, operation: Operation) -> str:
        """An operation in words."""
        item = self._churn.objects[operation.item]
        if item["kind"] == "ResourceSlice":
            changes = {"without": operation.withdrawn, "tainted": operation.tainted}
            told = [f", {word} {', '.join(sorted(who))}" for word, who in changes.items() if who]
            return f"{operation.action} ResourceSlice {item['metadata']['name']}{''.join(told)}"
        made = self._copy(operation)
        text = f"{operation.action} {made['kind']} {made['metadata']['name']}"
        if operation.action == "make" and made["kind"] == "Pod":
            claims = [entry.get("resourceClaimName") for entry in made["spec"]["resourceClaims"]]
            text += f" with {', '.join(filter(None, claims))}" if any(claims) else ""
        return f"{text} in {made['metadata']['namespace']}"

    def _one(self, operation: Operation) -> None:
        scope, item = self._context.scope, self._churn.objects[operation.item]
        if operation.action == "publish":
            self._publish(item, operation)
            return
        if operation.action == "remove":
            self._attempt(scope.delete, Ref.of(item))
            return
        made = self._copy(operation)
        if operation.action == "make":
            self._attempt(self._context.ledger.create, made)
        elif operation.action == "finish":
            self._attempt(scope.patch, Ref.of(made), {"status": {"phase": "Succeeded"}}, "status")
        else:
            grace = {"forceDelete": 0, "delete": GRACE_SECONDS if made["kind"] == "Pod" else None}
            self._attempt(scope.delete, Ref.of(made), grace[operation.action])

    def _publish(self, item: Mapping[str, Any], operation: Operation | None = None) -> None:
        changed = copy.deepcopy(dict(item))
        if operation is not None and "devices" in changed["spec"]:
            kept = [d for d in changed["spec"]["devices"] if d["name"] not in operation.withdrawn]
            for device in kept:
                if device["name"] in operation.tainted:
                    device["taints"] = [dict(_TAINT)]
            changed["spec"]["devices"] = kept
        if self._context.scope.get(Ref.of(item)) is None:
            self._attempt(self._context.ledger.create, changed)
        elif "devices" in changed["spec"]:
            patch = {"spec": {"devices": changed["spec"]["devices"]}}
            self._attempt(self._context.scope.patch, Ref.of(item), patch)

    def _copy(self, operation: Operation) -> Obj:
        item = self._churn.objects[operation.item]
        made = _copied(item, self.namespaces[operation.namespace], operation.copy)
        if made["kind"] == "Pod":
            claims = {claim["metadata"]["name"] for claim in self._churn.items_of("ResourceClaim")}
            entries = made["spec"].get("resourceClaims") or []
            for entry, number in zip(entries, operation.claims, strict=False):
                if entry.get("resourceClaimName") in claims:
                    entry["resourceClaimName"] += f"-{number}"
        return made

    def _attempt(self, action: Any, *args: Any) -> None:
        """Do it; that it comes too late for what it is about is part of the churn."""
        try:
            action(*args)
        except ApiError as error:
            if error.reason not in _TOO_LATE:
                raise


def _named(item: Mapping[str, Any], namespace: str) -> Obj:
    return {**copy.deepcopy(dict(item)), "metadata": {**item["metadata"], "namespace": namespace}}


def _copied(item: Mapping[str, Any], namespace: str, number: int) -> Obj:
    made = _named(item, namespace)
    made["metadata"]["name"] += f"-{number}"
    return made
