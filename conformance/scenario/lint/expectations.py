"""Do expectations, deletes and patches name what is there by then, and say what they need?"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

from conformance.scenario.base import ObjectSelector, PodSelector, ServerSelector
from conformance.scenario.changes import Changes
from conformance.scenario.documents.validate import hint
from conformance.scenario.documents.yamlfile import Problem
from conformance.scenario.driver.variables import CAPTURED
from conformance.scenario.expectations.base import Path, Pods, Timed
from conformance.scenario.lint.made import Made, PodShape, name_of, namespace_of
from conformance.scenario.lint.objects import field_problems, kind_problems, refused_problems
from conformance.scenario.lint.variables import condition_problems
from conformance.scenario.model import Scenario
from conformance.scenario.steps import together
from kube.values import Obj
from reference_allocator.api import schema

_MADE_BY_STEPS = frozenset(
    (
        *("DaemonSet", "Deployment", "DeviceTaintRule", "Job", "Pod"),
        *("ResourceClaim", "ResourceClaimTemplate", "StatefulSet"),
    )
)
_MADE_BY_STEPS_WITHOUT_DRIVER = frozenset({"DeviceClass", "Node", "ResourceSlice"})


def check_steps(scenario: Scenario, made: Made) -> list[Problem]:
    """Problems of every expectation, and of what is deleted and patched."""
    problems: list[Problem] = []
    begin = {index: group[0] for group in together(scenario.spec.steps) for index in group}
    for index, step in enumerate(scenario.spec.steps):
        known = _KnownAt(scenario, made, index, problems, begin[index])
        step.lint(known)
        for name, watched in (step.watch or {}).items():
            known.served(("watch", name), watched)
            if name in known.watches():
                known.wrong(("watch", name), f"an earlier step watches as {name!r} already")
        earlier = [before.name for before in scenario.spec.steps[:index] if before.name]
        if step.name in earlier:
            known.wrong(("name",), f"an earlier step is called {step.name!r} already")
        for position, expectation in enumerate(step.expect or ()):
            below = known.below("expect", position)
            if isinstance(expectation, Timed) and expectation.since is not None:
                below.step(("since",), expectation.since)
            expectation.lint(below)
    return problems


class _KnownAt:
    """What is known at a step (:class:`conformance.scenario.expectations.base.Known`).

    ``step`` is its index, and ``begin`` that of the first step that is carried out at the same
    time.
    """

    def __init__(
        self,
        scenario: Scenario,
        made: Made,
        step: int,
        problems: list[Problem],
        begin: int,
        below: Path = (),
    ) -> None:
        self._scenario = scenario
        self._spec = scenario.spec
        self._made = made
        self._step = step
        self._begin = begin
        self._problems = problems
        self._place: Path = ("spec", "steps", step, *below)
        self._checked = _MADE_BY_STEPS
        if scenario.spec.tier == "allocation":
            self._checked |= _MADE_BY_STEPS_WITHOUT_DRIVER

    def below(self, *path: str | int) -> _KnownAt:
        return _KnownAt(self._scenario, self._made, self._step, self._problems, self._begin, path)

    def step(self, path: Path, name: str) -> None:
        earlier = [step.name for step in self._spec.steps[: self._step] if step.name]
        if name not in earlier:
            self.wrong(path, f"no earlier step is called {name!r}; {hint(name, earlier)}")

    def named(self, path: Path, kind: str, name: str, namespace: str | None = None) -> None:
        if kind == "Node" and name in self._spec.nodes:
            self.wrong(path, f"write ${{node.{name}}}")
        else:
            self._there(path, kind, name, namespace)

    def watches(self) -> dict[str, ServerSelector]:
        """What earlier steps watch, by name."""
        earlier = self._spec.steps[: self._step]
        return {name: item for step in earlier for name, item in (step.watch or {}).items()}

    def watch(self, path: Path, name: str) -> ServerSelector | None:
        watches = self.watches()
        if name not in watches:
            self.wrong(path, f"no earlier step watches as {name!r}; {hint(name, watches)}")
        return watches.get(name)

    def served(self, path: Path, selector: ServerSelector) -> None:
        """The selector's kind, and the version in which it is read."""
        version, apis = selector.api_version, self._spec.requires.apis
        self._problems += kind_problems(selector.kind, version, apis, (*self._place, *path))

    def selected(self, path: Path, selector: ObjectSelector, *, gone: bool = False) -> None:
        self.served(path, selector)
        if selector.name is not None:
            place = (*path, "name")
            self._there(place, selector.kind, selector.name, selector.namespace, gone=gone)
        pods = self._made.pods
        if selector.owned_by is not None and selector.kind in {"Pod", "ResourceClaim"}:
            owner = selector.owned_by
            pods = [pod for pod in pods if pod.name == owner or owner.startswith(f"{pod.name}-")]
            if not pods:
                says = hint(owner, (pod.name for pod in self._made.pods))
                self.wrong((*path, "ownedBy"), f"no step makes {owner!r}; {says}")
                return
        if selector.pod_claim is not None:
            self._pod_claim((*path, "podClaim"), pods, selector.pod_claim)

    def container(self, path: Path, pods: Pods, name: str) -> None:
        known = {name for pod in self._pods(pods) for name in pod.containers}
        if known and name not in known:
            self.wrong(path, f"there is no container {name!r}; {hint(name, known)}")

    def pod_claim(self, path: Path, pods: Pods, name: str) -> None:
        for pod in self._pods(pods):
            self._pod_claim(path, [pod], name)

    def request(
        self,
        path: Path,
        name: str,
        claim: str | None,
        pods: Pods,
        pod_claim: str | None,
        *,
        alternatives: bool = False,
    ) -> None:
        sources = {("ResourceClaim", claim)} if claim is not None else set()
        for pod in self._pods(pods):
            source = pod.claims.get(pod_claim or "")
            if source is not None:
                sources.add((source.kind, source.name))
        keys = [(kind, None, name) for kind, name in sources]
        known = [self._made.requests[key] for key in keys if key in self._made.requests]
        names = {request for requests in known for request in requests}
        with_alternatives = {request.partition("/")[0] for request in names if "/" in request}
        if alternatives:
            names -= with_alternatives
        else:
            names -= {request for request in names if "/" in request}
        if known and name not in names:
            self.wrong(path, f"there is no request {name!r}; {hint(name, names)}")

    def device(self, path: Path, name: str) -> None:
        known = self._made.devices
        if self._spec.tier == "allocation" and name not in known:
            self.wrong(path, f"no ResourceSlice has a device {name!r}; {hint(name, known)}")

    def condition(
        self, path: Path, cel: Sequence[str], variable: str, selector: ObjectSelector
    ) -> None:
        root = schema.root_of(selector.kind, selector.api_version)
        variables = {variable: root if variable == "object" else None, **self._captured()}
        self._problems += condition_problems(cel, variables, (*self._place, *path))

    def relation(self, path: Path, cel: Sequence[str], variables: Sequence[str]) -> None:
        known = {**dict.fromkeys(variables), **self._captured()}
        self._problems += condition_problems(cel, known, (*self._place, *path))

    def _captured(self) -> dict[str, None]:
        earlier = self._spec.steps[: self._step]
        return {name: None for step in earlier for name in step.capture or ()}

    def part(self, path: Path, value: Any, selector: ObjectSelector) -> None:
        place = (*self._place, *path)
        self._problems += field_problems(selector.kind, selector.api_version, value, place)

    def changed(self, path: Path, changes: Changes) -> None:
        accounts = self._spec.accounts
        if changes.account is not None and changes.account not in accounts:
            says = hint(changes.account, accounts, "none; say there what it may do")
            self.wrong((*path, "as"), f"spec.accounts has no {changes.account!r}; {says}")
        if changes.patch is not None:
            place = (*path, "patch")
            self.selected(place, changes.patch)
            if isinstance(changes.patch.patch, dict):
                self.part((*place, "patch"), changes.patch.patch, changes.patch)
        if changes.update is not None:
            self._replaced((*path, "update", "object"), changes.update.object)
        for verb in ("patch", "update"):
            since = getattr(getattr(changes, verb), "unchanged_since", None)
            captured = self._captured()
            if since is not None and since not in captured:
                text = f"no earlier step captures {since!r}; {hint(since, captured)}"
                self.wrong((*path, verb, "unchangedSince"), text)
        ssa = changes.server_side_apply
        if ssa is not None and ssa.subresource is not None:
            self._replaced((*path, "serverSideApply", "object"), ssa.object)
        for verb in ("evict", "bind"):
            wanted = getattr(changes, verb)
            if wanted is not None:
                selector = ObjectSelector(kind="Pod", name=wanted.pod, namespace=wanted.namespace)
                self.selected((*path, verb), selector)

    def _replaced(self, path: Path, obj: Obj) -> None:
        kind, version = obj.get("kind"), obj.get("apiVersion")
        if not isinstance(kind, str) or not isinstance(version, str):
            self.wrong(path, "needs apiVersion and kind")
            return
        selector = ObjectSelector(
            api_version=version, kind=kind, name=name_of(obj), namespace=namespace_of(obj)
        )
        self.selected(path, selector)
        self.part(path, obj, selector)

    def refused(self, path: Path, obj: Obj, message: str | None) -> None:
        apis = self._spec.requires.apis
        self._problems += refused_problems(obj, message, apis, (*self._place, *path))

    def needed(
        self,
        path: Path,
        what: Literal["ability", "config", "gate", "hardware", "kubelet", "trait"],
        name: str = "",
    ) -> None:
        requires = self._spec.requires
        if what == "ability" and name not in requires.abilities:
            self.wrong(
                path,
                f"not every target can do this; add requires: {{abilities: ['{name}']}}"
                f" (spec.requires.abilities: {hint(name, requires.abilities)})",
            )
        elif what == "trait" and name not in requires.traits:
            self.wrong(path, f"not every driver does this; add requires: {{traits: [{name}]}}")
        elif what == "gate" and name not in requires.feature_gates:
            self.wrong(path, f"it may be off already; add requires: {{featureGates: [{name}]}}")
        elif what == "config" and name not in requires.config:
            self.wrong(
                path,
                f"not every driver profile has the configuration {name!r}; add requires:"
                f" {{config: [{name}]}} (spec.requires.config: {hint(name, requires.config)})",
            )
        elif what == "hardware" and self._spec.tier != "device":
            self.wrong(path, "containers show their hardware in the device tier; use tier: device")
        elif what == "kubelet" and self._spec.tier == "allocation":
            self.wrong(
                path,
                "no pod runs in the allocation tier; use tier: node, or expect where it is"
                " scheduled",
            )

    def wrong(self, path: Path, message: str) -> None:
        self._problems.append(Problem((*self._place, *path), message))

    def _there(
        self, path: Path, kind: str, name: str, namespace: str | None = None, *, gone: bool = False
    ) -> None:
        if kind not in self._checked and "${name." not in name:
            return  # It may have been in the cluster before.
        if f"${{{CAPTURED}." in name:
            return  # It is named by what is there.
        keys = [(kind, namespace, name)]
        steps = [self._made.first[key] for key in keys if key in self._made.first]
        if kind == "Pod" and namespace is None:
            steps += (pod.step for pod in self._made.pods_called(name))
        if not steps and (kind, name) not in self._made.rejected:
            says = hint(name, self._made.names(kind, namespace))
            self.wrong(path, f"no step makes {kind} {name!r}; {says}")
        elif not steps and not gone:
            self.wrong(path, f"{kind} {name!r} is expected to be rejected, so it is never there")
        elif not gone and min(steps) >= self._begin:
            when = "after" if min(steps) >= self._step else "at the same time as"
            text = f"is only made by step {min(steps)}, {when} this one (counted from 0)"
            self.wrong(path, f"{kind} {name!r} {text}")

    def _pods(self, pods: Pods) -> list[PodShape]:
        """What is meant at this step: of several pods of one name, the last that was made."""
        if isinstance(pods, PodSelector):
            return [pod for pod in self._made.pods if pods.job in {None, pod.name}]
        found = []
        for name in pods:
            before = [pod for pod in self._made.pods_called(name) if pod.step < self._step]
            last = max((pod.step for pod in before), default=self._step)
            found += [pod for pod in before if pod.step == last]
        return found

    def _pod_claim(self, path: Path, pods: Sequence[PodShape], name: str) -> None:
        known = {claim for pod in pods for claim in pod.claims}
        if pods and name not in known:
            says = hint(name, known)
            self.wrong(path, f"no pod here has {name!r} in its resourceClaims; {says}")
