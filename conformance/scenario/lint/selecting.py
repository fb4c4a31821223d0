"""Do the expectations, deletes and patches of a scenario name what is there by then?"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from conformance.scenario.expectations import (
    CdiExpectation,
    Devices,
    DevicesExpectation,
    EnvironmentExpectation,
    EventExpectation,
    Expectation,
    NoneExpectation,
    ObjectExpectation,
    ObjectSelector,
    ObjectsExpectation,
    PodExpectation,
)
from conformance.scenario.lint.claims import Problem
from conformance.scenario.lint.made import Made, PodShape
from conformance.scenario.model import Scenario
from conformance.scenario.near import hint
from conformance.scenario.yamlfile import PathTuple

_MADE_BY_STEPS = frozenset(
    {"DeviceTaintRule", "Job", "Pod", "ResourceClaim", "ResourceClaimTemplate"}
)
_MADE_BY_STEPS_WITHOUT_DRIVER = frozenset({"DeviceClass", "Node", "ResourceSlice"})

_WAITING_REASONS = ("SchedulerError", "SchedulingGated", "Unschedulable")
"""Reasons of the PodScheduled condition that is not true (k8s.io/api/core/v1)."""


def check_steps(scenario: Scenario, made: Made) -> Iterator[Problem]:
    """Problems of every name outside manifests."""
    for index, step in enumerate(scenario.spec.steps):
        looking = _Looking(scenario, made, index)
        place: PathTuple = ("spec", "steps", index)
        for position, selector in enumerate(step.delete or ()):
            yield from looking.selector(selector, (*place, "delete", position))
        if step.patch is not None:
            yield from looking.selector(step.patch, (*place, "patch"))
        for position, expectation in enumerate(step.expect or ()):
            yield from looking.expectation(expectation, (*place, "expect", position))


class _Looking:
    """Looks for names at one step: only what an earlier one made is there."""

    def __init__(self, scenario: Scenario, made: Made, step: int) -> None:
        self.made = made
        self.step = step
        self.nodes = scenario.spec.nodes
        self.checked = _MADE_BY_STEPS
        if scenario.spec.tier == "allocation":
            self.checked |= _MADE_BY_STEPS_WITHOUT_DRIVER

    def expectation(self, wanted: Expectation, path: PathTuple) -> Iterator[Problem]:
        match wanted:
            case PodExpectation():
                yield from self._there("Pod", wanted.pod, (*path, "pod"))
                pending = wanted.pending
                if pending is not None and pending.reason not in _WAITING_REASONS:
                    says = hint(pending.reason, _WAITING_REASONS)
                    text = f"no scheduler says {pending.reason!r}; {says}"
                    yield Problem((*path, "pending", "reason"), text)
                if wanted.node in self.nodes:
                    yield Problem((*path, "node"), f"write ${{node.{wanted.node}}}")
            case ObjectExpectation():
                yield from self.selector(wanted.object, (*path, "object"))
            case ObjectsExpectation():
                yield from self.selector(wanted.objects, (*path, "objects"))
            case NoneExpectation():
                yield from self.selector(wanted.none, (*path, "none"), gone=True)
            case DevicesExpectation():
                yield from self._devices(wanted.devices, (*path, "devices"))
            case EnvironmentExpectation():
                seen_by = wanted.environment.seen_by
                yield from self._seen_by(seen_by, (*path, "environment", "seenBy"))
            case EventExpectation():
                yield from self._there(wanted.event.kind, wanted.event.name, (*path, "event"))
            case CdiExpectation():
                yield from self._there("Pod", wanted.cdi.pod, (*path, "cdi", "pod"))
                pods = self._pods(wanted.cdi.pod)
                yield from _pod_claim(pods, wanted.cdi.claim, (*path, "cdi", "claim"))

    def selector(
        self, wanted: ObjectSelector, path: PathTuple, *, gone: bool = False
    ) -> Iterator[Problem]:
        """Problems of a selector; with ``gone`` what it names may also come later, or never."""
        if wanted.name is not None:
            yield from self._there(wanted.kind, wanted.name, (*path, "name"), gone=gone)
        pods = list(self.made.pods)
        if wanted.owned_by is not None and wanted.kind in {"Pod", "ResourceClaim"}:
            owner = wanted.owned_by
            pods = [pod for pod in pods if pod.name == owner or owner.startswith(f"{pod.name}-")]
            if not pods:
                names = {pod.name for pod in self.made.pods}
                yield Problem((*path, "ownedBy"), f"no step makes {owner!r}; {hint(owner, names)}")
                return
        if wanted.pod_claim is not None:
            yield from _pod_claim(pods, wanted.pod_claim, (*path, "podClaim"))

    def _there(
        self, kind: str, name: str, path: PathTuple, *, gone: bool = False
    ) -> Iterator[Problem]:
        if kind not in self.checked and "${name." not in name:
            return  # It may have been in the cluster before.
        if kind == "Pod" and self.made.pods_called(name):
            step = min(pod.step for pod in self.made.pods_called(name))
        else:
            step = self.made.first.get((kind, None, name), self.step)
            if (kind, None, name) not in self.made.first:
                if not (gone and (kind, name) in self.made.rejected):
                    yield Problem(path, self._unknown(kind, name))
                return
        if step >= self.step and not gone:
            yield Problem(
                path,
                f"{kind} {name!r} is only made by step {step}, after this one (counted from 0)",
            )

    def _pods(self, name: str) -> list[PodShape]:
        """What a name means at this step: of several pods of that name, the last that was made."""
        before = [pod for pod in self.made.pods_called(name) if pod.step < self.step]
        last = max((pod.step for pod in before), default=self.step)
        return [pod for pod in before if pod.step == last]

    def _unknown(self, kind: str, name: str) -> str:
        if (kind, name) in self.made.rejected:
            return f"{kind} {name!r} is expected to be rejected, so it is never there"
        return f"no step makes {kind} {name!r}; {hint(name, self.made.names(kind))}"

    def _devices(self, wanted: Devices, path: PathTuple) -> Iterator[Problem]:
        if wanted.pods is None:
            yield from self._seen_by(wanted.seen_by, (*path, "seenBy"))
            names = [entry.partition("/")[0] for entry in wanted.seen_by]
            pods = [pod for name in names for pod in self._pods(name)]
        else:
            job = wanted.pods.job
            pods = [pod for pod in self.made.pods if job in {None, pod.name}]
            if job is not None:
                yield from self._there("Job", job, (*path, "pods", "job"))
            for index, container in enumerate(wanted.containers):
                yield from _container(pods, container, (*path, "containers", index))
        target = wanted.allocated_to
        if target is None:
            return
        place = (*path, "allocatedTo")
        if target.claim is not None:
            yield from self._there("ResourceClaim", target.claim, (*place, "claim"))
            sources = {("ResourceClaim", None, target.claim)}
        else:
            claim = str(target.pod_claim)
            for pod in pods:
                yield from _pod_claim([pod], claim, (*place, "podClaim"))
            sources = {
                (named.kind, None, named.name)
                for pod in pods
                if (named := pod.claims.get(claim)) is not None
            }
        known = [self.made.requests[key] for key in sources if key in self.made.requests]
        if target.request is not None and known:
            main = {name for requests in known for name in requests if "/" not in name}
            if target.request not in main:
                yield Problem(
                    (*place, "request"),
                    f"there is no request {target.request!r}; {hint(target.request, main)}",
                )

    def _seen_by(self, entries: Iterable[str], path: PathTuple) -> Iterator[Problem]:
        for index, entry in enumerate(entries):
            name, _, container = entry.partition("/")
            yield from self._there("Pod", name, (*path, index))
            yield from _container(self._pods(name), container, (*path, index))


def _container(pods: Iterable[PodShape], name: str, path: PathTuple) -> Iterator[Problem]:
    known = {container for pod in pods for container in pod.containers}
    if known and name not in known:
        yield Problem(path, f"there is no container {name!r}; {hint(name, known)}")


def _pod_claim(pods: Iterable[PodShape], name: str, path: PathTuple) -> Iterator[Problem]:
    shapes = list(pods)
    known = {claim for pod in shapes for claim in pod.claims}
    if shapes and name not in known:
        yield Problem(path, f"no pod here has {name!r} in its resourceClaims; {hint(name, known)}")
