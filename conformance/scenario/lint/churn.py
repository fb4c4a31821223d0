"""Does churn stay in the scenario's own namespaces, and with its own devices?"""

from __future__ import annotations

from collections.abc import Iterator

from conformance.scenario.documents.near import hint
from conformance.scenario.documents.yamlfile import PathTuple, Problem, mapping, text
from conformance.scenario.lint.made import Made, applied, namespace_of
from conformance.scenario.model import Scenario

_OWN = "${namespace}"
_OWN_DRIVERS = ("${driver}", "${name.")


def check_churn(scenario: Scenario, made: Made) -> Iterator[Problem]:
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
