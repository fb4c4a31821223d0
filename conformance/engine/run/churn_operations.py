"""The operations of one round of churn: what a seed means.

They depend on the step and the seed alone, never on what the target does. So any of them may come
too late (the pod was evicted, the claim is still in use), and any part of them can be carried out.
They touch the namespaces of their scenario, and nothing else.
"""

from __future__ import annotations

from dataclasses import dataclass
from random import Random
from typing import Any, Final

from conformance.scenario.churn import Churn

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
