"""What the model cannot say of a scenario: names that must be known, manifests that must be right.

All of it is found before anything runs, so that a mistake of the scenario's author is never
reported as a failure of the target.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from conformance.scenario.documents.validate import InvalidDocumentError, hint, validate_document
from conformance.scenario.documents.yamlfile import (
    Document,
    PathTuple,
    Problem,
    as_mapping,
    list_mappings,
    walk,
)
from conformance.scenario.expectations.pod import PodExpectation
from conformance.scenario.lint.created_objects import list_applied_objects
from conformance.scenario.lint.manifest_claims import pod_specs
from conformance.scenario.lint.objects import check_manifests
from conformance.scenario.lint.references import check_references
from conformance.scenario.lint.variables import check_variables, list_texts
from conformance.scenario.model import Scenario
from conformance.scenario.registry import load_registry
from conformance.scenario.steps import group_parallel_steps


def check_scenario(document: Document) -> Scenario:
    """Return the scenario in a document. Raises InvalidDocumentError if it has mistakes."""
    scenario = validate_document(Scenario, document)
    problems = scenario_problems(scenario, document)
    feature, features = scenario.spec.feature, load_registry().features
    if feature not in features:
        text = f"unknown feature {feature!r}; {hint(feature, features)}"
        problems.insert(0, Problem(("spec", "feature"), text))
    name = scenario.metadata.name
    if document.file.stem != name:
        text = f"is {name!r}, but the file is called {document.file.name}; name it {name}.yaml"
        problems.insert(0, Problem(("metadata", "name"), text))
    if problems:
        lines = dict.fromkeys(map(document.tell, problems))  # once for all that are repeated
        raise InvalidDocumentError([*lines])
    return scenario


def scenario_problems(scenario: Scenario, document: Document) -> list[Problem]:
    """Return everything that is wrong in a scenario that fits the model, by line."""
    too_much = [*check_limits(scenario)]
    if too_much:
        return too_much  # and nothing else is looked at, which could take long
    problems = [
        *check_variables(scenario, document.data),
        *check_manifests(scenario),
        *check_references(scenario),
        *check_policies(scenario),
        *_check_required_devices(scenario),
    ]
    return sorted(dict.fromkeys(problems), key=lambda problem: document.line(problem.path))


def _check_required_devices(scenario: Scenario) -> Iterator[Problem]:
    """Report devices that are used and not required, so that nothing skips it without them."""
    spec = scenario.spec
    if spec.tier == "allocation":
        return
    expected = [item for step in spec.steps for item in step.expect or ()]
    # A pod that is expected to wait may want more than there is.
    waits = any(isinstance(item, PodExpectation) and item.expected_to_wait for item in expected)
    most = max(
        (_count_devices_of_pod(manifest) for _, manifest in list_applied_objects(scenario)),
        default=0,
    )
    required = spec.requires.devices_on_one_node + spec.requires.other_devices
    if not waits and most > max(1, required):
        text = f"a pod gets {most} devices, all of one node; say so: {{devicesOnOneNode: {most}}}"
        yield Problem(("spec", "requires", "devicesOnOneNode"), text)
    if spec.requires.devices_in_all:
        return
    for _, manifest in list_applied_objects(scenario):
        used = [text for _, text in list_texts(manifest) if "${class." in text]
        used += [
            "resourceClaims of a pod" for _, pod in pod_specs(manifest) if pod.get("resourceClaims")
        ]
        if used:
            text = (
                f"the scenario uses devices of the driver ({used[0]}), but requires none; say how"
                " many it needs: requires: {devices: N}"
            )
            yield Problem(("spec", "requires", "devices"), text)
            return


def _count_devices_of_pod(manifest: Any) -> int:
    """Return the most devices that a pod gets at least, by its claims or by the requests of one."""
    counts = [len([*list_mappings(pod.get("resourceClaims"))]) for _, pod in pod_specs(manifest)]
    counts += [
        len(requests)
        for path, requests in walk(manifest)
        if path[-2:] == ("devices", "requests") and isinstance(requests, list)
    ]
    return max(counts, default=0)


STEPS: Final = 100
OBJECTS: Final = 300
"""That are created by steps; as many as a claim's consumers and what belongs to them."""
EXPECTATIONS: Final = 300
PARALLEL: Final = 32  # Steps that are carried out at the same time: each has a thread of its own.
SECONDS: Final = 900.0  # That pass whatever the target does.


def check_limits(scenario: Scenario) -> Iterator[Problem]:
    """Report where a scenario goes over one of these limits."""
    steps = scenario.spec.steps
    groups = group_parallel_steps(steps)
    for number, limit, counted_things in (
        (len(steps), STEPS, "steps"),
        (max(map(len, groups)), PARALLEL, "steps that are carried out at the same time"),
        (sum(len(step.apply or ()) for step in steps), OBJECTS, "objects"),
        (sum(len(step.expect or ()) for step in steps), EXPECTATIONS, "expectations"),
        (sum(step.seconds for step in steps), SECONDS, "seconds of wait, consistently and churn"),
    ):
        if number > limit:
            text = f"a scenario has at most {limit:g} {counted_things} (found {number:g})"
            yield Problem(("spec", "steps"), f"{text}; write several scenarios")
    for [index, *parallel_steps] in groups:
        if steps[index].parallel and not parallel_steps:
            text = "needs a step with parallel: true directly before or after it"
            yield Problem(("spec", "steps", index, "parallel"), text)


GROUP = "admissionregistration.k8s.io"
POLICY, BINDING = "ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding"
OWN = {"matchLabels": {"kubernetes.io/metadata.name": "${namespace}"}}
"""The only ``namespaceSelector`` that there may be."""


def check_policies(scenario: Scenario) -> Iterator[Problem]:
    """Report admission policies that reach beyond the namespace of their scenario.

    A ``namespaceSelector`` leaves out no object without a namespace, so rules must be for
    namespaced ones, too (admissionregistration/v1, ``MatchResources``).
    """
    for path, manifest in list_applied_objects(scenario):
        if str(manifest.get("apiVersion", "")).partition("/")[0] == GROUP:
            yield from _check_policy_object(manifest, path)
    for index, step in enumerate(scenario.spec.steps):
        if step.patch is not None and "Admission" in step.patch.kind:
            text = f"a {step.patch.kind} is not to be changed: apply it as it is to be"
            yield Problem(("spec", "steps", index, "patch", "kind"), text)


def _check_policy_object(manifest: Mapping[str, Any], path: PathTuple) -> Iterator[Problem]:
    spec, kind = as_mapping(manifest.get("spec")), manifest.get("kind")
    if kind == POLICY:
        match = as_mapping(spec.get("matchConstraints"))
        yield from _check_namespace_selector(match, (*path, "spec", "matchConstraints"))
        for index, rule in list_mappings(match.get("resourceRules")):
            if rule.get("scope") != "Namespaced":
                scope_path = (*path, "spec", "matchConstraints", "resourceRules", index, "scope")
                text = "must be Namespaced: what has no namespace is matched in the whole cluster"
                yield Problem(scope_path, text)
    elif kind == BINDING:
        match = as_mapping(spec.get("matchResources"))
        yield from _check_namespace_selector(match, (*path, "spec", "matchResources"))
    else:
        text = f"a scenario may make {POLICY} and {BINDING} for its own namespace, and no {kind}"
        yield Problem((*path, "kind"), text)


def _check_namespace_selector(match: Mapping[str, Any], path: PathTuple) -> Iterator[Problem]:
    if match.get("namespaceSelector") != OWN:
        text = (
            "must be {matchLabels: {kubernetes.io/metadata.name: ${namespace}}}: a policy is for"
            " the scenario's own namespace alone"
        )
        yield Problem((*path, "namespaceSelector"), text)
