"""Is everything there that manifests refer to, and made only once?

A reference to nothing makes a pod wait for ever, which looks like a failure of the target. The one
right use, a pod that must wait because something is absent, is known by its expectation.
"""

from __future__ import annotations

from collections.abc import Iterator

from conformance.scenario.base import ObjectSelector
from conformance.scenario.documents.validate import hint, nearest
from conformance.scenario.documents.yamlfile import PathTuple, Problem, mapping, text
from conformance.scenario.driver.variables import CAPTURED
from conformance.scenario.expectations.objects import NoneExpectation
from conformance.scenario.expectations.pod import PodExpectation
from conformance.scenario.lint.created_objects import (
    Made,
    Named,
    applied,
    made_by,
    name_of,
    namespace_of,
)
from conformance.scenario.lint.expectations import check_steps
from conformance.scenario.model import Scenario


def check_references(scenario: Scenario) -> Iterator[Problem]:
    """Problems of every name in the steps that must be that of something the steps make."""
    made = made_by(scenario)
    waiting = _waiting(scenario)
    yield from _in_pods(made, waiting)
    yield from _nodes(made, scenario)
    yield from _in_claims(made)
    yield from _classes(made, waiting, scenario)
    yield from _twice(scenario)
    yield from _in_churn(scenario, made)
    yield from check_steps(scenario, made)


def _waiting(scenario: Scenario) -> frozenset[str]:
    """The pods that are expected to wait at some time."""
    return frozenset(
        expectation.pod
        for step in scenario.spec.steps
        for expectation in step.expect or ()
        if isinstance(expectation, PodExpectation) and expectation.expected_to_wait
    )


def _in_pods(made: Made, waiting: frozenset[str]) -> Iterator[Problem]:
    for pod in made.pods:
        may_wait = pod.kind == "Pod" and pod.name in waiting
        for named in pod.claims.values():
            yield from _absent(named, made.names(named.kind, pod.namespace), may_wait=may_wait)
        for named, pod_claim in pod.requests:
            source = pod.claims.get(pod_claim)
            if source is None:
                continue  # the pod's own mistake, which is found in its manifest
            known = made.requests.get((source.kind, pod.namespace, source.name))
            if known is not None and named.name not in known:
                yield Problem(
                    named.path,
                    f"{source.kind} {source.name} has no request {named.name!r};"
                    f" {hint(named.name, known)}",
                )


def _nodes(made: Made, scenario: Scenario) -> Iterator[Problem]:
    """Nodes that pods are on: in the allocation tier there are those of the scenario alone."""
    known = made.names("Node")
    for pod in made.pods if scenario.spec.tier == "allocation" else ():
        for named in pod.nodes:
            if named.name in scenario.spec.nodes:
                yield Problem(named.path, f"write ${{node.{named.name}}}")
            else:
                yield from _absent(named, known, may_wait=False)


def _in_claims(made: Made) -> Iterator[Problem]:
    for named, known in made.inside:
        if named.name not in known:
            yield Problem(
                named.path, f"the claim has no request {named.name!r}; {hint(named.name, known)}"
            )


def _classes(made: Made, waiting: frozenset[str], scenario: Scenario) -> Iterator[Problem]:
    """DeviceClasses: the scenario's own, and in the allocation tier there are no others."""
    own = scenario.spec.tier == "allocation"
    known = made.names("DeviceClass")
    for named, (kind, namespace, name) in made.classes:
        if not own and "${name." not in named.name:
            continue
        users = [
            pod
            for pod in made.pods
            if pod.namespace == namespace
            and any(one.kind == kind and one.name == name for one in pod.claims.values())
        ]
        # A claim that no pod uses is only stored.
        if users:
            may_wait = any(pod.kind == "Pod" and pod.name in waiting for pod in users)
            yield from _absent(named, known, may_wait=may_wait)


def _absent(named: Named, known: list[str], *, may_wait: bool) -> Iterator[Problem]:
    if (
        named.name in known
        or f"${{{CAPTURED}." in named.name
        or (may_wait and nearest(named.name, known) is None)
    ):
        return
    yield Problem(
        named.path,
        f"no step makes {named.kind} {named.name!r}; {hint(named.name, known)} (if it must be"
        " absent, expect the pod to be pending, and call it unlike any other)",
    )


def _twice(scenario: Scenario) -> Iterator[Problem]:
    """Objects that are made while one of the same name is there."""
    there: dict[tuple[str, str | None, str], int] = {}

    def forget(selector: ObjectSelector) -> None:
        for key in list(there):
            if selector.kind in {key[0], "Namespace"} and selector.name in {None, key[2]}:
                del there[key]

    for index, step in enumerate(scenario.spec.steps):
        for position, manifest in enumerate(step.apply or ()):
            key = (text(manifest.get("kind")), namespace_of(manifest), name_of(manifest))
            if key[2] and key in there:
                yield Problem(
                    ("spec", "steps", index, "apply", position, "metadata", "name"),
                    f"{key[0]} {key[2]!r} is made by step {there[key]} already; delete that first,"
                    " or use another name (steps are counted from 0)",
                )
            there[key] = index
        for deleted in step.delete or ():
            forget(deleted)
        for expectation in step.expect or ():
            if isinstance(expectation, NoneExpectation):
                forget(expectation.none)


_OWN = "${namespace}"
_OWN_DRIVERS = ("${driver}", "${name.")


def _in_churn(scenario: Scenario, made: Made) -> Iterator[Problem]:
    """Problems of namespaces and drivers that churn would disturb."""
    for index, step in enumerate(scenario.spec.steps):
        for position, name in enumerate(step.churn.namespaces if step.churn else ()):
            known = [_OWN, *made.names("Namespace")]
            if name not in known:
                place: PathTuple = ("spec", "steps", index, "churn", "namespaces", position)
                yield Problem(place, f"no step makes Namespace {name!r}; {hint(name, known)}")
    for path, manifest in applied(scenario):
        if "churn" not in path:
            continue
        if namespace_of(manifest) is not None:
            place = (*path, "metadata", "namespace")
            yield Problem(place, "copies are made in the namespaces of churn; leave it out")
        driver = text(mapping(manifest.get("spec")).get("driver"))
        if manifest.get("kind") == "ResourceSlice" and not driver.startswith(_OWN_DRIVERS):
            place = (*path, "spec", "driver")
            yield Problem(place, f"{driver!r} may be another driver's; write driver: ${{driver}}")
