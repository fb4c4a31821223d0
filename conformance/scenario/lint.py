"""Check one file of any kind that the suite knows: its own documents, and Kubernetes manifests."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from pydantic import BaseModel

from conformance.data import scenarios_dir
from conformance.scenario.loader import is_scenario
from conformance.scenario.manifests import lint_manifests
from conformance.scenario.model import Scenario
from conformance.scenario.profile import DriverProfile
from conformance.scenario.registry import FeatureRegistry, load_registry
from conformance.scenario.validate import InvalidDocumentError, validated
from conformance.scenario.yamlfile import Document, read_documents

OWN_KINDS: Mapping[str, type[BaseModel]] = {
    "DriverProfile": DriverProfile,
    "FeatureRegistry": FeatureRegistry,
    "Scenario": Scenario,
}
"""Kind -> model of the documents that this package knows."""


@dataclass(frozen=True, slots=True)
class LintLine:
    """One thing to mend (``error``) or to know: ``file:line: $.path: what``."""

    text: str
    error: bool = True

    def __str__(self) -> str:
        return self.text


def lint_file(file: Path, models: Mapping[str, type[BaseModel]] = OWN_KINDS) -> list[LintLine]:
    """Everything that is wrong in a file.

    Args:
        file: a YAML file with any number of documents.
        models: kind -> model of the suite's own documents.

    Raises:
        UsageError: the file cannot be read as YAML.
    """
    documents = read_documents(file)
    found = []
    for document in documents:
        if is_scenario(document):
            found += [LintLine(problem) for problem in _own(document, models)]
    manifests = [document for document in documents if not is_scenario(document)]
    found += [LintLine(str(item), item.severity == "error") for item in lint_manifests(manifests)]
    return found


def _own(document: Document, models: Mapping[str, type[BaseModel]]) -> list[str]:
    kind = document.data.get("kind")
    model = models.get(kind)
    if model is None:
        known = ", ".join(sorted(models))
        line = document.line(("kind",))
        return [f"{document.file}:{line}: $.kind: {kind!r} is none of {known}"]
    try:
        checked = validated(model, document)
        if isinstance(checked, Scenario):
            registry = load_registry(scenarios_dir() / "features.yaml")
            registry.check(checked.spec.feature, document)
    except InvalidDocumentError as error:
        return list(error.problems)
    return []
