"""What all parts of the reference share: one store, one clock, one source of names, one log."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Final

from kube.observations import CREATES, DriverCall, Sample
from kube.values import Obj
from kubesim import pods
from kubesim.clock import VirtualClock
from kubesim.resources import Kind, list_served_kinds
from kubesim.store import Identity, Store, clone, name_of, namespace_of, uid_of
from reference_allocator.features import Features
from reference_allocator.rules.taints import apply_taint_rules

_Series = tuple[str, str, tuple[tuple[str, str], ...]]  # Component, metric, labels.


class Counts:
    """The counters of all components; ``node-1/kubelet`` is that of a node."""

    def __init__(self) -> None:
        self._series: Counter[_Series] = Counter()

    def count(self, component: str, metric: str, **labels: str) -> None:
        self._series[component, metric, tuple(sorted(labels.items()))] += 1

    def count_created_claim(self, component: str, claim: Obj, *, success: bool) -> None:
        """Count a claim that was made for a pod or a PodGroup, or refused.

        The labels are those of getClaimCreateMetricLabels
        (pkg/controller/resourceclaim/controller.go).
        """
        owners = claim["metadata"].get("ownerReferences") or [{"apiVersion": "", "kind": ""}]
        self.count(
            component,
            CREATES,
            status="success" if success else "failure",
            admin_access=admin_access(claim),
            owner_api_group=owners[0]["apiVersion"].rpartition("/")[0],
            owner_api_kind=owners[0]["kind"],
        )

    def forget(self, component: str) -> None:
        """Let the counters of a new process begin at 0."""
        for series in [series for series in self._series if series[0] == component]:
            del self._series[series]

    def list_samples(self, component: str, metric: str) -> list[Sample]:
        """Return the series of a metric; one without an event is not there, as in Go's library."""
        return [
            Sample(dict(labels), float(value))
            for (series_component, name, labels), value in self._series.items()
            if (series_component, name) == (component, metric)
        ]


def admin_access(claim: Obj) -> str:
    """Return ``true`` where some request asks for it; alternatives cannot."""
    requests = (claim["spec"].get("devices") or {}).get("requests") or []
    asks = ((request.get("exactly") or {}).get("adminAccess") for request in requests)
    return str(any(asks)).lower()


_LOG_LINES: Final = 10_000


@dataclass
class Cluster:
    """The state that controllers, scheduler and kubelets work on.

    Attributes:
        features: what the allocator may use, from the Kubernetes version and gates.
        minor: of Kubernetes, for example ``1.37``.
        log: namespace and line of what happened lately, for diagnostics.
        driver_calls: namespace and call, of nodes' own drivers lately.
    """

    clock: VirtualClock
    identity: Identity
    store: Store
    features: Features
    gates: Mapping[str, bool]
    minor: str
    counts: Counts = field(default_factory=Counts)
    log: deque[tuple[str, str]] = field(default_factory=lambda: deque(maxlen=_LOG_LINES))
    driver_calls: deque[tuple[str, DriverCall]] = field(
        default_factory=lambda: deque(maxlen=_LOG_LINES)
    )

    @cached_property
    def served_kinds(self) -> Mapping[str, Kind]:
        """The kinds that the API server serves, by name."""
        return list_served_kinds(self.gates, self.minor)

    def list_slices(self) -> list[Obj]:
        """Return all ResourceSlices, with the taints of DeviceTaintRules if there are any.

        That is how the scheduler sees them (the slice tracker of
        k8s.io/dynamic-resource-allocation/resourceslice/tracker).
        """
        slices = self.store.all("ResourceSlice")
        rules = self.store.all("DeviceTaintRule")
        if not rules or not self.gates.get("DRADeviceTaintRules"):
            return slices
        return [dict(item) for item in apply_taint_rules(slices, rules)]

    def claims_of(self, consumer: Mapping[str, Any]) -> Iterator[tuple[Obj, Obj | None]]:
        """Yield each entry of ``spec.resourceClaims`` with its claim, None where there is none.

        An entry without a claim name in the status needs no claim, and is left out.
        ``consumer``: a pod or a PodGroup.
        """
        for entry in consumer["spec"].get("resourceClaims") or []:
            name = pods.claim_name(consumer, entry)
            if name is None:
                if all(
                    claim_status["name"] != entry["name"]
                    for claim_status in pods.claim_statuses(consumer)
                ):
                    yield entry, None
            else:
                yield entry, self.store.get("ResourceClaim", namespace_of(consumer), name)

    @property
    def has_groups(self) -> bool:
        """Whether there are PodGroups: since 1.37, with ``GenericWorkload``."""
        return "PodGroup" in self.served_kinds

    @property
    def shares_in_groups(self) -> bool:
        """Whether PodGroups have claims (the gate ``DRAWorkloadResourceClaims``)."""
        return self.has_groups and bool(self.gates.get("DRAWorkloadResourceClaims"))

    def may_use(self, pod: Obj, pod_claim: Obj, claim: Obj) -> bool:
        """Return whether the claim of an entry is for the pod, or for its group."""
        return pods.may_use(pod, pod_claim, claim, with_group=self.shares_in_groups)

    def is_reserved(self, claim: Obj, pod: Obj) -> bool:
        """Return whether a claim is reserved for the pod, or for its group."""
        return pods.is_reserved(claim, pod, with_group=self.shares_in_groups)

    def group_of(self, pod: Obj) -> Obj | None:
        """Return the pod's PodGroup; None if it is of none, or there is none of that name."""
        name = pods.group_name(pod)
        return None if name is None else self.store.get("PodGroup", namespace_of(pod), name)

    def consumer_of(self, pod: Obj, pod_claim: Obj) -> Obj:
        """Return for whom the claim of an entry is reserved: the pod, or its group (BindTo)."""
        group = self.group_of(pod) if self.shares_in_groups else None
        return group if group is not None and pods.names_claim_of(pod_claim, group) else pod

    def extended_claim_of(self, pod: Mapping[str, Any]) -> Obj | None:
        """Return the claim that the scheduler made for a pod's extended resources, or None."""
        claim_status = pod["status"].get("extendedResourceClaimStatus")
        if claim_status is None:
            return None
        return self.store.get("ResourceClaim", namespace_of(pod), claim_status["resourceClaimName"])

    def note(self, namespace: str, text: str) -> None:
        """Keep a line for the diagnostics of a namespace, with the virtual time."""
        self.log.append((namespace, f"{self.clock.now:10.3f} {text}"))

    def record_event(
        self, obj: Mapping[str, Any], level: str, reason: str, message: str, component: str
    ) -> None:
        """Record an Event for a namespaced object; the same one again only counts.

        Args:
            level: ``Normal`` or ``Warning``.
            reason: in CamelCase, for example ``FailedScheduling``.
            component: who says so, for example ``default-scheduler``.
        """
        namespace = namespace_of(obj)
        self.note(namespace, f"{component}: {reason} {obj['kind']} {name_of(obj)}: {message}")
        now = self.clock.format_timestamp()
        for event in self.store.all("Event", namespace):
            same = event["involvedObject"]["uid"] == uid_of(obj)
            if same and event["reason"] == reason and event["message"] == message:
                recurrence = {"count": event["count"] + 1, "lastTimestamp": now}
                self.store.replace({**clone(event), **recurrence})
                return
        event_uid = self.identity.generate_uid("Event", namespace, f"{name_of(obj)}/{reason}")
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
