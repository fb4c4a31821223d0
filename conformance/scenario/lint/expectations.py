"""Do expectations, deletes and patches name what is there by then, and say what they need?"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

from conformance.scenario.base import ObjectSelector, PodSelector, ServerSelector
from conformance.scenario.documents.validate import hint
from conformance.scenario.documents.yamlfile import Problem
from conformance.scenario.driver.variables import CAPTURED
from conformance.scenario.expectations.base import Timed
from conformance.scenario.lint.created_objects import (
    CreatedObjects,
    PodShape,
)
from conformance.scenario.lint.objects import field_problems, kind_problems, refused_problems
from conformance.scenario.lint.variables import condition_problems
from conformance.scenario.lint_context import Path, Pods
from conformance.scenario.model import Scenario
from conformance.scenario.steps import group_parallel_steps
from kube.values import Obj
from reference_allocator.api import schema

_CREATED_BY_STEPS = frozenset(
    (
        *("DaemonSet", "Deployment", "DeviceTaintRule", "Job", "Pod"),
        *("ResourceClaim", "ResourceClaimTemplate", "StatefulSet"),
    )
)
_CREATED_BY_STEPS_WITHOUT_DRIVER = frozenset({"DeviceClass", "Node", "ResourceSlice"})


def check_steps(scenario: Scenario, created: CreatedObjects) -> list[Problem]:
    """Return problems of every expectation, and of what is deleted and patched."""
    problems: list[Problem] = []
    begin = {
        index: group[0] for group in group_parallel_steps(scenario.spec.steps) for index in group
    }
    for index, step in enumerate(scenario.spec.steps):
        step_lint = _StepLint(scenario, created, index, problems, begin[index])
        step.lint(step_lint)
        for name, watched in (step.watch or {}).items():
            step_lint.check_kind(("watch", name), watched)
            if name in step_lint.list_earlier_watches():
                step_lint.report_error(
                    ("watch", name), f"an earlier step watches as {name!r} already"
                )
        earlier = [
            earlier_step.name for earlier_step in scenario.spec.steps[:index] if earlier_step.name
        ]
        if step.name in earlier:
            step_lint.report_error(("name",), f"an earlier step is called {step.name!r} already")
        for position, expectation in enumerate(step.expect or ()):
            below = step_lint.narrow_to("expect", position)
            if isinstance(expectation, Timed) and expectation.since is not None:
                below.expects_step(("since",), expectation.since)
            expectation.lint(below)
    return problems


class _StepLint:
    """What is known at a step (:class:`conformance.scenario.lint_context.LintContext`).

    ``step`` is its index, and ``begin`` that of the first step that is carried out at the same
    time.
    """

    def __init__(
        self,
        scenario: Scenario,
        created: CreatedObjects,
        step: int,
        problems: list[Problem],
        begin: int,
        below: Path = (),
    ) -> None:
        self._scenario = scenario
        self._spec = scenario.spec
        self._created = created
        self._step = step
        self._group_begin = begin
        self._problems = problems
        self._path: Path = ("spec", "steps", step, *below)
        self._kinds_checked = _CREATED_BY_STEPS
        if scenario.spec.tier == "allocation":
            self._kinds_checked |= _CREATED_BY_STEPS_WITHOUT_DRIVER

    def narrow_to(self, *path: str | int) -> _StepLint:
        return _StepLint(
            self._scenario, self._created, self._step, self._problems, self._group_begin, path
        )

    def expects_step(self, path: Path, name: str) -> None:
        earlier = [step.name for step in self._spec.steps[: self._step] if step.name]
        if name not in earlier:
            self.report_error(path, f"no earlier step is called {name!r}; {hint(name, earlier)}")

    def expects_object(
        self, path: Path, kind: str, name: str, namespace: str | None = None
    ) -> None:
        if kind == "Node" and name in self._spec.nodes:
            self.report_error(path, f"write ${{node.{name}}}")
        else:
            self._expects_made(path, kind, name, namespace)

    def expects_account(self, path: Path, name: str) -> None:
        accounts = self._spec.accounts
        if name not in accounts:
            says = hint(name, accounts, "none; say there what it may do")
            self.report_error(path, f"spec.accounts has no {name!r}; {says}")

    def expects_capture(self, path: Path, name: str) -> None:
        captured = self._list_captured()
        if name not in captured:
            text = f"no earlier step captures {name!r}; {hint(name, captured)}"
            self.report_error(path, text)

    def list_earlier_watches(self) -> dict[str, ServerSelector]:
        """Return what earlier steps watch, by name."""
        earlier = self._spec.steps[: self._step]
        return {name: item for step in earlier for name, item in (step.watch or {}).items()}

    def expects_watch(self, path: Path, name: str) -> ServerSelector | None:
        watches = self.list_earlier_watches()
        if name not in watches:
            self.report_error(path, f"no earlier step watches as {name!r}; {hint(name, watches)}")
        return watches.get(name)

    def check_kind(self, path: Path, selector: ServerSelector) -> None:
        """Check the selector's kind, and the version in which it is read."""
        version, apis = selector.api_version, self._spec.requires.apis
        self._problems += kind_problems(selector.kind, version, apis, (*self._path, *path))

    def expects_selection(
        self, path: Path, selector: ObjectSelector, *, gone: bool = False
    ) -> None:
        self.check_kind(path, selector)
        if selector.name is not None:
            name_path = (*path, "name")
            self._expects_made(
                name_path, selector.kind, selector.name, selector.namespace, gone=gone
            )
        pods = self._created.pods
        if selector.owned_by is not None and selector.kind in {"Pod", "ResourceClaim"}:
            owner = selector.owned_by
            if owner in self._created.list_names("PodGroup", selector.namespace):
                return
            pods = [pod for pod in pods if pod.name == owner or owner.startswith(f"{pod.name}-")]
            if not pods:
                says = hint(owner, (pod.name for pod in self._created.pods))
                self.report_error((*path, "ownedBy"), f"no step makes {owner!r}; {says}")
                return
        if selector.pod_claim is not None:
            self._expects_claim_of_pods((*path, "podClaim"), pods, selector.pod_claim)

    def expects_container(self, path: Path, pods: Pods, name: str) -> None:
        names = {name for pod in self._find_pods(pods) for name in pod.containers}
        if names and name not in names:
            self.report_error(path, f"there is no container {name!r}; {hint(name, names)}")

    def expects_pod_claim(self, path: Path, pods: Pods, name: str) -> None:
        for pod in self._find_pods(pods):
            self._expects_claim_of_pods(path, [pod], name)

    def expects_request(
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
        for pod in self._find_pods(pods):
            source = pod.claims.get(pod_claim or "")
            if source is not None:
                sources.add((source.kind, source.name))
        keys = [(kind, None, name) for kind, name in sources]
        request_sets = [
            self._created.requests[key] for key in keys if key in self._created.requests
        ]
        names = {request for requests in request_sets for request in requests}
        with_alternatives = {request.partition("/")[0] for request in names if "/" in request}
        if alternatives:
            names -= with_alternatives
        else:
            names -= {request for request in names if "/" in request}
        if request_sets and name not in names:
            self.report_error(path, f"there is no request {name!r}; {hint(name, names)}")

    def expects_device(self, path: Path, name: str) -> None:
        devices = self._created.devices
        if self._spec.tier == "allocation" and name not in devices:
            self.report_error(
                path, f"no ResourceSlice has a device {name!r}; {hint(name, devices)}"
            )

    def check_condition(
        self, path: Path, cel: Sequence[str], variable: str, selector: ObjectSelector
    ) -> None:
        root = schema.root_of(selector.kind, selector.api_version)
        variables = {variable: root if variable == "object" else None, **self._list_captured()}
        self._problems += condition_problems(cel, variables, (*self._path, *path))

    def check_relation(self, path: Path, cel: Sequence[str], variables: Sequence[str]) -> None:
        types_by_variable = {**dict.fromkeys(variables), **self._list_captured()}
        self._problems += condition_problems(cel, types_by_variable, (*self._path, *path))

    def _list_captured(self) -> dict[str, None]:
        earlier = self._spec.steps[: self._step]
        return {name: None for step in earlier for name in step.capture or ()}

    def check_fields(self, path: Path, value: Any, selector: ObjectSelector) -> None:
        full_path = (*self._path, *path)
        self._problems += field_problems(selector.kind, selector.api_version, value, full_path)

    def check_refused_object(self, path: Path, obj: Obj, message: str | None) -> None:
        apis = self._spec.requires.apis
        self._problems += refused_problems(obj, message, apis, (*self._path, *path))

    def requires(
        self,
        path: Path,
        need: Literal["ability", "config", "gate", "hardware", "kubelet", "trait"],
        name: str = "",
    ) -> None:
        requires = self._spec.requires
        if need == "ability" and name not in requires.abilities:
            self.report_error(
                path,
                f"not every target can do this; add requires: {{abilities: ['{name}']}}"
                f" (spec.requires.abilities: {hint(name, requires.abilities)})",
            )
        elif need == "trait" and name not in requires.traits:
            self.report_error(
                path, f"not every driver does this; add requires: {{traits: [{name}]}}"
            )
        elif need == "gate" and name not in requires.feature_gates:
            self.report_error(
                path, f"it may be off already; add requires: {{featureGates: [{name}]}}"
            )
        elif need == "config" and name not in requires.config:
            self.report_error(
                path,
                f"not every driver profile has the configuration {name!r}; add requires:"
                f" {{config: [{name}]}} (spec.requires.config: {hint(name, requires.config)})",
            )
        elif need == "hardware" and self._spec.tier != "device":
            self.report_error(
                path, "containers show their hardware in the device tier; use tier: device"
            )
        elif need == "kubelet" and self._spec.tier == "allocation":
            self.report_error(
                path,
                "no pod runs in the allocation tier; use tier: node, or expect where it is"
                " scheduled",
            )

    def report_error(self, path: Path, message: str) -> None:
        self._problems.append(Problem((*self._path, *path), message))

    def _expects_made(
        self, path: Path, kind: str, name: str, namespace: str | None = None, *, gone: bool = False
    ) -> None:
        if kind not in self._kinds_checked and "${name." not in name:
            return  # It may have been in the cluster before.
        if f"${{{CAPTURED}." in name:
            return  # It is named by what is there.
        keys = [(kind, namespace, name)]
        steps = [
            self._created.creating_step[key] for key in keys if key in self._created.creating_step
        ]
        if kind == "Pod" and namespace is None:
            steps += (pod.step for pod in self._created.pods_called(name))
        if not steps and (kind, name) not in self._created.rejected:
            suggestion = hint(name, self._created.list_names(kind, namespace))
            self.report_error(path, f"no step makes {kind} {name!r}; {suggestion}")
        elif not steps and not gone:
            self.report_error(
                path, f"{kind} {name!r} is expected to be rejected, so it is never there"
            )
        elif not gone and min(steps) >= self._group_begin:
            when = "after" if min(steps) >= self._step else "at the same time as"
            text = f"is only made by step {min(steps)}, {when} this one (counted from 0)"
            self.report_error(path, f"{kind} {name!r} {text}")

    def _find_pods(self, pods: Pods) -> list[PodShape]:
        """Return the pods meant at this step: of several of one name, the last that was made."""
        if isinstance(pods, PodSelector):
            return [pod for pod in self._created.pods if pods.job in {None, pod.name}]
        pods_meant = []
        for name in pods:
            earlier_pods = [pod for pod in self._created.pods_called(name) if pod.step < self._step]
            last = max((pod.step for pod in earlier_pods), default=self._step)
            pods_meant += [pod for pod in earlier_pods if pod.step == last]
        return pods_meant

    def _expects_claim_of_pods(self, path: Path, pods: Sequence[PodShape], name: str) -> None:
        names = {claim for pod in pods for claim in pod.claims}
        if pods and name not in names:
            says = hint(name, names)
            self.report_error(path, f"no pod here has {name!r} in its resourceClaims; {says}")
