"""What the model cannot say of a scenario: names that must be known, manifests that must be right.

All of it is found before anything runs, so that a mistake of the scenario's author is never
reported as a failure of the target.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from conformance.scenario.documents.near import hint
from conformance.scenario.documents.validate import InvalidDocumentError, validated
from conformance.scenario.documents.yamlfile import Document, Problem, elements, walk
from conformance.scenario.expectations.pod import PodExpectation
from conformance.scenario.lint.limits import check_limits
from conformance.scenario.lint.made import applied
from conformance.scenario.lint.manifests.pods import pod_specs
from conformance.scenario.lint.objects import check_manifests
from conformance.scenario.lint.policies import check_policies
from conformance.scenario.lint.references import check_references
from conformance.scenario.lint.variables import check_variables, texts
from conformance.scenario.model import Scenario
from conformance.scenario.registry import load_behaviours, load_registry


def checked_scenario(document: Document) -> Scenario:
    """The scenario in a document without mistakes. Raises InvalidDocumentError."""
    scenario = validated(Scenario, document)
    problems = scenario_problems(scenario, document)
    feature, known = scenario.spec.feature, load_registry().features
    if feature not in known:
        text = f"unknown feature {feature!r}; {hint(feature, known)}"
        problems.insert(0, Problem(("spec", "feature"), text))
    known_ids = load_behaviours().behaviours
    for index, covered in enumerate(scenario.spec.covers):
        if covered not in known_ids:
            text = f"unknown behaviour {covered!r}; {hint(covered, known_ids)}"
            problems.append(Problem(("spec", "covers", index), text))
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
