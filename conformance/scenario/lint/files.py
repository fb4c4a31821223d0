"""Check one file of any kind that the suite knows: its own documents, and Kubernetes manifests."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from pydantic import BaseModel

from conformance.data import scenarios_dir
from conformance.scenario.documents.validate import InvalidDocumentError, is_own, validated
from conformance.scenario.documents.yamlfile import Document, Problem
from conformance.scenario.driver.profile import DriverProfile, load_profile
from conformance.scenario.lint.objects import standalone_problems
from conformance.scenario.lint.profiles import check_profile_names, profile_problems
from conformance.scenario.lint.scenarios import checked_scenario
from conformance.scenario.model import Scenario
from conformance.scenario.registry import BehaviourList, FeatureRegistry, KnownIssues, ManifestSet
from conformance.scenario.shape import ClusterShape
from conformance.scenario.short.expand import expanded

OWN_KINDS: Mapping[str, type[BaseModel]] = {
    "BehaviourList": BehaviourList,
    "ClusterShape": ClusterShape,
    "DriverProfile": DriverProfile,
    "FeatureRegistry": FeatureRegistry,
    "KnownIssues": KnownIssues,
    "ManifestSet": ManifestSet,
    "Scenario": Scenario,
}
"""Kind -> model of the documents that this package knows."""

Check = Callable[[Any], Iterable[Problem]]
"""What a model alone does not find in a valid document of its kind."""

OWN_CHECKS: Mapping[str, Check] = {"DriverProfile": profile_problems}


@dataclass(frozen=True, slots=True)
class LintLine:
    """One thing to mend (``error``) or to know: ``file:line: $.path: what``."""

    text: str
    error: bool = True


def lint_documents(
    documents: Sequence[Document],
    models: Mapping[str, type[BaseModel]] = OWN_KINDS,
    driver: DriverProfile | None = None,
    checks: Mapping[str, Check] = OWN_CHECKS,
) -> list[LintLine]:
    """Everything that is wrong in a file.

    ``driver`` is the profile that scenarios are to run with; None is any that is shipped.
    """
    found = []
    own = [document for document in documents if is_own(document)]
    if len(documents) > 1 and any(item.data.get("kind") == "Scenario" for item in own):
        where = f"{documents[1].file}:{documents[1].line(())}"
        text = f"{where}: has {len(documents)} documents; one file holds one scenario"
        found.append(LintLine(text))
    for document in own:
        found += _own(document, models, driver, checks)
    for document in documents:
        if not is_own(document):
            found += _told(document, standalone_problems(document.data))
    return found


def _told(document: Document, problems: Iterable[Problem]) -> list[LintLine]:
    """Problems of a document by line."""
    ordered = sorted(problems, key=lambda problem: document.line(problem.path))
    return [LintLine(document.tell(item), item.severity == "error") for item in ordered]


def _own(
    document: Document,
    models: Mapping[str, type[BaseModel]],
    driver: DriverProfile | None,
    checks: Mapping[str, Check],
) -> list[LintLine]:
    kind = document.data.get("kind")
    model = models.get(kind) if isinstance(kind, str) else None
    if model is None:
        known = ", ".join(sorted(models))
        line = document.line(("kind",))
        return [
            LintLine(f"{document.file}:{line}: $.kind: must be one of {known} (found {kind!r})")
        ]
    try:
        if model is not Scenario:
            valid = validated(model, document)
            return _told(document, checks[kind](valid) if kind in checks else ())
        document = expanded(document)
        scenario = checked_scenario(document)
    except InvalidDocumentError as error:
        return [LintLine(problem) for problem in error.problems]
    if scenario.spec.tier == "allocation":
        return []
    profiles = _profiles() if driver is None else (driver,)
    names = check_profile_names(scenario, document.data, profiles, must=driver is not None)
    return _told(document, names)


@cache
def _profiles() -> tuple[DriverProfile, ...]:
    """The shipped driver profiles."""
    folder = scenarios_dir() / "drivers"
    return tuple(load_profile(file.stem, folder) for file in sorted(folder.glob("*.yaml")))
