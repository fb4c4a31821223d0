"""What holds of pods and claims at each resourceVersion, whatever happens: found without allocator.

Watches are late, so not everything can be demanded of every version:

- a device is in one claim only, but for admin access and shares (``seam.overlaps``); what shares
  consume fits into their device, and what devices consume into the counters of their pool;
- a claim stays reserved for a pod, and so allocated, as long as the pod is bound, has not ended and
  is there: kube-scheduler reserves before it binds, and the resourceclaim controller takes a
  reservation back only from a pod that is done (``isPodDone``) or gone;
- a claim is reserved only for pods that use it, and a pod is bound only when all claims that it
  uses are reserved for it.

That the reservation of a pod that is done is taken back holds at last: the controller comes later.
That it is not given again cannot be demanded: in 1.36 and 1.37 the controller does so as long as
another pod uses the claim (kubernetes#141274).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from conformance.seam.overlaps import overlaps_in
from conformance.seam.watching import Obj, Version
from kube.slices import results_of
from reference_allocator.api.quantity import parse_quantity

Device = tuple[str, str, str]
"""driver, pool, name"""

_Amounts = dict[str, int]
"""Name (a capacity's, or a counter set's and its counter's) -> amount in units of 1e-9."""


@dataclass(frozen=True, slots=True)
class Violation:
    """An invariant that does not hold.

    Attributes:
        rule: ``overlap``, ``capacity``, ``counter``, ``in-use``, ``foreign``, ``reserved``,
            ``prepared`` or ``left``.
        version: the resourceVersion since which; of what is so at last, the newest.
        text: in words.
    """

    rule: str
    version: int
    text: str


@dataclass(slots=True)
class Inventory:
    """What devices have and consume, from ResourceSlices; for each it never changes.

    Attributes:
        capacity: device -> what shares may consume of it.
        consumed: device -> what it takes of counters of its pool.
        counters: driver and pool -> what there is of each counter.
    """

    capacity: dict[Device, _Amounts] = field(default_factory=dict)
    consumed: dict[Device, _Amounts] = field(default_factory=dict)
    counters: dict[tuple[str, str], _Amounts] = field(default_factory=dict)

    @classmethod
    def of(cls, slices: Iterable[Obj]) -> Inventory:
        """The devices that are published."""
        inventory = cls()
        for spec in (item["spec"] for item in slices):
            pool = spec["driver"], spec["pool"]["name"]
            counters = _counters(spec.get("sharedCounters"), "name")
            inventory.counters.setdefault(pool, {}).update(counters)
            for device in spec.get("devices") or ():
                place = (*pool, device["name"])
                capacity = device.get("capacity") or {}
                inventory.capacity[place] = _amounts(
                    {key: capacity[key]["value"] for key in capacity}
                )
                inventory.consumed[place] = _counters(device.get("consumesCounters"), "counterSet")
        return inventory


def violations_in(versions: Sequence[Version], inventory: Inventory) -> Iterator[Violation]:
    """What does not hold, first what came first.

    Args:
        versions: of pods and claims, in the order of the resourceVersions.
        inventory: what devices have.
    """
    claims = {uid for _, uid, state in versions if state and state["kind"] == "ResourceClaim"}
    violations = [
        Violation("overlap", item.version, str(item))
        for item in overlaps_in(version for version in versions if version[1] in claims)
    ]
    walk = _Walk(inventory)
    for version in versions:
        violations += walk.take(*version)
    yield from sorted(violations, key=lambda violation: violation.version)


def lives(pod: Obj) -> bool:
    """A pod that may run: not ended, and not deleted before it got a node (``isPodDone``)."""
    ended = pod["status"].get("phase") in {"Succeeded", "Failed"}
    return not ended and bool(
        pod["spec"].get("nodeName") or "deletionTimestamp" not in pod["metadata"]
    )


def reserved_for_nobody(versions: Sequence[Version]) -> Iterator[Violation]:
    """Reservations of pods that are done which nobody takes back; none, once all is quiet.

    A claim on which such a reservation went and came back (kubernetes#141274) is not judged: its
    controller repeats itself with growing delays, and releases what else there is as late.
    """
    pods: set[str] = set()
    ended_pods: set[str] = set()
    back: set[tuple[str, str]] = set()  # claim, pod
    kept: dict[tuple[str, str], Violation] = {}
    for version, uid, state in versions:
        if uid in pods or (state is not None and state["kind"] == "Pod"):
            pods.add(uid)
            if state is None or not lives(state):
                ended_pods.add(uid)
            continue
        users = {user["uid"]: user["name"] for user in _users(state)}
        for user in [user for claim, user in kept if claim == uid and user not in users]:
            del kept[uid, user]
            back |= {(uid, user)} if user in ended_pods else set()
        for user in [user for user in users if (uid, user) not in back]:
            text = f"claim {_name(state)} is still reserved for pod {users[user]}"
            kept[uid, user] = Violation("reserved", version, text)
    repeated = {claim for claim, _ in back}
    yield from (
        found
        for (claim, user), found in kept.items()
        if user in ended_pods and claim not in repeated
    )


class _Walk:
    """The state at one version after the other."""

    def __init__(self, inventory: Inventory) -> None:
        self._inventory = inventory
        self._pods: dict[str, Obj | None] = {}
        self._claims: dict[str, Obj] = {}

    def take(self, version: int, uid: str, state: Obj | None) -> Iterator[Violation]:
        if uid in self._pods or (state is not None and state["kind"] == "Pod"):
            before, self._pods[uid] = self._pods.get(uid), state
            bound = state is not None and "nodeName" in state["spec"] and lives(state)
            if state is not None and bound and not (before and "nodeName" in before["spec"]):
                yield from (Violation("unreserved", version, text) for text in self._bound(state))
            return
        before = self._claims.pop(uid, None)
        if state is not None:
            self._claims[uid] = state
        for rule, text in [*self._users(before, state), *self._amounts(before, state)]:
            yield Violation(rule, version, text)

    def _bound(self, pod: Obj) -> Iterator[str]:
        """What is missing of a pod that was just bound, unless it was there before we looked."""
        uid, namespace = pod["metadata"]["uid"], pod["metadata"]["namespace"]
        ready = [
            claim
            for claim in self._claims.values()
            if claim["metadata"]["namespace"] == namespace
            and any(user["uid"] == uid for user in _users(claim))
        ]
        named = [
            entry.get("resourceClaimName") for entry in pod["spec"].get("resourceClaims") or ()
        ]
        lacking = set(filter(None, named)) - {claim["metadata"]["name"] for claim in ready}
        if lacking or len(ready) < len(named):
            yield f"pod {_name(pod)} is bound, and not all of its claims are reserved for it"

    def _users(self, before: Obj | None, after: Obj | None) -> Iterator[tuple[str, str]]:
        now = {user["uid"] for user in _users(after)}
        for user in _users(before):
            pod = self._pods.get(user["uid"])
            if user["uid"] not in now and pod and pod["spec"].get("nodeName") and lives(pod):
                yield "in-use", f"claim {_name(before)} is taken from bound pod {_name(pod)}"
        had = {user["uid"] for user in _users(before)}
        for user in _users(after):
            pod = self._pods.get(user["uid"])
            if user["uid"] not in had and pod and not _uses(pod, after):
                yield "foreign", f"pod {_name(pod)} has reserved claim {_name(after)} of others"

    def _amounts(self, before: Obj | None, after: Obj | None) -> Iterator[tuple[str, str]]:
        new = () if results_of(before or {}) else results_of(after or {})
        places = {_place(result) for result in new if not result.get("adminAccess")}
        if not places:
            return
        inventory = self._inventory
        shares: defaultdict[Device, list[_Amounts]] = defaultdict(list)
        used: set[Device] = set()
        for result in (result for claim in self._claims.values() for result in results_of(claim)):
            if not result.get("adminAccess"):
                shares[_place(result)].append(_amounts(result.get("consumedCapacity") or {}))
                used.add(_place(result))
        for place in sorted(places):
            whole = inventory.capacity.get(place, {})
            for name in _exceeded(whole, shares[place]):
                yield "capacity", f"too much {name} of {_text(place)} is used since {_name(after)}"
        for pool in sorted({place[:2] for place in places if inventory.consumed.get(place)}):
            parts = [inventory.consumed.get(place, {}) for place in used if place[:2] == pool]
            for name in _exceeded(inventory.counters[pool], parts):
                yield "counter", f"too much {name} of {_text(pool)} is used since {_name(after)}"


def _exceeded(whole: _Amounts, parts: Iterable[_Amounts]) -> Iterator[str]:
    """The names of which the parts take more than there is."""
    remaining = dict(whole)
    for amounts in parts:
        for name, amount in amounts.items():
            remaining[name] = remaining.get(name, 0) - amount
    yield from (name for name, amount in remaining.items() if amount < 0)


def _counters(sets: Any, key: str) -> _Amounts:
    named = {
        f"{item[key]}/{name}": counter["value"]
        for item in sets or ()
        for name, counter in item["counters"].items()
    }
    return _amounts(named)


def _amounts(given: Mapping[str, Any]) -> _Amounts:
    return {name: parse_quantity(str(value)).nanos for name, value in given.items()}


def _users(claim: Obj | None) -> Sequence[Obj]:
    return (claim["status"].get("reservedFor") or ()) if claim else ()


def _uses(pod: Obj, claim: Obj | None) -> bool:
    """The pod names the claim, or it was made for the pod."""
    meta: Obj = claim["metadata"] if claim else {}
    entries = pod["spec"].get("resourceClaims") or ()
    owners = [owner["uid"] for owner in meta.get("ownerReferences") or ()]
    return pod["metadata"]["uid"] in owners or any(
        entry.get("resourceClaimName") == meta["name"] for entry in entries
    )


def _place(result: Obj) -> Device:
    return result["driver"], result["pool"], result["device"]


def _name(obj: Obj | None) -> str:
    meta: Obj = obj["metadata"] if obj else {}
    return f"{meta.get('namespace')}/{meta.get('name')}"


def _text(place: tuple[str, ...]) -> str:
    return "/".join(place)
