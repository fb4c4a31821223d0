"""Check one file of any kind that the suite knows: scenario, driver profile, manifest."""

from __future__ import annotations

from pathlib import Path

from conformance.data import scenarios_dir
from conformance.scenario.loader import is_scenario
from conformance.scenario.manifests import lint_manifests
from conformance.scenario.model import Scenario
from conformance.scenario.profile import DriverProfile
from conformance.scenario.registry import FeatureRegistry, load_registry
from conformance.scenario.validate import InvalidDocumentError, validated
from conformance.scenario.yamlfile import Document, read_documents


def lint_file(file: Path) -> list[str]:
    """Everything that is wrong in a file, one ``file:line: path: what`` each.

    Raises:
        UsageError: the file cannot be read as YAML.
    """
    documents = read_documents(file)
    manifests = [document for document in documents if not is_scenario(document)]
    problems = []
    for document in documents:
        if document not in manifests:
            problems += _own(document)
    for finding in lint_manifests(manifests):
        problems.append(str(finding))
    return problems


def _own(document: Document) -> list[str]:
    try:
        match document.data.get("kind"):
            case "DriverProfile":
                validated(DriverProfile, document)
            case "FeatureRegistry":
                validated(FeatureRegistry, document)
            case _:
                scenario = validated(Scenario, document)
                registry = load_registry(scenarios_dir() / "features.yaml")
                registry.check(scenario.spec.feature, document)
    except InvalidDocumentError as error:
        return list(error.problems)
    return []
