"""What the model cannot say of a scenario: names that must be known, manifests that must be right.

All of it is found before anything runs, so that a mistake of the scenario's author is never
reported as a failure of the target.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from conformance.scenario.documents.validate import InvalidDocumentError, hint, validated
from conformance.scenario.documents.yamlfile import (
    Document,
    PathTuple,
    Problem,
    elements,
    mapping,
    walk,
)
from conformance.scenario.expectations.pod import PodExpectation
from conformance.scenario.lint.created_objects import applied
from conformance.scenario.lint.manifests.claims import pod_specs
from conformance.scenario.lint.objects import check_manifests
from conformance.scenario.lint.references import check_references
from conformance.scenario.lint.variables import check_variables, texts
from conformance.scenario.model import Scenario
from conformance.scenario.registry import load_registry
from conformance.scenario.steps import together


def checked_scenario(document: Document) -> Scenario:
    """The scenario in a document without mistakes. Raises InvalidDocumentError."""
    scenario = validated(Scenario, document)
    problems = scenario_problems(scenario, document)
    feature, known = scenario.spec.feature, load_registry().features
    if feature not in known:
        text = f"unknown feature {feature!r}; {hint(feature, known)}"
        problems.insert(0, Problem(("spec", "feature"), text))
    name = scenario.metadata.name
    if document.file.stem != name:
        text = f"is {name!r}, but the file is called {document.file.name}; name it {name}.yaml"
        problems.insert(0, Problem(("metadata", "name"), text))
    if problems:
        told = dict.fromkeys(map(document.tell, problems))  # once for all that are repeated
        raise InvalidDocumentError([*told])
    return scenario


def scenario_problems(scenario: Scenario, document: Document) -> list[Problem]:
    """Everything that is wrong in a scenario that fits the model, by line."""
    too_much = [*check_limits(scenario)]
    if too_much:
        return too_much  # and nothing else is looked at, which could take long
    found = [
        *check_variables(scenario, document.data),
        *check_manifests(scenario),
        *check_references(scenario),
        *check_policies(scenario),
        *_devices(scenario),
    ]
    return sorted(dict.fromkeys(found), key=lambda problem: document.line(problem.path))


def _devices(scenario: Scenario) -> Iterator[Problem]:
    """Are devices required where they are used, so that it is skipped where there are none?"""
    spec = scenario.spec
    if spec.tier == "allocation":
        return
    expected = [item for step in spec.steps for item in step.expect or ()]
    # A pod that is expected to wait may want more than there is.
    waits = any(isinstance(item, PodExpectation) and item.expected_to_wait for item in expected)
    most = max((_of_one_pod(manifest) for _, manifest in applied(scenario)), default=0)
    said = spec.requires.devices_on_one_node + spec.requires.other_devices
    if not waits and most > max(1, said):
        text = f"a pod gets {most} devices, all of one node; say so: {{devicesOnOneNode: {most}}}"
        yield Problem(("spec", "requires", "devicesOnOneNode"), text)
    if spec.requires.devices_in_all:
        return
    for _, manifest in applied(scenario):
        used = [text for _, text in texts(manifest) if "${class." in text]
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


def _of_one_pod(manifest: Any) -> int:
    """The most devices that a pod gets at least, by its claims or by the requests of one."""
    found = [len([*elements(pod.get("resourceClaims"))]) for _, pod in pod_specs(manifest)]
    found += [
        len(requests)
        for path, requests in walk(manifest)
        if path[-2:] == ("devices", "requests") and isinstance(requests, list)
    ]
    return max(found, default=0)


STEPS: Final = 100
OBJECTS: Final = 300
"""That are created by steps; as many as a claim's consumers and what belongs to them."""
EXPECTATIONS: Final = 300
PARALLEL: Final = 32  # Steps that are carried out at the same time: each has a thread of its own.
SECONDS: Final = 900.0  # That pass whatever the target does.


def check_limits(scenario: Scenario) -> Iterator[Problem]:
    """Problems where a scenario goes over one of them."""
    steps = scenario.spec.steps
    groups = together(steps)
    for found, limit, what in (
        (len(steps), STEPS, "steps"),
        (max(map(len, groups)), PARALLEL, "steps that are carried out at the same time"),
        (sum(len(step.apply or ()) for step in steps), OBJECTS, "objects"),
        (sum(len(step.expect or ()) for step in steps), EXPECTATIONS, "expectations"),
        (sum(step.seconds for step in steps), SECONDS, "seconds of wait, consistently and churn"),
    ):
        if found > limit:
            text = f"a scenario has at most {limit:g} {what} (found {found:g})"
            yield Problem(("spec", "steps"), f"{text}; write several scenarios")
    for [index, *others] in groups:
        if steps[index].parallel and not others:
            text = "needs a step with parallel: true directly before or after it"
            yield Problem(("spec", "steps", index, "parallel"), text)


GROUP = "admissionregistration.k8s.io"
POLICY, BINDING = "ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding"
OWN = {"matchLabels": {"kubernetes.io/metadata.name": "${namespace}"}}
"""The only ``namespaceSelector`` that there may be."""


def check_policies(scenario: Scenario) -> Iterator[Problem]:
    """Admission policies must not reach beyond the namespace of their scenario.

    A ``namespaceSelector`` leaves out no object without a namespace, so rules must be for
    namespaced ones, too (admissionregistration/v1, ``MatchResources``).
    """
    for path, manifest in applied(scenario):
        if str(manifest.get("apiVersion", "")).partition("/")[0] == GROUP:
            yield from _object(manifest, path)
    for index, step in enumerate(scenario.spec.steps):
        if step.patch is not None and "Admission" in step.patch.kind:
            text = f"a {step.patch.kind} is not to be changed: apply it as it is to be"
            yield Problem(("spec", "steps", index, "patch", "kind"), text)


def _object(manifest: Mapping[str, Any], path: PathTuple) -> Iterator[Problem]:
    spec, kind = mapping(manifest.get("spec")), manifest.get("kind")
    if kind == POLICY:
        match = mapping(spec.get("matchConstraints"))
        yield from _selector(match, (*path, "spec", "matchConstraints"))
        for index, rule in elements(match.get("resourceRules")):
            if rule.get("scope") != "Namespaced":
                place = (*path, "spec", "matchConstraints", "resourceRules", index, "scope")
                text = "must be Namespaced: what has no namespace is matched in the whole cluster"
                yield Problem(place, text)
    elif kind == BINDING:
        match = mapping(spec.get("matchResources"))
        yield from _selector(match, (*path, "spec", "matchResources"))
    else:
        text = f"a scenario may make {POLICY} and {BINDING} for its own namespace, and no {kind}"
        yield Problem((*path, "kind"), text)


def _selector(match: Mapping[str, Any], path: PathTuple) -> Iterator[Problem]:
    if match.get("namespaceSelector") != OWN:
        text = (
            "must be {matchLabels: {kubernetes.io/metadata.name: ${namespace}}}: a policy is for"
            " the scenario's own namespace alone"
        )
        yield Problem((*path, "namespaceSelector"), text)
