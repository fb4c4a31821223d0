"""Decides who has to leave a device because of a NoExecute taint, when, and by which rule.

Follows claimEvictionTime and podEvictionTime in pkg/controller/devicetainteviction/
device_taint_eviction.go of Kubernetes 1.37.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from kube.slices import results_of
from kube.values import Obj
from kubesim import pods
from kubesim.cluster import Cluster
from kubesim.views import View
from reference_allocator.api import DeviceId, Taint, Toleration
from reference_allocator.gates import MINORS
from reference_allocator.rules.taints import tolerates


@dataclass(frozen=True, slots=True)
class Eviction:
    """A pod has to go at a moment, because of a published taint or of a DeviceTaintRule."""

    when: float
    rule: Obj | None


@dataclass(frozen=True, slots=True)
class Evictor:
    """Tells which pods have to go.

    Attributes:
        cluster: where the pods are.
        published: NoExecute taints that drivers have published, by device.
    """

    cluster: Cluster
    published: Mapping[DeviceId, Sequence[Obj]]
    rules: Sequence[Obj]

    @classmethod
    def for_cluster(cls, cluster: Cluster, published: Mapping[DeviceId, Sequence[Obj]]) -> Evictor:
        """Return the evictor for the rules that there are now, and what drivers have published."""
        with_rules = cluster.gates.get("DRADeviceTaintRules")
        rules = cluster.store.all("DeviceTaintRule") if with_rules else []
        effective = [rule for rule in rules if rule["spec"]["taint"]["effect"] == "NoExecute"]
        return cls(cluster, published, effective)

    def list_evictions(self, pod: Obj) -> Iterator[Eviction]:
        """Yield one for each device of the pod and taint on it that its claims do not tolerate."""
        if not pod["spec"].get("nodeName") or pods.is_deleted(pod):
            return
        # Upstream's controller looks at claims of spec.resourceClaims only (kubernetes#141290).
        named = (claim for _, claim in self.cluster.claims_of(pod))
        for claim in (*named, self.cluster.extended_claim_of(pod)):
            if claim is not None and self.cluster.is_reserved(claim, pod):
                for result in results_of(claim):
                    yield from self._list_device_evictions(result)

    def _list_device_evictions(self, result: Obj) -> Iterator[Eviction]:
        device = DeviceId(result["driver"], result["pool"], result["device"])
        taints: list[tuple[Obj, Obj | None]] = [(t, None) for t in self.published.get(device, ())]
        # A rule also counts for a device that is no longer published.
        taints += [
            (rule["spec"]["taint"], rule) for rule in self.rules if selects_device(rule, device)
        ]
        for taint, rule in taints:
            tolerated_for = _tolerated_for(
                taint, result.get("tolerations") or [], self.cluster.minor
            )
            if tolerated_for is not None:
                added = self.cluster.clock.seconds_of(taint["timeAdded"])
                yield Eviction(added + tolerated_for, rule)


def published_devices(
    cluster: Cluster, of_slices: Sequence[Obj] | None = None
) -> dict[DeviceId, Obj]:
    """Return the devices of the newest generation of each pool, as their drivers publish them.

    ``of_slices``: the ResourceSlices to look for devices in; None: all.
    """
    devices_by_id: dict[DeviceId, Obj] = {}
    newest: dict[tuple[str, str], int] = {}
    slices = cluster.store.all("ResourceSlice")
    for spec in (item["spec"] for item in slices):
        pool = spec["driver"], spec["pool"]["name"]
        newest[pool] = max(newest.get(pool, 0), spec["pool"].get("generation", 0))
    for spec in (item["spec"] for item in (slices if of_slices is None else of_slices)):
        pool = spec["driver"], spec["pool"]["name"]
        if spec["pool"].get("generation", 0) == newest[pool]:
            for device in spec.get("devices") or []:
                devices_by_id[DeviceId(*pool, device["name"])] = device
    return devices_by_id


def published_taints(cluster: Cluster, tainted: View) -> dict[DeviceId, list[Obj]]:
    """Return the NoExecute taints that drivers have published, by device.

    ``tainted``: the slices that have any (`has_evicting_taint`).
    """
    slices = tainted.list_objects()
    devices = published_devices(cluster, slices) if slices else {}
    return {
        device: taints
        for device, body in devices.items()
        if (taints := _list_evicting_taints(body))
    }


def has_evicting_taint(resource_slice: Obj) -> bool:
    """Return whether a device of a ResourceSlice has a NoExecute taint."""
    return any(map(_list_evicting_taints, resource_slice["spec"].get("devices") or ()))


def _list_evicting_taints(device: Obj) -> list[Obj]:
    return [taint for taint in device.get("taints") or () if taint["effect"] == "NoExecute"]


def selects_device(rule: Obj, device: DeviceId) -> bool:
    """Return whether a rule is about a device; one without a selector is about none."""
    selector = rule["spec"].get("deviceSelector")
    if selector is None:
        return False
    return all(selector.get(field) in {None, value} for field, value in device._asdict().items())


def _tolerated_for(taint: Obj, tolerations: list[Obj], minor: str) -> float | None:
    """Return seconds for which a taint is tolerated, None without end.

    Only tolerations whose effect is NoExecute count: an empty effect, which covers every effect
    when devices are allocated, counts here since 1.38 (kubernetes/kubernetes#143376).
    """
    since_1_38 = MINORS.index(minor) >= MINORS.index("1.38")
    effects = {"NoExecute", "", None} if since_1_38 else {"NoExecute"}
    tolerated_seconds: float | None = None
    for toleration in tolerations:
        if toleration.get("effect") not in effects:
            continue
        if not tolerates(Toleration.from_dict(toleration), Taint.from_dict(taint)):
            continue
        seconds = toleration.get("tolerationSeconds")
        if seconds is None:
            return None
        tolerated_seconds = (
            max(seconds, 0)
            if tolerated_seconds is None
            else min(tolerated_seconds, max(seconds, 0))
        )
    return tolerated_seconds or 0.0
