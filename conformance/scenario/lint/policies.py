"""An admission policy must not reach beyond the namespace of the scenario that makes it.

A ``namespaceSelector`` leaves out no object without a namespace, so rules must be for namespaced
ones, too (admissionregistration/v1, ``MatchResources``).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from conformance.scenario.documents.yamlfile import PathTuple, Problem, elements, mapping
from conformance.scenario.lint.made import applied
from conformance.scenario.model import Scenario

GROUP = "admissionregistration.k8s.io"
POLICY, BINDING = "ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding"
OWN = {"matchLabels": {"kubernetes.io/metadata.name": "${namespace}"}}
"""The only ``namespaceSelector`` that there may be."""


def check_policies(scenario: Scenario) -> Iterator[Problem]:
    """Policies that others on the cluster could feel."""
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
