"""Do expectations, deletes and patches name what is there by then, and say what they need?"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from conformance.scenario.base import Obj, ObjectSelector, PodSelector
from conformance.scenario.lint.expressions import condition_problems
from conformance.scenario.lint.made import Made, PodShape
from conformance.scenario.lint.objects import field_problems, kind_problems, refused_problems
from conformance.scenario.model import Scenario
from conformance.scenario.near import hint
from conformance.scenario.yamlfile import PathTuple, Problem

_MADE_BY_STEPS = frozenset(
    {"DeviceTaintRule", "Job", "Pod", "ResourceClaim", "ResourceClaimTemplate"}
)
_MADE_BY_STEPS_WITHOUT_DRIVER = frozenset({"DeviceClass", "Node", "ResourceSlice"})


def check_steps(scenario: Scenario, made: Made) -> list[Problem]:
    """Problems of every expectation, and of what is deleted and patched."""
    problems: list[Problem] = []
    for index, step in enumerate(scenario.spec.steps):

        def noted(*path: str | int, step: int = index) -> Noted:
            return Noted(scenario, made, step, ("spec", "steps", step, *path), problems)

        for position, selector in enumerate(step.delete or ()):
            noted("delete", position).selected(selector)
        if step.patch is not None:
            noted("patch").selected(step.patch)
            noted("patch").fields(step.patch.patch, step.patch, "patch")
        if step.fault is not None:
            noted("fault").ability(f"fault:{step.fault.component}")
        for position, expectation in enumerate(step.expect or ()):
            expectation.references(noted("expect", position))
    return problems


class Noted:
    """What one part of a step refers to (``expectations.base.References``), compared at once.

    Args:
        step: its index; only what an earlier step made is there.
        place: the path of the part.
        problems: where what is wrong is added.
    """

    def __init__(
        self, scenario: Scenario, made: Made, step: int, place: PathTuple, problems: list[Problem]
    ) -> None:
        self._spec = scenario.spec
        self._made = made
        self._step = step
        self._place = place
        self._problems = problems
        self._checked = _MADE_BY_STEPS
        if scenario.spec.tier == "allocation":
            self._checked |= _MADE_BY_STEPS_WITHOUT_DRIVER

    def named(self, kind: str, name: str, *path: str) -> None:
        """See References."""
        if kind == "Node" and name in self._spec.nodes:
            self._add(path, f"write ${{node.{name}}}")
        else:
            self._there(kind, name, path)

    def selected(self, selector: ObjectSelector, *path: str, gone: bool = False) -> None:
        """See References."""
        apis = self._spec.requires.apis
        place = (*self._place, *path)
        self._problems += kind_problems(selector.kind, selector.api_version, apis, place)
        if selector.name is not None:
            self._there(selector.kind, selector.name, (*path, "name"), gone=gone)
        pods = list(self._made.pods)
        if selector.owned_by is not None and selector.kind in {"Pod", "ResourceClaim"}:
            owner = selector.owned_by
            pods = [pod for pod in pods if pod.name == owner or owner.startswith(f"{pod.name}-")]
            if not pods:
                names = {pod.name for pod in self._made.pods}
                self._add((*path, "ownedBy"), f"no step makes {owner!r}; {hint(owner, names)}")
                return
        if selector.pod_claim is not None:
            self._pod_claim(pods, selector.pod_claim, (*path, "podClaim"))

    def containers(self, entries: Sequence[str], *path: str) -> None:
        """See References."""
        for index, entry in enumerate(entries):
            name, _, container = entry.partition("/")
            self._there("Pod", name, (*path, index))
            self._container(self._pods([name]), container, (*path, index))

    def containers_of(self, pods: PodSelector, names: Sequence[str], *path: str) -> None:
        """See References."""
        if pods.job is not None:
            self._there("Job", pods.job, (*path, "pods", "job"))
        for index, name in enumerate(names):
            self._container(self._pods(pods), name, (*path, "containers", index))

    def pod_claim(self, pods: Iterable[str] | PodSelector, name: str, *path: str) -> None:
        """See References."""
        for pod in self._pods(pods):
            self._pod_claim([pod], name, path)

    def request(
        self,
        name: str,
        *path: str,
        claim: str | None = None,
        pods: Iterable[str] | PodSelector = (),
        pod_claim: str | None = None,
    ) -> None:
        """See References."""
        sources = {("ResourceClaim", None, claim)} if claim is not None else set()
        for pod in self._pods(pods):
            source = pod.claims.get(pod_claim or "")
            if source is not None:
                sources.add((source.kind, None, source.name))
        known = [self._made.requests[key] for key in sources if key in self._made.requests]
        main = {request for requests in known for request in requests if "/" not in request}
        if known and name not in main:
            self._add(path, f"there is no request {name!r}; {hint(name, main)}")

    def condition(self, cel: Sequence[str], variable: str, selector: ObjectSelector) -> None:
        """See References."""
        self._problems += condition_problems(cel, variable, selector, (*self._place, "cel"))

    def fields(self, value: Any, selector: ObjectSelector, *path: str) -> None:
        """See References."""
        place = (*self._place, *path)
        self._problems += field_problems(selector.kind, selector.api_version, value, place)

    def refused(self, obj: Obj, why: str | None, *path: str, unread: bool, anyhow: bool) -> None:
        """See References."""
        place = (*self._place, *path)
        if not unread:
            apis = self._spec.requires.apis
            self._problems += refused_problems(obj, why, apis, place, anyhow=anyhow)

    def ability(self, name: str, *path: str) -> None:
        """See References."""
        declared = self._spec.requires.abilities
        if name not in declared:
            self._add(
                path,
                f"not every target can do this; add requires: {{abilities: ['{name}']}}"
                f" (spec.requires.abilities: {hint(name, declared)})",
            )

    def config(self, name: str, *path: str) -> None:
        """See References."""
        declared = self._spec.requires.config
        if name not in declared:
            self._add(
                path,
                f"not every driver profile has the configuration {name!r}; add requires:"
                f" {{config: [{name}]}} (spec.requires.config: {hint(name, declared)})",
            )

    def kubelet(self, *path: str) -> None:
        """See References."""
        if self._spec.tier == "allocation":
            self._add(
                path,
                "no pod runs in the allocation tier; use tier: node, or expect where it is"
                " scheduled",
            )

    def _add(self, path: Sequence[str | int], message: str) -> None:
        self._problems.append(Problem((*self._place, *path), message))

    def _there(self, kind: str, name: str, path: PathTuple, *, gone: bool = False) -> None:
        if kind not in self._checked and "${name." not in name:
            return  # It may have been in the cluster before.
        if kind == "Pod" and self._made.pods_called(name):
            step = min(pod.step for pod in self._made.pods_called(name))
        elif (kind, None, name) in self._made.first:
            step = self._made.first[kind, None, name]
        else:
            if (kind, name) not in self._made.rejected:
                says = hint(name, self._made.names(kind))
                self._add(path, f"no step makes {kind} {name!r}; {says}")
            elif not gone:
                text = f"{kind} {name!r} is expected to be rejected, so it is never there"
                self._add(path, text)
            return
        if step >= self._step and not gone:
            self._add(
                path,
                f"{kind} {name!r} is only made by step {step}, after this one (counted from 0)",
            )

    def _pods(self, pods: Iterable[str] | PodSelector) -> list[PodShape]:
        """What is meant at this step: of several pods of one name, the last that was made."""
        if isinstance(pods, PodSelector):
            return [pod for pod in self._made.pods if pods.job in {None, pod.name}]
        found = []
        for name in pods:
            before = [pod for pod in self._made.pods_called(name) if pod.step < self._step]
            last = max((pod.step for pod in before), default=self._step)
            found += [pod for pod in before if pod.step == last]
        return found

    def _container(self, pods: Iterable[PodShape], name: str, path: PathTuple) -> None:
        known = {container for pod in pods for container in pod.containers}
        if known and name not in known:
            self._add(path, f"there is no container {name!r}; {hint(name, known)}")

    def _pod_claim(self, pods: Sequence[PodShape], name: str, path: PathTuple) -> None:
        known = {claim for pod in pods for claim in pod.claims}
        if pods and name not in known:
            says = hint(name, known)
            self._add(path, f"no pod here has {name!r} in its resourceClaims; {says}")
