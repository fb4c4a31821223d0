"""Is everything there that manifests refer to, and made only once?

A reference to nothing makes a pod wait for ever, which looks like a failure of the target. The one
right use, a pod that must wait because something is absent, is known by its expectation.
"""

from __future__ import annotations

from collections.abc import Iterator

from conformance.scenario.base import ObjectSelector
from conformance.scenario.documents.validate import find_nearest, hint
from conformance.scenario.documents.yamlfile import PathTuple, Problem, as_mapping, as_text
from conformance.scenario.driver.variables import CAPTURED
from conformance.scenario.expectations.objects import NoneExpectation
from conformance.scenario.expectations.pod import PodExpectation
from conformance.scenario.lint.created_objects import (
    CreatedObjects,
    NameAt,
    collect_created_objects,
    get_name,
    get_namespace,
    list_applied_objects,
)
from conformance.scenario.lint.expectations import check_steps
from conformance.scenario.model import Scenario


def check_references(scenario: Scenario) -> Iterator[Problem]:
    """Yield the problems of names in steps that must be those of something that steps make."""
    created = collect_created_objects(scenario)
    waiting = _list_waiting_pods(scenario)
    yield from _check_pods(created, waiting)
    yield from _check_nodes(created, scenario)
    yield from _check_claims(created)
    yield from _check_classes(created, waiting, scenario)
    yield from _check_created_once(scenario)
    yield from _check_churn(scenario, created)
    yield from check_steps(scenario, created)


def _list_waiting_pods(scenario: Scenario) -> frozenset[str]:
    """Return the pods that are expected to wait at some time."""
    return frozenset(
        expectation.pod
        for step in scenario.spec.steps
        for expectation in step.expect or ()
        if isinstance(expectation, PodExpectation) and expectation.expected_to_wait
    )


def _check_pods(made: CreatedObjects, waiting: frozenset[str]) -> Iterator[Problem]:
    for pod in made.pods:
        may_wait = pod.kind == "Pod" and pod.name in waiting
        for named in pod.claims.values():
            yield from _check_name_exists(
                named, made.list_names(named.kind, pod.namespace), may_wait=may_wait
            )
        for named, pod_claim in pod.requests:
            source = pod.claims.get(pod_claim)
            if source is None:
                continue  # the pod's own mistake, which is found in its manifest
            request_names = made.requests.get((source.kind, pod.namespace, source.name))
            if request_names is not None and named.name not in request_names:
                yield Problem(
                    named.path,
                    f"{source.kind} {source.name} has no request {named.name!r};"
                    f" {hint(named.name, request_names)}",
                )


def _check_nodes(made: CreatedObjects, scenario: Scenario) -> Iterator[Problem]:
    """Report unknown nodes of pods: in the allocation tier there are the scenario's own alone."""
    node_names = made.list_names("Node")
    for pod in made.pods if scenario.spec.tier == "allocation" else ():
        for named in pod.nodes:
            if named.name in scenario.spec.nodes:
                yield Problem(named.path, f"write ${{node.{named.name}}}")
            else:
                yield from _check_name_exists(named, node_names, may_wait=False)


def _check_claims(made: CreatedObjects) -> Iterator[Problem]:
    for named, request_names in made.requests_named_inside:
        if named.name not in request_names:
            yield Problem(
                named.path,
                f"the claim has no request {named.name!r}; {hint(named.name, request_names)}",
            )


def _check_classes(
    made: CreatedObjects, waiting: frozenset[str], scenario: Scenario
) -> Iterator[Problem]:
    """Report unknown DeviceClasses: in the allocation tier there are the scenario's own alone."""
    is_synthetic = scenario.spec.tier == "allocation"
    class_names = made.list_names("DeviceClass")
    for named, (kind, namespace, name) in made.classes:
        if not is_synthetic and "${name." not in named.name:
            continue
        users = [
            pod
            for pod in made.pods
            if pod.namespace == namespace
            and any(
                named_claim.kind == kind and named_claim.name == name
                for named_claim in pod.claims.values()
            )
        ]
        # A claim that no pod uses is only stored.
        if users:
            may_wait = any(pod.kind == "Pod" and pod.name in waiting for pod in users)
            yield from _check_name_exists(named, class_names, may_wait=may_wait)


def _check_name_exists(named: NameAt, names: list[str], *, may_wait: bool) -> Iterator[Problem]:
    if (
        named.name in names
        or f"${{{CAPTURED}." in named.name
        or (may_wait and find_nearest(named.name, names) is None)
    ):
        return
    yield Problem(
        named.path,
        f"no step makes {named.kind} {named.name!r}; {hint(named.name, names)} (if it must be"
        " absent, expect the pod to be pending, and call it unlike any other)",
    )


def _check_created_once(scenario: Scenario) -> Iterator[Problem]:
    """Yield objects that are made while one of the same name is there."""
    steps: dict[tuple[str, str | None, str], int] = {}

    def forget(selector: ObjectSelector) -> None:
        for key in list(steps):
            if selector.kind in {key[0], "Namespace"} and selector.name in {None, key[2]}:
                del steps[key]

    for index, step in enumerate(scenario.spec.steps):
        for position, manifest in enumerate(step.apply or ()):
            key = (as_text(manifest.get("kind")), get_namespace(manifest), get_name(manifest))
            if key[2] and key in steps:
                yield Problem(
                    ("spec", "steps", index, "apply", position, "metadata", "name"),
                    f"{key[0]} {key[2]!r} is made by step {steps[key]} already; delete that first,"
                    " or use another name (steps are counted from 0)",
                )
            steps[key] = index
        for deleted in step.delete or ():
            forget(deleted)
        for expectation in step.expect or ():
            if isinstance(expectation, NoneExpectation):
                forget(expectation.none)


_OWN = "${namespace}"
_OWN_DRIVERS = ("${driver}", "${name.")


def _check_churn(scenario: Scenario, made: CreatedObjects) -> Iterator[Problem]:
    """Yield the problems of namespaces and drivers that churn would disturb."""
    for index, step in enumerate(scenario.spec.steps):
        for position, name in enumerate(step.churn.namespaces if step.churn else ()):
            namespaces = [_OWN, *made.list_names("Namespace")]
            if name not in namespaces:
                problem_path: PathTuple = ("spec", "steps", index, "churn", "namespaces", position)
                yield Problem(
                    problem_path, f"no step makes Namespace {name!r}; {hint(name, namespaces)}"
                )
    for path, manifest in list_applied_objects(scenario):
        if "churn" not in path:
            continue
        if get_namespace(manifest) is not None:
            problem_path = (*path, "metadata", "namespace")
            yield Problem(problem_path, "copies are made in the namespaces of churn; leave it out")
        driver = as_text(as_mapping(manifest.get("spec")).get("driver"))
        if manifest.get("kind") == "ResourceSlice" and not driver.startswith(_OWN_DRIVERS):
            problem_path = (*path, "spec", "driver")
            yield Problem(
                problem_path, f"{driver!r} may be another driver's; write driver: ${{driver}}"
            )
