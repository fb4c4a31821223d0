"""``devices``: which devices containers see, read from inside them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Literal

from pydantic import Field, model_validator

from conformance.scenario.base import PodSelector, Strict
from conformance.scenario.expectations.base import Cluster, Known, Pods, Seen, Timed, lint_seen_by
from conformance.scenario.expectations.container_identity import (
    Device,
    Held,
    allocated,
    held,
    identified,
    is_shareable,
    requested,
    shown,
)
from kube.base.text import counted

Views = dict[str, frozenset[Held]]  # ``pod/container`` -> the devices, or shares, that it sees.


class AllocatedTo(Strict):
    """The devices that a claim's allocation names, all or those of one request."""

    claim: str | None = Field(default=None, description="name of a ResourceClaim")
    pod_claim: str | None = Field(default=None, description="name in the pod's spec.resourceClaims")
    request: str | None = None

    @model_validator(mode="after")
    def _one(self) -> AllocatedTo:
        if (self.claim is None) == (self.pod_claim is None):
            raise ValueError("give claim or podClaim")
        return self

    def devices(self, pod: str, cluster: Cluster) -> frozenset[Device] | None:
        """The driver's devices among them, None if there is no such claim."""
        if self.claim is not None:
            claim = cluster.get("ResourceClaim", self.claim)
        else:
            claim = cluster.claim_of(pod, str(self.pod_claim))
        if claim is None or cluster.profile is None:
            return None
        found = allocated(claim, cluster.profile.driver, [self.request])
        return frozenset(one.device for one in found)


class Devices(Strict):
    """Which devices containers see, read from inside them."""

    seen_by: tuple[str, ...] = Field(default=(), description="containers as pod/container")
    pods: PodSelector | None = Field(
        default=None, description="instead of seenBy: compare within each of these pods"
    )
    containers: tuple[str, ...] = Field(default=(), description="with pods: container names")
    driver: str | None = Field(
        default=None, description="devices of which driver; those of another by ${other.driver}"
    )
    relation: Literal["same", "different"] | None = Field(
        default=None, description="all see the same devices, or no two see a common one"
    )
    count: int | None = Field(default=None, ge=0, description="how many devices each sees")
    allocated_to: AllocatedTo | None = Field(
        default=None, description="each sees exactly these devices"
    )

    @model_validator(mode="after")
    def _complete(self) -> Devices:
        if bool(self.seen_by) == bool(self.pods):
            raise ValueError("give seenBy, or pods with containers")
        if bool(self.pods) != bool(self.containers):
            raise ValueError("pods and containers go together")
        if self.relation is None and self.count is None and self.allocated_to is None:
            raise ValueError("expect a relation, a count or allocatedTo")
        if any(entry.count("/") != 1 for entry in self.seen_by):
            raise ValueError("seenBy has entries of the form pod/container")
        return self


class DevicesExpectation(Timed):
    """Which devices containers see, read from inside them."""

    devices: Devices

    @property
    def waits_for_start(self) -> bool:
        return True

    def describe(self) -> str:
        wanted = self.devices
        if wanted.pods is not None:
            who = f"containers {', '.join(wanted.containers)} of each pod"
        else:
            who = ", ".join(wanted.seen_by)
        parts = []
        if wanted.count is not None:
            of = f" of {wanted.driver}" if wanted.driver else ""
            parts.append(f"{counted(wanted.count, 'device')}{of} each")
        if wanted.relation == "same":
            parts.append("the same devices")
        if wanted.relation == "different":
            parts.append("no device in common")
        if wanted.allocated_to is not None:
            target = wanted.allocated_to
            request = f" request {target.request}" if target.request else ""
            parts.append(f"the devices allocated to {target.claim or target.pod_claim}{request}")
        return f"{who} see {' and '.join(parts)}"

    def evaluate(self, cluster: Cluster) -> Seen:
        wanted = self.devices
        if wanted.driver is not None:
            cluster = cluster.of_driver(wanted.driver)
        groups = [list(wanted.seen_by)]
        if wanted.pods is not None:
            names = [pod["metadata"]["name"] for pod in cluster.pods(wanted.pods)]
            if not names:
                return Seen(False, "no such pods", {"devices": []})
            groups = [[f"{name}/{container}" for container in wanted.containers] for name in names]
        wrong: list[str] = []
        patterns = []
        for group in groups:
            views = _views(group, cluster)
            if isinstance(views, str):
                return Seen(False, views, {"devices": []})
            wrong += self._wrong(views, cluster)
            pattern = _pattern(views, anonymous=wanted.pods is not None)
            # How many there are, where the scenario does not say, is up to the cluster.
            patterns.append(pattern if wanted.count is not None else [one[:1] for one in pattern])
        observed = {"devices": sorted(patterns, key=str)}
        return Seen(not wrong, "; ".join(wrong) or "as described", observed)

    def _wrong(self, views: Views, cluster: Cluster) -> list[str]:
        wanted = self.devices
        wrong = []
        known = [one for seen in views.values() for one in seen if _is_alone(one, cluster)]
        as_described = (
            (wanted.count is None or all(len(seen) == wanted.count for seen in views.values()))
            and (wanted.relation != "same" or len(set(views.values())) == 1)
            and (wanted.relation != "different" or len(known) == len(set(known)))
        )
        if not as_described:
            each = (f"{entry} sees {_names(devices)}" for entry, devices in views.items())
            wrong.append(", ".join(each))
        for entry, seen in views.items():
            if unknown := frozenset(one for one in seen if not one.device.pools):
                wrong.append(f"{entry} shows {_names(unknown)}, which no driver has published")
        if wanted.allocated_to is not None:
            for entry, seen in views.items():
                allocated = wanted.allocated_to.devices(entry.partition("/")[0], cluster)
                if frozenset(one.device for one in seen) != allocated:
                    names = "no claim" if allocated is None else _told(allocated)
                    wrong.append(f"{entry} sees {_names(seen)}, allocated is {names}")
        return wrong

    def lint(self, known: Known) -> None:
        wanted = self.devices
        known.needed(("devices",), "kubelet")
        pods: Pods = wanted.pods or tuple(entry.partition("/")[0] for entry in wanted.seen_by)
        lint_seen_by(known, wanted.seen_by, "devices")
        if wanted.pods is not None and wanted.pods.job is not None:
            known.named(("devices", "pods", "job"), "Job", wanted.pods.job)
        for index, name in enumerate(wanted.containers):
            known.container(("devices", "containers", index), pods, name)
        target = wanted.allocated_to
        if target is None:
            return
        place = ("devices", "allocatedTo")
        if target.claim is not None:
            known.named((*place, "claim"), "ResourceClaim", target.claim)
        else:
            known.pod_claim((*place, "podClaim"), pods, str(target.pod_claim))
        if target.request is not None:
            path = (*place, "request")
            known.request(path, target.request, target.claim, pods, target.pod_claim)

    def placed(self) -> Iterable[tuple[str, int]]:
        for entry in self.devices.seen_by:
            yield entry.partition("/")[0], 1
        if self.devices.pods is not None and self.devices.pods.job is not None:
            yield self.devices.pods.job, 1


def _views(entries: Sequence[str], cluster: Cluster) -> Views | str:
    """What containers see; a reason where that is not known yet."""
    views: Views = {}
    for entry in entries:
        pod, _, container = entry.partition("/")
        view = cluster.observe.container(pod, container)
        if view is None:
            return f"{entry} has shown nothing yet{_why(pod, cluster)}"
        found = cluster.get("Pod", pod)
        if found is None:
            return f"pod {pod} is gone"
        assert cluster.profile is not None, "scenarios with devices run with a driver profile"
        ways = shown(view, found, cluster)
        if len(set(ways.values())) > 1:
            each = (
                f"{', '.join(sorted(seen)) or 'none'} by its {way}" for way, seen in ways.items()
            )
            return f"{entry} shows devices: {'; '.join(each)}"
        requests = cluster.profile.spec.probe.requests(dict(view.environment))
        names = frozenset[str]().union(*ways.values())
        devices = identified(names, found, container, cluster)
        devices |= requested(requests, found, cluster)
        views[entry] = held(devices, found, container, cluster)
    return views


def _why(name: str, cluster: Cluster) -> str:
    pod = cluster.get("Pod", name)
    return f" (pod phase {pod.get('status', {}).get('phase')})" if pod else " (no such pod)"


def _is_alone(one: Held, cluster: Cluster) -> bool:
    """Whether nobody else can rightly have it: it is known which device, and which share, it is."""
    known = len(one.device.pools) == 1
    return known and (bool(one.share) or not is_shareable(one.device, cluster))


def _names(seen: frozenset[Held]) -> str:
    return ", ".join(sorted(f"{one.device}{one.share and ' (a share)'}" for one in seen)) or "none"


def _told(devices: Iterable[Device]) -> str:
    return ", ".join(sorted(map(str, devices))) or "none"


def _pattern(views: Views, *, anonymous: bool) -> list[list[Any]]:
    """How many devices are seen by exactly which containers: the same for any choice of devices."""
    viewers: dict[Held, list[str]] = {}
    for entry, seen in sorted(views.items()):
        for one in seen:
            viewers.setdefault(one, []).append(entry.partition("/")[2] if anonymous else entry)
    groups: dict[tuple[str, ...], int] = {}
    for names in viewers.values():
        groups[tuple(names)] = groups.get(tuple(names), 0) + 1
    return [[list(names), number] for names, number in sorted(groups.items())]
