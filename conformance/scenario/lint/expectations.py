"""Do expectations, deletes and patches name what is there by then, and say what they need?"""

from __future__ import annotations

from collections.abc import Sequence

from conformance.scenario.base import ObjectSelector, PodSelector
from conformance.scenario.expectations.base import (
    Condition,
    Container,
    Named,
    Needed,
    Part,
    Path,
    PodClaim,
    Pods,
    Refused,
    Request,
    Selected,
    Use,
)
from conformance.scenario.lint.expressions import condition_problems
from conformance.scenario.lint.made import Made, PodShape
from conformance.scenario.lint.objects import field_problems, kind_problems, refused_problems
from conformance.scenario.model import Scenario
from conformance.scenario.near import hint
from conformance.scenario.yamlfile import Problem

_MADE_BY_STEPS = frozenset(
    {"DeviceTaintRule", "Job", "Pod", "ResourceClaim", "ResourceClaimTemplate"}
)
_MADE_BY_STEPS_WITHOUT_DRIVER = frozenset({"DeviceClass", "Node", "ResourceSlice"})


def check_steps(scenario: Scenario, made: Made) -> list[Problem]:
    """Problems of every expectation, and of what is deleted and patched."""
    problems: list[Problem] = []
    for index, step in enumerate(scenario.spec.steps):
        uses: list[tuple[Path, Use]] = [
            (("delete", position), Selected((), selector))
            for position, selector in enumerate(step.delete or ())
        ]
        if step.patch is not None:
            uses.append((("patch",), Selected((), step.patch)))
            uses.append((("patch",), Part(("patch",), step.patch.patch, step.patch)))
        if step.fault is not None:
            uses.append((("fault",), Needed((), "ability", f"fault:{step.fault.component}")))
        for position, expectation in enumerate(step.expect or ()):
            uses += ((("expect", position), use) for use in expectation.uses())
        for place, use in uses:
            known = _Known(scenario, made, index, ("spec", "steps", index, *place, *use.path))
            known.compare(use)
            problems += known.problems
    return problems


class _Known:
    """What is known at a step, with which a name at ``path`` is compared.

    Args:
        step: its index; only what an earlier step made is there.
    """

    def __init__(self, scenario: Scenario, made: Made, step: int, path: Path) -> None:
        self._spec = scenario.spec
        self._made = made
        self._step = step
        self._path = path
        self.problems: list[Problem] = []
        self._checked = _MADE_BY_STEPS
        if scenario.spec.tier == "allocation":
            self._checked |= _MADE_BY_STEPS_WITHOUT_DRIVER

    def compare(self, use: Use) -> None:
        """Note what is wrong with a name or a need."""
        apis, path = self._spec.requires.apis, self._path
        match use:
            case Named(kind="Node", name=name) if name in self._spec.nodes:
                self._add(f"write ${{node.{name}}}")
            case Named():
                self._there(use.kind, use.name)
            case Selected(selector=one):
                self.problems += kind_problems(one.kind, one.api_version, apis, path)
                self._selected(one, gone=use.gone)
            case Container():
                known = {name for pod in self._pods(use.pods) for name in pod.containers}
                if known and use.name not in known:
                    self._add(f"there is no container {use.name!r}; {hint(use.name, known)}")
            case PodClaim():
                for pod in self._pods(use.pods):
                    self._pod_claim([pod], use.name)
            case Request():
                self._request(use)
            case Condition():
                self.problems += condition_problems(use.cel, use.variable, use.selector, path)
            case Part(selector=one):
                self.problems += field_problems(one.kind, one.api_version, use.value, path)
            case Refused():
                self.problems += refused_problems(use.obj, use.message, apis, path)
            case Needed():
                self._needed(use)

    def _selected(self, selector: ObjectSelector, *, gone: bool) -> None:
        if selector.name is not None:
            self._there(selector.kind, selector.name, "name", gone=gone)
        pods = list(self._made.pods)
        if selector.owned_by is not None and selector.kind in {"Pod", "ResourceClaim"}:
            owner = selector.owned_by
            pods = [pod for pod in pods if pod.name == owner or owner.startswith(f"{pod.name}-")]
            if not pods:
                names = {pod.name for pod in self._made.pods}
                self._add(f"no step makes {owner!r}; {hint(owner, names)}", "ownedBy")
                return
        if selector.pod_claim is not None:
            self._pod_claim(pods, selector.pod_claim, "podClaim")

    def _request(self, use: Request) -> None:
        sources = {("ResourceClaim", use.claim)} if use.claim is not None else set()
        for pod in self._pods(use.pods):
            source = pod.claims.get(use.pod_claim or "")
            if source is not None:
                sources.add((source.kind, source.name))
        keys = [(kind, None, name) for kind, name in sources]
        known = [self._made.requests[key] for key in keys if key in self._made.requests]
        main = {request for requests in known for request in requests if "/" not in request}
        if known and use.name not in main:
            self._add(f"there is no request {use.name!r}; {hint(use.name, main)}")

    def _needed(self, use: Needed) -> None:
        requires = self._spec.requires
        if use.what == "ability" and use.name not in requires.abilities:
            self._add(
                f"not every target can do this; add requires: {{abilities: ['{use.name}']}}"
                f" (spec.requires.abilities: {hint(use.name, requires.abilities)})"
            )
        elif use.what == "config" and use.name not in requires.config:
            self._add(
                f"not every driver profile has the configuration {use.name!r}; add requires:"
                f" {{config: [{use.name}]}} (spec.requires.config:"
                f" {hint(use.name, requires.config)})"
            )
        elif use.what == "kubelet" and self._spec.tier == "allocation":
            self._add(
                "no pod runs in the allocation tier; use tier: node, or expect where it is"
                " scheduled"
            )

    def _add(self, message: str, *field: str) -> None:
        self.problems.append(Problem((*self._path, *field), message))

    def _there(self, kind: str, name: str, *field: str, gone: bool = False) -> None:
        if kind not in self._checked and "${name." not in name:
            return  # It may have been in the cluster before.
        if kind == "Pod" and self._made.pods_called(name):
            step = min(pod.step for pod in self._made.pods_called(name))
        elif (kind, None, name) in self._made.first:
            step = self._made.first[kind, None, name]
        elif (kind, name) not in self._made.rejected:
            says = hint(name, self._made.names(kind))
            self._add(f"no step makes {kind} {name!r}; {says}", *field)
            return
        elif not gone:
            text = f"{kind} {name!r} is expected to be rejected, so it is never there"
            self._add(text, *field)
            return
        else:
            return
        if step >= self._step and not gone:
            text = f"{kind} {name!r} is only made by step {step}, after this one (counted from 0)"
            self._add(text, *field)

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

    def _pod_claim(self, pods: Sequence[PodShape], name: str, *field: str) -> None:
        known = {claim for pod in pods for claim in pod.claims}
        if pods and name not in known:
            says = hint(name, known)
            self._add(f"no pod here has {name!r} in its resourceClaims; {says}", *field)
