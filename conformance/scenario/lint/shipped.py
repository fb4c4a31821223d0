"""Rules for the files below ``scenarios/`` of this repository, which a model cannot express.

A scenario of somebody else need not keep them: they make the shipped ones alike, fit for every
correct cluster, and cheap to keep. Some have exceptions: a file that is one says why in a comment,
whose words the message of the rule shows.
"""

from __future__ import annotations

import json
import re
import statistics
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Final, Protocol

from conformance.data import scenarios_dir
from conformance.scenario.documents.yamlfile import (
    Document,
    PathTuple,
    Problem,
    read_documents,
    walk,
)
from conformance.scenario.driver.profile import DriverProfile, shipped_profiles
from conformance.scenario.driver.variables import Variables
from conformance.scenario.model import Scenario
from kube.base.errors import UsageError
from kube.base.text import counted
from reference_allocator.api.schema import CLUSTER_SCOPED

LONGEST: Final = 90
USUAL_LENGTH: Final = 40
"""Lines of a scenario: at most, and at most of half of all scenarios."""

WIDEST: Final = 120
"""Columns of a line."""

STABLE: Final = ">=1.34"
"""The minors that have ``resource.k8s.io/v1``; the default of ``requires.kubernetes``."""

PROBES: Final = ("${probe.hold}", "${probe.exit}", "${probe.open}")
_SCHEMA: Final = "schemas/scenario.schema.json"


class LoadedScenario(Protocol):
    """A scenario as :func:`conformance.scenario.loader.load_file` returns it."""

    @property
    def id(self) -> str: ...

    @property
    def scenario(self) -> Scenario: ...

    @property
    def document(self) -> Document: ...

    def bind(self, variables: Variables) -> Scenario: ...


@dataclass(frozen=True, slots=True)
class ShippedScenario:
    """A scenario with its text, and what rules look at.

    Attributes:
        written: the document before the short form was expanded.
    """

    loaded: LoadedScenario
    text: str
    written: Document

    @property
    def spec(self) -> Any:
        """The model of its spec."""
        return self.loaded.scenario.spec

    def tell(self, path: PathTuple, message: str) -> str:
        """A problem at a path of the expanded document: ``file:line: $.path: message``."""
        return self.loaded.document.tell(Problem(path, message))

    def tell_line(self, line: int, message: str) -> str:
        """A problem of a line, counted from 1: ``file:line: message``."""
        return f"{self.loaded.document.file}:{line}: {message}"

    def in_steps(self, field: str) -> Iterator[tuple[PathTuple, Any]]:
        """The elements of a list of steps (``apply``, ``expect``) in their order, with paths."""
        for index, step in enumerate(self.loaded.document.data["spec"]["steps"]):
            for position, element in enumerate(step.get(field, ())):
                yield ("spec", "steps", index, field, position), element

    def pod_specs(self) -> Iterator[tuple[PathTuple, dict[str, Any]]]:
        """The specs of Pods, and of the pods of Jobs."""
        for path, manifest in self.in_steps("apply"):
            if manifest["kind"] == "Pod":
                yield (*path, "spec"), manifest["spec"]
            elif manifest["kind"] == "Job":
                yield (*path, "spec", "template", "spec"), manifest["spec"]["template"]["spec"]


Check = Callable[[ShippedScenario], Iterable[str]]


@dataclass(frozen=True, slots=True)
class Rule:
    """What every shipped scenario keeps.

    Attributes:
        check: yields ``file:line: ...`` for each place that breaks it.
        waiver: a scenario with a comment ``# WAIVER, because ...`` may break it; empty: none may.
    """

    check: Check
    waiver: str = ""


RULES: Final[list[Rule]] = []


def shipped_rule(waiver: str = "") -> Callable[[Check], Check]:
    """Add a function to the rules."""

    def add(check: Check) -> Check:
        RULES.append(Rule(check, waiver))
        return check

    return add


def find_checkout() -> Path:
    """The repository whose files ``lint --shipped`` checks. Raises UsageError: this is none."""
    root = scenarios_dir().parent
    if not (root / "tests/scenario").is_dir():
        raise UsageError(
            "--shipped checks files below scenarios/ of a checkout of this project, and this"
            " dra-conformance was not installed from one; clone the repository, and call its"
            " .venv/bin/dra-conformance there"
        )
    if not Path.cwd().is_relative_to(root):
        raise UsageError(
            f"--shipped checks files below scenarios/ of the checkout {root}, and {Path.cwd()} is"
            " outside of it; call it there"
        )
    return root


def scenario_problems(loaded: LoadedScenario) -> Iterator[str]:
    """What a scenario must mend to be shipped, as ``file:line: ...``."""
    file = loaded.document.file
    text = file.read_text(encoding="utf-8")
    scenario = ShippedScenario(loaded, text, read_documents(file)[0])
    for rule in RULES:
        problems = list(rule.check(scenario))
        if not rule.waiver:
            yield from problems
            continue
        comment = f"`# {rule.waiver}, because ...`"
        waiver = re.search(rf"(?m)^(?:.*\s)?# {re.escape(rule.waiver)}, because ", text)
        if waiver is None:
            yield from (f"{problem}; or say why not in a comment {comment}" for problem in problems)
        elif not problems:
            line = text.count("\n", 0, waiver.end()) + 1
            yield scenario.tell_line(line, f"nothing here needs the comment {comment}: remove it")


def profile_problems(profile: DriverProfile, document: Document) -> Iterator[str]:
    """What a driver profile must mend to be shipped."""
    if not re.search(r" (at|of) ", profile.spec.source):
        yield document.tell(
            Problem(
                ("spec", "source"),
                "does not say which source of the driver it was written against: write REPOSITORY"
                " at VERSION",
            )
        )
    if profile.metadata.name != document.file.stem:
        name = document.file.stem
        yield document.tell(Problem(("metadata", "name"), f"must be {name}, as its file is named"))


def file_problems(file: Path, documents: Sequence[Document]) -> Iterator[str]:
    """What any YAML file below ``scenarios/`` must mend."""
    if len(documents) != 1:
        line = documents[1].line(()) if documents else 1
        yield f"{file}:{line}: has {counted(len(documents), 'document')}; one file holds one"


def length_problems(folder: Path, texts: Sequence[str]) -> Iterator[str]:
    """What all scenarios together must mend; ``folder`` is where they lie."""
    median = statistics.median(len(text.splitlines()) for text in texts)
    if median > USUAL_LENGTH:
        yield (
            f"{folder}: half of the scenarios have more than {median:g} lines, and at most"
            f" {USUAL_LENGTH} are meant: shorten what was added"
        )


# The file, before what it says.


@shipped_rule()
def _fits_the_schema(scenario: ShippedScenario) -> Iterator[str]:
    """The model took it, so that the schema for editors is wrong, or older than the model."""
    for document in (scenario.written, scenario.loaded.document):
        for error in read_schema().iter_errors(document.data):
            yield document.tell(
                Problem(
                    tuple(error.absolute_path),
                    f"does not fit scenarios/{_SCHEMA}: {error.message:.200}; write the schema"
                    f" again: dra-conformance schema > scenarios/{_SCHEMA}",
                )
            )


@cache
def read_schema() -> Any:
    try:
        from jsonschema import Draft202012Validator
    except ImportError:
        raise UsageError(
            "--shipped needs jsonschema, which is for development only: make .venv/.ready"
        ) from None
    return Draft202012Validator(json.loads((scenarios_dir() / _SCHEMA).read_text("utf-8")))


@shipped_rule()
def _resolves_with_every_profile_that_has_what_it_requires(
    scenario: ShippedScenario,
) -> Iterator[str]:
    requires = scenario.spec.requires
    bindings = [Variables(None, "0badcafe", "image")]
    if scenario.spec.tier != "allocation":
        profiles = shipped_profiles()
        bindings = [
            Variables(profile, "0badcafe", "image", {"node": 3}, other=other)
            for profile, other in zip(profiles, (*profiles[1:], profiles[0]), strict=True)
            if {*requires.config} <= profile.spec.config.keys()
            and {*requires.attributes} <= profile.spec.attributes.keys()
            and {*requires.capacity} <= profile.spec.capacity.keys()
        ]
    problems: dict[str, None] = {}
    for variables in bindings:
        try:
            scenario.loaded.bind(variables)
        except UsageError as error:
            problems |= dict.fromkeys(str(error).splitlines())
    yield from problems


@shipped_rule()
def _says_first_why_the_behaviour_matters(scenario: ShippedScenario) -> Iterator[str]:
    if not scenario.text.startswith("# "):
        yield scenario.tell_line(1, "must begin with a comment that says why the behaviour matters")


@shipped_rule("Long")
def _is_short(scenario: ShippedScenario) -> Iterator[str]:
    lines = len(scenario.text.splitlines())
    if lines > LONGEST:
        yield scenario.tell_line(LONGEST + 1, f"has {lines} lines: shorten it to {LONGEST}")


@shipped_rule()
def _has_lines_that_can_be_read(scenario: ShippedScenario) -> Iterator[str]:
    """But for a word, such as an address, that cannot be broken."""
    for number, line in enumerate(scenario.text.splitlines(), 1):
        if len(line) > WIDEST and " " in line.strip().removeprefix("- "):
            yield scenario.tell_line(
                number, f"has {len(line)} columns: break it, at most {WIDEST} fit"
            )


@shipped_rule("Placed otherwise")
def _puts_pods_on_a_node_in_one_way(scenario: ShippedScenario) -> Iterator[str]:
    for index, step in enumerate(scenario.written.data["spec"]["steps"]):
        for path, value in walk(step.get("apply", []), ("spec", "steps", index, "apply")):
            by_field = path[-1] == "matchFields" and "affinity" in path
            by_label = path[-1] == "nodeSelector" and "kubernetes.io/hostname" in value
            if by_field or by_label:
                text = "puts a pod on a node by hand: write `on: ${node.NAME}` in the pod"
                yield scenario.written.tell(Problem(path, text))


# What it is about.


@shipped_rule()
def _lies_in_the_folder_of_its_level(scenario: ShippedScenario) -> Iterator[str]:
    folder, _, name = scenario.loaded.id.partition("/")
    level = scenario.spec.level
    if folder not in (level, "regressions"):
        name = name or folder
        path = f"core/{name}" if level == "core" else f"extended/FEATURE/{name}"
        text = f"is {level}, so that the file must be scenarios/{path}.yaml"
        yield scenario.tell(("spec", "level"), text)


@shipped_rule()
def _refers_first_to_a_page_that_can_be_opened(scenario: ShippedScenario) -> Iterator[str]:
    if not scenario.spec.references[0].startswith("https://"):
        text = "must be an address (https://...); what has none may follow"
        yield scenario.tell(("spec", "references", 0), text)


@shipped_rule()
def _refers_to_a_document_and_an_enhancement(scenario: ShippedScenario) -> Iterator[str]:
    enhancements = [
        item for item in scenario.spec.references if item.startswith("https://kep.k8s.io/")
    ]
    others = [item for item in scenario.spec.references if item not in enhancements]
    if len(enhancements) != 1:
        text = (
            f"names {counted(len(enhancements), 'enhancement')}, with that of its feature: name one"
        )
        yield scenario.tell(("spec", "references"), text)
    if not any("https://" in item for item in others):
        text = (
            "names no document beside the enhancement: add the address of the page or the source"
            " that promises the behaviour (the enhancement need not be named)"
        )
        yield scenario.tell(("spec", "references"), text)


@shipped_rule("Newer than the stable API")
def _core_runs_on_every_minor_with_the_stable_api(scenario: ShippedScenario) -> Iterator[str]:
    if scenario.spec.level == "core" and scenario.spec.requires.kubernetes != STABLE:
        text = (
            f"is core, and so must run on Kubernetes {STABLE}: leave this out, or make it extended"
        )
        yield scenario.tell(("spec", "requires", "kubernetes"), text)


@shipped_rule()
def _core_needs_nothing_that_is_off_by_default(scenario: ShippedScenario) -> Iterator[str]:
    """A core scenario that is skipped certifies nothing, and beta APIs are off by default."""
    for field, needed in (
        ("featureGates", scenario.spec.requires.feature_gates),
        ("apis", scenario.spec.requires.apis),
    ):
        if scenario.spec.level == "core" and needed:
            text = f"is core, and needs {', '.join(needed)}, which not all have: make it extended"
            yield scenario.tell(("spec", "requires", field), text)


# What it does.


@shipped_rule()
def _runs_the_given_image_and_a_probe(scenario: ShippedScenario) -> Iterator[str]:
    for path, spec in scenario.pod_specs():
        for index, container in enumerate(spec["containers"]):
            place = (*path, "containers", index)
            if container["image"] != "${image}":
                yield scenario.tell(
                    (*place, "image"), "must be ${image}, which every cluster can pull"
                )
            if container.get("command") not in PROBES:
                text = f"must be one of {', '.join(PROBES)}, which show what a container sees"
                yield scenario.tell((*place, "command"), text)


@shipped_rule("Ends otherwise")
def _has_pods_that_end_quickly(scenario: ShippedScenario) -> Iterator[str]:
    quick = 0 if scenario.spec.tier == "allocation" else 1
    for path, spec in scenario.pod_specs():
        if spec["terminationGracePeriodSeconds"] != quick:
            text = f"must be {quick} in the {scenario.spec.tier} tier, as it is if left out"
            yield scenario.tell((*path, "terminationGracePeriodSeconds"), text)


@shipped_rule("Tolerates otherwise")
def _runs_where_its_devices_are_and_on_no_hollow_node_without(
    scenario: ShippedScenario,
) -> Iterator[str]:
    for path, spec in scenario.pod_specs():
        containers = (*spec.get("initContainers", ()), *spec["containers"])
        limits = [container.get("resources", {}).get("limits") for container in containers]
        expected: Any = "${tolerations}"
        if scenario.spec.tier == "allocation":
            has_devices = spec.get("resourceClaims") or any(limits)
            expected = [{"operator": "Exists"}] if has_devices else []
        if spec.get("tolerations", []) != expected:
            text = (
                f"must be {json.dumps(expected)} (which is the default where a pod has devices), so"
                " that it runs wherever its devices are, and on no hollow node without any"
            )
            yield scenario.tell((*path, "tolerations"), text)


@shipped_rule()
def _changes_only_what_it_names_outside_its_namespace(scenario: ShippedScenario) -> Iterator[str]:
    own = ("${name.", "${class.", "${node.", "${namespace}")
    for index, step in enumerate(scenario.loaded.document.data["spec"]["steps"]):
        patch = step.get("patch", {"kind": ""})
        if patch["kind"] in CLUSTER_SCOPED and not patch.get("name", "").startswith(own):
            text = f"must be a name of this run ({', '.join(own)}...): others use the cluster, too"
            yield scenario.tell(("spec", "steps", index, "patch", "name"), text)


@shipped_rule()
def _creates_only_names_of_the_run_outside_its_namespace(
    scenario: ShippedScenario,
) -> Iterator[str]:
    for path, manifest in scenario.in_steps("apply"):
        metadata = manifest["metadata"]
        if manifest["kind"] in CLUSTER_SCOPED and not metadata["name"].startswith(
            ("${name.", "${class.")
        ):
            text = "must begin with ${name. or ${class.: others use the cluster, too"
            yield scenario.tell((*path, "metadata", "name"), text)
        if not metadata.get("namespace", "${name.x}").startswith("${name."):
            text = "must begin with ${name., or be left out: the scenario has a namespace"
            yield scenario.tell((*path, "metadata", "namespace"), text)


# What it asks for.


@shipped_rule()
def _asks_for_no_devices_where_it_brings_its_own(scenario: ShippedScenario) -> Iterator[str]:
    """That others must say how many they need, every lint says."""
    if scenario.spec.tier == "allocation" and scenario.spec.requires.devices_in_all:
        text = "brings its own devices in the allocation tier: leave out those of a driver"
        yield scenario.tell(("spec", "requires"), text)


@shipped_rule()
def _declares_a_claim_that_containers_share(scenario: ShippedScenario) -> Iterator[str]:
    """But for init containers, which have ended before the others begin."""
    if (
        scenario.spec.tier == "allocation"
        or "claimOfSeveralContainers" in scenario.spec.requires.driver_can
    ):
        return
    for path, spec in scenario.pod_specs():
        sidecars = [
            container
            for container in spec.get("initContainers", [])
            if "restartPolicy" in container
        ]
        uses = Counter(
            name
            for container in (*spec["containers"], *sidecars)
            for name in {use["name"] for use in container.get("resources", {}).get("claims", [])}
        )
        for name, containers in uses.items():
            if containers > 1:
                text = (
                    f"{containers} containers use the claim {name}, which not every driver can"
                    " prepare: write `driverCan: [claimOfSeveralContainers]` below requires"
                )
                yield scenario.tell(path, text)


@shipped_rule("Claim left out")
def _looks_at_the_claim_of_a_pod_that_waits(scenario: ShippedScenario) -> Iterator[str]:
    for index, step in enumerate(scenario.loaded.document.data["spec"]["steps"]):
        expectations = step.get("expect", [])
        waiting = [
            expectation
            for expectation in expectations
            if "message" not in expectation.get("pending", {"message": ""})
        ]
        unallocated = [
            expectation
            for expectation in expectations
            if expectation.get("allocated") is False
            or expectation.get("none", {}).get("kind") == "ResourceClaim"
        ]
        if len(unallocated) < len(waiting):
            text = (
                f"{counted(len(waiting), 'pod')} found no device, and"
                f" {counted(len(unallocated), 'claim')} said to have none: expect"
                " `{claim: NAME, allocated: false}` of each, too"
            )
            yield scenario.tell(("spec", "steps", index, "expect"), text)


@shipped_rule()
def _asks_for_texts_only_where_they_are_the_point(scenario: ShippedScenario) -> Iterator[str]:
    """The name of a field excepted: strict decoding names it in its text only."""
    for path, expectation in scenario.in_steps("expect"):
        for field in ("pending", "rejected", "event"):
            text = str((expectation.get(field) or {}).get("message", ""))
            if text and not text.isalpha() and scenario.spec.feature != "Messages":
                yield scenario.tell(
                    (*path, field, "message"),
                    "is a text, which is no part of the API: ask for a reason, a code or a field,"
                    " or for no more than the name of a field",
                )


@shipped_rule("Waits for an event")
def _waits_for_no_event(scenario: ShippedScenario) -> Iterator[str]:
    for path, expectation in scenario.in_steps("expect"):
        if "event" in expectation:
            text = "waits for an event, which Kubernetes may drop: look at the object's status"
            yield scenario.tell((*path, "event"), text)
