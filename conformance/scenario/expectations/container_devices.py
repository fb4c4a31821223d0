"""``devices``: which devices containers see, read from inside them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Literal

from pydantic import Field, model_validator

from conformance.scenario.base import PodSelector, Strict
from conformance.scenario.expectations.base import Cluster, Evaluation, Timed, lint_seen_by
from conformance.scenario.expectations.container_identity import (
    Device,
    HeldDevice,
    identify_devices,
    identify_requested_devices,
    is_shareable,
    list_allocated,
    read_shown_names,
    share_devices,
)
from conformance.scenario.lint_context import LintContext, Pods
from kube.base.text import counted

HeldByContainer = dict[
    str, frozenset[HeldDevice]
]  # ``pod/container`` -> the devices, or shares, that it sees.


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

    def list_devices(self, pod: str, cluster: Cluster) -> frozenset[Device] | None:
        """Return the driver's devices among them; None if there is no such claim."""
        if self.claim is not None:
            claim = cluster.get("ResourceClaim", self.claim)
        else:
            claim = cluster.claim_of(pod, str(self.pod_claim))
        if claim is None or cluster.profile is None:
            return None
        held_devices = list_allocated(claim, cluster.profile.driver, [self.request])
        return frozenset(held.device for held in held_devices)


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
        expected = self.devices
        if expected.pods is not None:
            viewers = f"containers {', '.join(expected.containers)} of each pod"
        else:
            viewers = ", ".join(expected.seen_by)
        phrases = []
        if expected.count is not None:
            driver_text = f" of {expected.driver}" if expected.driver else ""
            phrases.append(f"{counted(expected.count, 'device')}{driver_text} each")
        if expected.relation == "same":
            phrases.append("the same devices")
        if expected.relation == "different":
            phrases.append("no device in common")
        if expected.allocated_to is not None:
            target = expected.allocated_to
            request = f" request {target.request}" if target.request else ""
            phrases.append(f"the devices allocated to {target.claim or target.pod_claim}{request}")
        return f"{viewers} see {' and '.join(phrases)}"

    def evaluate(self, cluster: Cluster) -> Evaluation:
        expected = self.devices
        if expected.driver is not None:
            cluster = cluster.of_driver(expected.driver)
        groups = [list(expected.seen_by)]
        if expected.pods is not None:
            names = [pod["metadata"]["name"] for pod in cluster.find_pods(expected.pods)]
            if not names:
                return Evaluation(False, "no such pods", {"devices": []})
            groups = [
                [f"{name}/{container}" for container in expected.containers] for name in names
            ]
        problems: list[str] = []
        patterns = []
        for group in groups:
            views = _read_views(group, cluster)
            if isinstance(views, str):
                return Evaluation(False, views, {"devices": []})
            problems += self._find_problems(views, cluster)
            pattern = _count_by_viewers(views, anonymous=expected.pods is not None)
            # How many there are, where the scenario does not say, is up to the cluster.
            patterns.append(pattern if expected.count is not None else [row[:1] for row in pattern])
        observed = {"devices": sorted(patterns, key=str)}
        return Evaluation(not problems, "; ".join(problems) or "as described", observed)

    def _find_problems(self, views: HeldByContainer, cluster: Cluster) -> list[str]:
        expected = self.devices
        problems = []
        exclusive = [
            held for view in views.values() for held in view if _is_exclusive(held, cluster)
        ]
        as_described = (
            (expected.count is None or all(len(view) == expected.count for view in views.values()))
            and (expected.relation != "same" or len(set(views.values())) == 1)
            and (expected.relation != "different" or len(exclusive) == len(set(exclusive)))
        )
        if not as_described:
            phrases = (f"{entry} sees {_join_held(devices)}" for entry, devices in views.items())
            problems.append(", ".join(phrases))
        for entry, view in views.items():
            if unknown := frozenset(held for held in view if not held.device.pools):
                problems.append(
                    f"{entry} shows {_join_held(unknown)}, which no driver has published"
                )
        if expected.allocated_to is not None:
            for entry, view in views.items():
                allocated = expected.allocated_to.list_devices(entry.partition("/")[0], cluster)
                if frozenset(held.device for held in view) != allocated:
                    names = "no claim" if allocated is None else _join_devices(allocated)
                    problems.append(f"{entry} sees {_join_held(view)}, allocated is {names}")
        return problems

    def lint(self, lint: LintContext) -> None:
        expected = self.devices
        lint.requires(("devices",), "kubelet")
        pods: Pods = expected.pods or tuple(entry.partition("/")[0] for entry in expected.seen_by)
        lint_seen_by(lint, expected.seen_by, "devices")
        if expected.pods is not None and expected.pods.job is not None:
            lint.expects_object(("devices", "pods", "job"), "Job", expected.pods.job)
        for index, name in enumerate(expected.containers):
            lint.expects_container(("devices", "containers", index), pods, name)
        target = expected.allocated_to
        if target is None:
            return
        target_path = ("devices", "allocatedTo")
        if target.claim is not None:
            lint.expects_object((*target_path, "claim"), "ResourceClaim", target.claim)
        else:
            lint.expects_pod_claim((*target_path, "podClaim"), pods, str(target.pod_claim))
        if target.request is not None:
            path = (*target_path, "request")
            lint.expects_request(path, target.request, target.claim, pods, target.pod_claim)

    def list_scheduled_pods(self) -> Iterable[tuple[str, int]]:
        for entry in self.devices.seen_by:
            yield entry.partition("/")[0], 1
        if self.devices.pods is not None and self.devices.pods.job is not None:
            yield self.devices.pods.job, 1


def _read_views(entries: Sequence[str], cluster: Cluster) -> HeldByContainer | str:
    """Return what containers see; a reason if that is not known yet."""
    views: HeldByContainer = {}
    for entry in entries:
        pod, _, container = entry.partition("/")
        view = cluster.observe.container(pod, container)
        if view is None:
            return f"{entry} has shown nothing yet{_describe_phase(pod, cluster)}"
        pod_object = cluster.get("Pod", pod)
        if pod_object is None:
            return f"pod {pod} is gone"
        assert cluster.profile is not None, "scenarios with devices run with a driver profile"
        names_by_way = read_shown_names(view, pod_object, cluster)
        if len(set(names_by_way.values())) > 1:
            phrases = (
                f"{', '.join(sorted(names_shown)) or 'none'} by its {way}"
                for way, names_shown in names_by_way.items()
            )
            return f"{entry} shows devices: {'; '.join(phrases)}"
        requests = cluster.profile.spec.probe.read_requests(dict(view.environment))
        names = frozenset[str]().union(*names_by_way.values())
        devices = identify_devices(names, pod_object, container, cluster)
        devices |= identify_requested_devices(requests, pod_object, cluster)
        views[entry] = share_devices(devices, pod_object, container, cluster)
    return views


def _describe_phase(name: str, cluster: Cluster) -> str:
    pod = cluster.get("Pod", name)
    return f" (pod phase {pod.get('status', {}).get('phase')})" if pod else " (no such pod)"


def _is_exclusive(held: HeldDevice, cluster: Cluster) -> bool:
    """Return whether nobody else can rightly have a device: it, and its share, are identified."""
    is_identified = len(held.device.pools) == 1
    return is_identified and (bool(held.share) or not is_shareable(held.device, cluster))


def _join_held(view: frozenset[HeldDevice]) -> str:
    return (
        ", ".join(sorted(f"{held.device}{held.share and ' (a share)'}" for held in view)) or "none"
    )


def _join_devices(devices: Iterable[Device]) -> str:
    return ", ".join(sorted(map(str, devices))) or "none"


def _count_by_viewers(views: HeldByContainer, *, anonymous: bool) -> list[list[Any]]:
    """Return how many devices exactly which containers see: alike for any choice of devices."""
    viewers: dict[HeldDevice, list[str]] = {}
    for entry, view in sorted(views.items()):
        for held in view:
            viewers.setdefault(held, []).append(entry.partition("/")[2] if anonymous else entry)
    groups: dict[tuple[str, ...], int] = {}
    for names in viewers.values():
        groups[tuple(names)] = groups.get(tuple(names), 0) + 1
    return [[list(names), number] for names, number in sorted(groups.items())]
