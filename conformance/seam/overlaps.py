"""No device is in two claims at one resourceVersion: found in the claims alone, without allocator.

Admin access takes nothing away from others, and a share (``shareID``) is meant to have others
beside it; any other device in ``status.allocation`` is its claim's alone (KEP-4381, KEP-5075).
Allocations are written by the scheduler, so an overlap is never a driver's. Only a scenario may
write one, too (``copyAllocation``); its claim says so, and does not count.

kube-scheduler keeps the devices in use as a set without counts (``allocateddevices.go``): once two
claims have a device, the release of either makes it free for a third. So what happens to a device
until nobody has it any more is one finding, its first overlap, and the others follow from it.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from pydantic import ConfigDict, with_config

from kube.slices import results_of
from kube.store import version_of
from kube.values import Obj, selected_node

_Device = tuple[str, str, str]  # driver, pool, device

COPIED = "dra-conformance.dev/copied-allocation"
"""Annotation of a claim: its allocation is a scenario's."""

MAX_NAMED = 5  # Overlaps that follow from another and are named in its message.


@with_config(ConfigDict(extra="forbid"))
@dataclass(frozen=True, slots=True)
class Overlap:
    """A claim got a device while another had it.

    Attributes:
        claim: ``namespace/name`` of the claim that got it.
        holder: ``namespace/name`` of the claim that had it; the first one, where several had.
        version: the resourceVersion at which both have it.
        namespace: that reports it: of ``claim``; of ``holder`` where only that one is ours.
        follows: what happened to the device before all of its claims were released, oldest first.
    """

    driver: str
    pool: str
    device: str
    claim: str
    holder: str
    version: int
    namespace: str
    follows: tuple[Overlap, ...] = ()

    @property
    def chain(self) -> tuple[Overlap, ...]:
        """This overlap and those that follow from it."""
        return (replace(self, follows=()), *self.follows)

    @property
    def namespaces(self) -> tuple[str, str]:
        """Those of ``claim`` and ``holder``."""
        return self.claim.partition("/")[0], self.holder.partition("/")[0]

    def __str__(self) -> str:
        text = (
            f"kube-scheduler allocated {self.device} of pool {self.pool} to {self.claim} while"
            f" {self.holder} has it (driver {self.driver}, resourceVersion {self.version})"
        )
        if self.follows:
            named = ", ".join(item.claim for item in self.follows[:MAX_NAMED])
            not_named = len(self.follows) - MAX_NAMED
            text += f"; from this follows that it also went to {named}"
            text += f" and {not_named} more" if not_named > 0 else ""
        return text


def overlaps_in(versions: Iterable[tuple[int, str, Mapping[str, Any] | None]]) -> list[Overlap]:
    """The findings in a history of claims.

    ``versions``: resourceVersion, uid of the claim, the claim (None: deleted); in the order of the
    versions. What one list says counts as of one version, releases first.
    """
    claims = ClaimHolders()
    for version, uid, claim in versions:
        claims.take(version, uid, claim)
    return claims.overlaps()


class ClaimHolders:
    """Which claims have which devices, and what overlapped so far. Safe for threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._seen: dict[str, int] = {}  # uid -> newest version
        self._devices: dict[str, frozenset[_Device]] = {}  # uid -> what it has
        self._holders: dict[_Device, dict[str, str]] = {}  # device -> uid -> namespace/name
        self._open: dict[_Device, list[Overlap]] = {}
        self._chains: list[list[Overlap]] = []
        self._ours: set[str] = set()

    def follow(self, namespace: str) -> None:
        """Count a namespace among those that :meth:`touching` is about."""
        with self._lock:
            self._ours.add(namespace)

    def touching(self, namespace: str) -> list[Overlap]:
        """The findings about followed namespaces that are, in any part, about this one."""
        with self._lock:
            ours = frozenset(self._ours)
        overlaps = self.overlaps(ours)
        return [
            item for item in overlaps if any(namespace in link.namespaces for link in item.chain)
        ]

    def take(self, version: int, uid: str, claim: Mapping[str, Any] | None) -> None:
        """Take the state that a claim has since ``version``; older than what is known: ignored."""
        with self._lock:
            self._take(version, uid, claim)

    def take_list(self, version: int, claims: Iterable[Mapping[str, Any]]) -> None:
        """Take all claims there are at ``version``; what happened since the last is not known."""
        listed = {item["metadata"]["uid"]: item for item in claims}
        with self._lock:
            for uid in list(self._devices):
                if version >= self._seen[uid]:
                    self._keep(uid, exclusive_devices(listed.get(uid)))
            for uid, item in listed.items():
                self._take(version, uid, item)

    def hear(self, change: str, obj: Mapping[str, Any]) -> None:
        """Listen to a watch of claims (``kube.informer.Listener``)."""
        if change == "LISTED":
            self.take_list(version_of(obj), obj["items"])
        elif change in ("ADDED", "MODIFIED", "DELETED"):
            claim = None if change == "DELETED" else obj
            self.take(version_of(obj), obj["metadata"]["uid"], claim)

    def overlaps(self, ours: Iterable[str] | None = None) -> list[Overlap]:
        """The findings so far, by their versions.

        ``ours``: namespaces; what touches none of them is left out. None: everything counts.
        """
        mine = None if ours is None else frozenset(ours)
        with self._lock:
            chains = [list(chain) for chain in self._chains]
        found = []
        for chain in chains:
            links = [item for item in chain if mine is None or not mine.isdisjoint(item.namespaces)]
            if links:
                first, *rest = links
                told = first.namespaces[mine is not None and first.namespaces[0] not in mine]
                found.append(replace(first, namespace=told, follows=tuple(rest)))
        return sorted(found, key=lambda item: item.version)

    def _take(self, version: int, uid: str, claim: Mapping[str, Any] | None) -> None:
        if version < self._seen.get(uid, 0):
            return
        self._seen[uid] = version
        now = exclusive_devices(claim)
        self._keep(uid, now)
        devices_before = self._devices.pop(uid, frozenset())
        if claim is None or not now:
            return
        self._devices[uid] = now
        namespace = claim["metadata"].get("namespace", "")
        name = f"{namespace}/{claim['metadata']['name']}"
        for device in sorted(now - devices_before):
            holders = self._holders.setdefault(device, {})
            if holders:
                holder = next(iter(holders.values()))
                if device not in self._open:
                    self._open[device] = []
                    self._chains.append(self._open[device])
                self._open[device].append(Overlap(*device, name, holder, version, namespace))
            holders[uid] = name

    def _keep(self, uid: str, devices: frozenset[_Device]) -> None:
        """Release what a claim has beside these devices."""
        devices_before = self._devices.get(uid, frozenset())
        for device in devices_before - devices:
            holders = self._holders[device]
            del holders[uid]
            if not holders:
                del self._holders[device]
                self._open.pop(device, None)
        if uid in self._devices:
            self._devices[uid] = devices_before & devices


def exclusive_devices(claim: Mapping[str, Any] | None) -> frozenset[_Device]:
    """What a claim has for itself alone: no admin access, no share."""
    if claim is None or is_copied(claim):
        return frozenset()
    return frozenset(
        (result["driver"], result["pool"], result["device"])
        for result in results_of(claim)
        if not result.get("adminAccess") and not result.get("shareID")
    )


def is_copied(claim: Mapping[str, Any]) -> bool:
    """Whether a scenario has written the claim's allocation."""
    return COPIED in ((claim.get("metadata") or {}).get("annotations") or {})


def in_use(claims: Iterable[Obj], driver: str, node: str) -> int:
    """How many claims have devices of a driver on a node and are reserved for somebody.

    An allocation of devices that are local to a node names it (``status.allocation.nodeSelector``,
    k8s.io/dynamic-resource-allocation/structured).
    """
    used = [claim for claim in claims if (claim.get("status") or {}).get("reservedFor")]
    return sum(
        any(result["driver"] == driver for result in results_of(claim))
        and selected_node((claim["status"].get("allocation") or {}).get("nodeSelector")) == node
        for claim in used
    )
