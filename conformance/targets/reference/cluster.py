"""What all parts of the reference share: one store, one clock, one source of names, one log."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from conformance.targets.base import Obj
from conformance.targets.reference import pods
from conformance.targets.reference.clock import VirtualClock
from conformance.targets.reference.counts import Counts
from conformance.targets.reference.store import (
    Identity,
    Store,
    name_of,
    namespace_of,
    uid_of,
)
from reference_allocator.features import Features
from reference_allocator.rules.taints import apply_taint_rules

_LOG_LINES: Final = 10_000


@dataclass
class Cluster:
    """The state that controllers, scheduler and kubelets work on.

    Attributes:
        features: what the allocator may use, from the Kubernetes version and gates.
        gates: feature gates of this version as they are set.
        minor: of Kubernetes, for example ``1.37``.
        counts: what the components have counted.
        log: namespace and line of what happened lately, for diagnostics.
    """

    clock: VirtualClock
    identity: Identity
    store: Store
    features: Features
    gates: Mapping[str, bool]
    minor: str
    counts: Counts = field(default_factory=Counts)
    log: deque[tuple[str, str]] = field(default_factory=lambda: deque(maxlen=_LOG_LINES))

    def slices(self) -> list[Obj]:
        """All ResourceSlices, with the taints of DeviceTaintRules where there are such rules.

        That is how the scheduler sees them (the slice tracker of
        k8s.io/dynamic-resource-allocation/resourceslice/tracker).
        """
        slices = self.store.all("ResourceSlice")
        rules = self.store.all("DeviceTaintRule")
        if not rules or not self.gates.get("DRADeviceTaintRules"):
            return slices
        return [dict(item) for item in apply_taint_rules(slices, rules)]

    def claims_of(self, pod: Mapping[str, Any]) -> Iterator[tuple[Obj, Obj | None]]:
        """Each entry of ``spec.resourceClaims`` with its claim, None where there is none.

        An entry without a claim name in the pod's status needs no claim, and is left out.
        """
        for entry in pod["spec"].get("resourceClaims") or []:
            name = pods.claim_name(pod, entry)
            if name is None:
                if all(known["name"] != entry["name"] for known in pods.claim_statuses(pod)):
                    yield entry, None
            else:
                yield entry, self.store.get("ResourceClaim", namespace_of(pod), name)

    def extended_claim_of(self, pod: Mapping[str, Any]) -> Obj | None:
        """The claim that the scheduler made for a pod's extended resources, None without one."""
        made = pod["status"].get("extendedResourceClaimStatus")
        if made is None:
            return None
        return self.store.get("ResourceClaim", namespace_of(pod), made["resourceClaimName"])

    def note(self, namespace: str, text: str) -> None:
        """Keep a line for the diagnostics of a namespace, with the virtual time."""
        self.log.append((namespace, f"{self.clock.now:10.3f} {text}"))

    def event(
        self, obj: Mapping[str, Any], level: str, reason: str, message: str, component: str
    ) -> None:
        """Record an Event for a namespaced object; the same one again only counts.

        Args:
            obj: the object that it is about.
            level: ``Normal`` or ``Warning``.
            reason: in CamelCase, for example ``FailedScheduling``.
            message: text.
            component: who says so, for example ``default-scheduler``.
        """
        namespace = namespace_of(obj)
        self.note(namespace, f"{component}: {reason} {obj['kind']} {name_of(obj)}: {message}")
        now = self.clock.timestamp()
        for event in self.store.all("Event", namespace):
            same = event["involvedObject"]["uid"] == uid_of(obj)
            if same and event["reason"] == reason and event["message"] == message:
                self.store.replace({**event, "count": event["count"] + 1, "lastTimestamp": now})
                return
        event_uid = self.identity.uid("Event", namespace, f"{name_of(obj)}/{reason}")
        self.store.add(
            {
                "apiVersion": "v1",
                "kind": "Event",
                "metadata": {
                    "name": f"{name_of(obj)}.{event_uid.replace('-', '')[:16]}",
                    "namespace": namespace,
                },
                "involvedObject": {
                    "apiVersion": obj["apiVersion"],
                    "kind": obj["kind"],
                    "name": name_of(obj),
                    "namespace": namespace,
                    "uid": uid_of(obj),
                },
                "type": level,
                "reason": reason,
                "message": message,
                "count": 1,
                "firstTimestamp": now,
                "lastTimestamp": now,
                "source": {"component": component},
                "reportingComponent": component,
                "reportingInstance": "",
            }
        )


def set_condition(status: Obj, condition: Obj, now: str) -> None:
    """Put a condition into ``status.conditions``; the transition time moves with its status."""
    conditions = status.setdefault("conditions", [])
    for index, present in enumerate(conditions):
        if present["type"] == condition["type"]:
            moved = present["status"] != condition["status"]
            since = now if moved else present.get("lastTransitionTime", now)
            conditions[index] = {**condition, "lastTransitionTime": since}
            return
    conditions.append({**condition, "lastTransitionTime": now})
