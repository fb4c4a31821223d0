"""Check one file of any kind that the suite knows: its own documents, and Kubernetes manifests."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from pydantic import BaseModel

from conformance.data import scenarios_dir
from conformance.scenario.documents.validate import (
    InvalidDocumentError,
    find_nearest,
    is_own,
    validate_document,
)
from conformance.scenario.documents.yamlfile import (
    Document,
    PathTuple,
    Problem,
    read_documents,
    yaml_files,
)
from conformance.scenario.driver.probe_ways import published_attributes
from conformance.scenario.driver.profile import DriverProfile, ProfileSpec, shipped_profiles
from conformance.scenario.driver.variables import VARIABLE, profile_variables
from conformance.scenario.lint.objects import field_problems, standalone_problems
from conformance.scenario.lint.scenarios import check_scenario
from conformance.scenario.lint.variables import (
    PROFILE_GROUPS,
    expression_problems,
    list_texts,
    selector_problems,
)
from conformance.scenario.model import Scenario
from conformance.scenario.registry import FeatureRegistry, KnownIssues, ManifestSet
from conformance.scenario.scheduler import SchedulerProfile
from conformance.scenario.shape import ClusterShape
from conformance.scenario.short.expand import expand_document
from reference_allocator.gates import LATEST


def profile_problems(profile: DriverProfile) -> Iterator[Problem]:
    """Yield the problems of a profile that fits the model; warnings of what scenarios need."""
    spec = profile.spec
    for key, device_class in spec.classes.items():
        path: PathTuple = ("spec", "classes", key)
        manifest = {"spec": device_class.spec}
        for problem in [
            *field_problems("DeviceClass", None, manifest, ()),
            *selector_problems(manifest, ()),
        ]:
            yield Problem((*path, *problem.path), problem.message)
    for key, expression in spec.selectors.items():
        yield from expression_problems(expression, ("spec", "selectors", key))
    defined = profile_variables(spec)
    for group, name in sorted(_list_variables_of_shipped()):
        if name not in defined[group]:
            yield Problem(
                ("spec",),
                f"shipped scenarios use ${{{group}.{name}}}, which this profile does not define;"
                " with it only scenarios of your own can run",
                "warning",
            )
    probe = spec.probe
    if not probe.shows_devices and probe.request_env is None:
        yield Problem(
            ("spec", "probe"),
            "neither env, deviceNodes, ways nor requestEnv: no container can show which devices it"
            " got",
            "warning",
        )
    yield from _check_ways_of_simulated(spec)


def _check_ways_of_simulated(spec: ProfileSpec) -> Iterator[Problem]:
    """Report what ways of the probe name, and no simulated device has."""
    published = published_attributes(spec.simulated.devices, spec.driver)
    attributes = {name for attribute_names in published.values() for name in attribute_names}
    for key, way in spec.probe.ways.items() if published else ():
        path: PathTuple = ("spec", "probe", "ways", key)
        if way.attribute is not None and way.attribute not in attributes:
            attributes_text = f"they have {', '.join(sorted(attributes)) or 'none'}"
            text = f"no device below simulated has the attribute {way.attribute}; {attributes_text}"
            yield Problem((*path, "attribute"), text, "warning")
        for text, name in way.table.items():
            if name not in published:
                unknown = f"no device below simulated has the name {name}"
                yield Problem((*path, "table", text), unknown, "warning")


def check_profile_names(
    scenario: Scenario, data: Any, profiles: Sequence[DriverProfile], *, must: bool = False
) -> Iterator[Problem]:
    """Report names that no profile has: an error if one has a name like it, else a warning.

    Somebody may have a profile of their own, with names that the shipped ones lack, so this is only
    for ``lint``: ``run`` compares with the very profile that it uses, before anything runs. With
    ``must`` the scenario runs with one of these profiles, and a name that they lack is an error.
    """
    defined = [profile_variables(profile.spec) for profile in profiles]
    names_by_group = {
        group: {name for profile_names in defined for name in profile_names[group]}
        for group in PROFILE_GROUPS
    }
    requires = scenario.spec.requires
    for field, group, names in (
        ("config", "config", requires.config),
        ("attributes", "attribute", requires.attributes),
        ("capacity", "capacity", requires.capacity),
    ):
        for index, name in enumerate(names):
            requires_path: PathTuple = ("spec", "requires", field, index)
            yield from _check_name(
                f"{group} {name}", name, names_by_group[group], requires_path, must
            )
    for path, group, name in _list_variables(data):
        yield from _check_name(
            f"variable ${{{group}.{name}}}", name, names_by_group[group], path, must
        )


def _list_variables(data: Any) -> Iterator[tuple[PathTuple, str, str]]:
    """Yield path, group and name of every variable that a profile defines."""
    for path, text in list_texts(data):
        for match in VARIABLE.finditer(text):
            group, _, name = match[1].partition(".")
            if group in PROFILE_GROUPS:
                yield path, group, name


@cache
def _list_variables_of_shipped() -> frozenset[tuple[str, str]]:
    """Return (group, name) that shipped scenarios take from every profile without requiring it."""
    root = scenarios_dir()
    return frozenset(
        (group, name)
        for folder in ("core", "extended")
        for file in yaml_files(root / folder)
        for document in read_documents(file)
        if document.data["spec"]["tier"] != "allocation"
        for _, group, name in _list_variables(expand_document(document).data)
        if group in ("class", "selector")
    )


def _check_name(
    what: str, name: str, known: set[str], path: PathTuple, must: bool
) -> Iterator[Problem]:
    if name in known:
        return
    near = find_nearest(name, known)
    if near is not None:
        yield Problem(path, f"unknown {what}: did you mean {near}?")
    elif must:
        yield Problem(path, f"{what} is not in the driver profile")
    else:
        yield Problem(
            path,
            f"{what} is in no shipped driver profile ({', '.join(sorted(known)) or 'none'}); the"
            " scenario only runs with --driver FILE that defines it",
            "warning",
        )


OWN_KINDS: Mapping[str, type[BaseModel]] = {
    "ClusterShape": ClusterShape,
    "DriverProfile": DriverProfile,
    "FeatureRegistry": FeatureRegistry,
    "KnownIssues": KnownIssues,
    "ManifestSet": ManifestSet,
    "Scenario": Scenario,
    "SchedulerProfile": SchedulerProfile,
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
    kubernetes: str = LATEST,
) -> list[LintLine]:
    """Return everything that is wrong in a file.

    Args:
        driver: the profile that scenarios are to run with; None is any that is shipped.
        kubernetes: the minor whose API server manifests are for.
    """
    lines = []
    own_documents = [document for document in documents if is_own(document)]
    if len(documents) > 1 and any(item.data.get("kind") == "Scenario" for item in own_documents):
        where = f"{documents[1].file}:{documents[1].line(())}"
        text = f"{where}: has {len(documents)} documents; one file holds one scenario"
        lines.append(LintLine(text))
    for document in own_documents:
        lines += _lint_own_document(document, models, driver, checks)
    for document in documents:
        if not is_own(document):
            lines += list_lint_lines(document, standalone_problems(document.data, kubernetes))
    return lines


def list_lint_lines(document: Document, problems: Iterable[Problem]) -> list[LintLine]:
    """Return problems of a document in the order of its lines."""
    ordered = sorted(problems, key=lambda problem: document.line(problem.path))
    return [LintLine(document.tell(item), item.severity == "error") for item in ordered]


def _lint_own_document(
    document: Document,
    models: Mapping[str, type[BaseModel]],
    driver: DriverProfile | None,
    checks: Mapping[str, Check],
) -> list[LintLine]:
    kind = document.data.get("kind")
    model = models.get(kind) if isinstance(kind, str) else None
    if model is None:
        kinds = ", ".join(sorted(models))
        line = document.line(("kind",))
        return [
            LintLine(f"{document.file}:{line}: $.kind: must be one of {kinds} (found {kind!r})")
        ]
    try:
        if model is not Scenario:
            valid = validate_document(model, document)
            return list_lint_lines(document, checks[kind](valid) if kind in checks else ())
        document = expand_document(document)
        scenario = check_scenario(document)
    except InvalidDocumentError as error:
        return [LintLine(problem) for problem in error.problems]
    if scenario.spec.tier == "allocation":
        return []
    profiles = shipped_profiles() if driver is None else (driver,)
    names = check_profile_names(scenario, document.data, profiles, must=driver is not None)
    return list_lint_lines(document, names)
