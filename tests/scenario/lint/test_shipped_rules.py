"""Each rule for shipped files is broken by a small file, which is told line and remedy."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import pytest

from conformance.cli.commands.lint import list_shipped_problems
from conformance.scenario.documents.yamlfile import read_documents
from conformance.scenario.lint import shipped
from conformance.scenario.lint.shipped import RULES, Rule, length_problems

ALLOCATION = """\
# Why it matters.
apiVersion: dra-conformance/v1
kind: Scenario
metadata: {name: given}
spec:
  summary: Pods are scheduled to the node with the device, or wait.
  level: core
  feature: ResourceClaim
  tier: allocation
  nodes: [a]
  requires: {}
  references: [https://kubernetes.io/docs/]
  steps:
  - apply:
    - class: ${class.gpu}
    - {slice: "${name.slice}", nodeName: "${node.a}", devices: [dev-0]}
    - {claim: one}
    - {claim: two}
    - pod: pod0
      resourceClaims: [{name: gpu, resourceClaimName: one}]
    - pod: pod1
      resourceClaims: [{name: gpu, resourceClaimName: two}]
  - expect:
    - {pod: pod1, pending: {reason: Unschedulable}}
    - {claim: two, allocated: false}
"""
NODE = """\
# Why it matters.
apiVersion: dra-conformance/v1
kind: Scenario
metadata: {name: given}
spec:
  summary: Containers see the device of their claim.
  level: core
  feature: ResourceClaim
  tier: node
  requires: {devices: 1, driverCan: [claimOfSeveralContainers]}
  references: [https://kubernetes.io/docs/]
  steps:
  - apply:
    - {claim: one}
    - pod: pod0
      containers: [ctr0, ctr1]
      resourceClaims: [{name: gpu, resourceClaimName: one}]
  - expect:
    - {pod: pod0, phase: Running}
"""


class Bad(NamedTuple):
    """A good file, what makes it a bad one, and the line and the remedy that are told."""

    good: str
    old: str
    new: str
    line: int
    remedy: str


BAD = {
    "_resolves_with_every_profile_that_has_what_it_requires": [
        Bad(
            NODE,
            "pod: pod0\n",
            "pod: pod0\n      metadata: {labels: {a: '${class.other}'}}\n",
            16,
            "unknown variable ${class.other}",
        )
    ],
    "_says_first_why_the_behaviour_matters": [
        Bad(NODE, "# Why it matters.\n", "", 1, "begin with a comment")
    ],
    "_is_short": [Bad(NODE, "# Why it matters.\n", "# So.\n" * 90, 91, "shorten it to 90")],
    "_has_lines_that_can_be_read": [Bad(NODE, "it matters", "it " * 50, 1, "at most 120 fit")],
    "_puts_pods_on_a_node_in_one_way": [
        Bad(
            ALLOCATION,
            "pod: pod1\n",
            "pod: pod1\n      nodeSelector: {kubernetes.io/hostname: '${node.a}'}\n",
            22,
            "write `on: ${node.NAME}`",
        ),
        Bad(
            ALLOCATION,
            "pod: pod1\n",
            "pod: pod1\n      affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuring"
            "Execution:\n        {nodeSelectorTerms: [{matchFields: [{key: metadata.name,"
            " operator: In, values: ['${node.a}']}]}]}}}\n",
            23,
            "write `on: ${node.NAME}`",
        ),
    ],
    "_lies_in_the_folder_of_its_level": [
        Bad(NODE, "level: core", "level: extended", 7, "scenarios/extended/FEATURE/given.yaml")
    ],
    "_refers_first_to_a_page_that_can_be_opened": [
        Bad(NODE, "[https:", "[A book, https:", 11, "must be an address")
    ],
    "_refers_to_a_document_and_an_enhancement": [
        Bad(NODE, "kubernetes.io/docs/", "kep.k8s.io/4381", 11, "add the address of the page"),
        Bad(
            NODE,
            "docs/]",
            "docs/, https://kep.k8s.io/1, https://kep.k8s.io/2]",
            11,
            "2 enhancements",
        ),
    ],
    "_core_runs_on_every_minor_with_the_stable_api": [
        Bad(ALLOCATION, "{}", '{kubernetes: ">=1.36"}', 11, "make it extended")
    ],
    "_core_needs_nothing_that_is_off_by_default": [
        Bad(ALLOCATION, "{}", "{featureGates: [DRAAdminAccess]}", 11, "make it extended"),
        Bad(ALLOCATION, "{}", "{apis: [resource.k8s.io/v1beta1]}", 11, "make it extended"),
    ],
    "_runs_the_given_image_and_a_probe": [
        Bad(NODE, "[ctr0,", "[{name: ctr0, image: busybox},", 16, "must be ${image}"),
        Bad(NODE, "[ctr0,", "[{name: ctr0, command: [sh]},", 16, "must be one of ${probe.hold}"),
    ],
    "_has_pods_that_end_quickly": [
        Bad(NODE, "pod: pod0\n", "pod: pod0\n      terminationGracePeriodSeconds: 9\n", 16, "be 1"),
        Bad(
            ALLOCATION,
            "pod: pod0\n",
            "pod: pod0\n      terminationGracePeriodSeconds: 1\n",
            20,
            "must be 0 in the allocation tier",
        ),
    ],
    "_runs_where_its_devices_are_and_on_no_hollow_node_without": [
        Bad(
            ALLOCATION,
            "pod: pod0\n",
            "pod: pod0\n      tolerations: []\n",
            20,
            'must be [{"operator": "Exists"}]',
        ),
        Bad(NODE, "pod: pod0\n", "pod: pod0\n      tolerations: []\n", 16, "${tolerations}"),
    ],
    "_changes_only_what_it_names_outside_its_namespace": [
        Bad(
            ALLOCATION,
            "  - expect:\n",
            "  - patch: {kind: Namespace, name: default, patch: {metadata: {labels: {a: b}}}}\n"
            "  - expect:\n",
            23,
            "must be a name of this run",
        )
    ],
    "_creates_only_names_of_the_run_outside_its_namespace": [
        Bad(ALLOCATION, "${name.slice}", "slice", 16, "must begin with ${name. or ${class."),
        Bad(
            ALLOCATION,
            "{claim: two}\n",
            "{claim: two}\n    - {claim: three, metadata: {namespace: default}}\n",
            19,
            "the scenario has a namespace",
        ),
    ],
    "_asks_for_no_devices_where_it_brings_its_own": [
        Bad(ALLOCATION, "{}", "{devices: 1}", 11, "leave out those of a driver")
    ],
    "_declares_a_claim_that_containers_share": [
        Bad(NODE, ", driverCan: [claimOfSeveralContainers]", "", 15, "`driverCan: [claimOfSeveral")
    ],
    "_looks_at_the_claim_of_a_pod_that_waits": [
        Bad(ALLOCATION, "    - {claim: two, allocated: false}\n", "", 23, "allocated: false}` of")
    ],
    "_asks_for_texts_only_where_they_are_the_point": [
        Bad(
            ALLOCATION,
            "reason: Unschedulable",
            "reason: Unschedulable, message: cannot allocate",
            24,
            "no part of the API",
        )
    ],
    "_waits_for_no_event": [
        Bad(
            ALLOCATION,
            "  - expect:\n",
            "  - expect:\n    - event: {kind: Pod, name: pod0, reason: Scheduled}\n",
            24,
            "look at the object's status",
        )
    ],
}
"""Name of a rule's function -> files that break that rule."""

CASES = [
    pytest.param(name, bad, id=f"{name.strip('_')}-{index}")
    for name, files in BAD.items()
    for index, bad in enumerate(files)
]


def rule_named(name: str) -> Rule:
    return next(rule for rule in RULES if rule.check.__name__ == name)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """Where a core scenario is."""
    place = tmp_path / "scenarios/core/given.yaml"
    place.parent.mkdir(parents=True)
    return place


def problems_of(file: Path, text: str) -> list[str]:
    file.write_text(text)
    return list(list_shipped_problems(file, read_documents(file)))


@pytest.mark.parametrize("good", [ALLOCATION, NODE], ids=["allocation", "node"])
def test_a_good_scenario_can_be_shipped(file: Path, good: str) -> None:
    assert problems_of(file, good) == []


@pytest.mark.parametrize(("name", "bad"), CASES)
def test_a_rule_says_where_it_is_broken_and_what_to_do(file: Path, name: str, bad: Bad) -> None:
    text = bad.good.replace(bad.old, bad.new, 1)
    assert text != bad.good
    problems = problems_of(file, text)
    assert problems
    assert all(line.startswith(f"{file}:{bad.line}: ") for line in problems), problems
    assert all(bad.remedy in line for line in problems), problems
    waiver = rule_named(name).waiver
    if waiver:
        said = f"{text}# {waiver}, because this is a test.\n"
        assert problems_of(file, said) == []


def test_every_rule_is_broken_by_a_small_file() -> None:
    others = {"_fits_the_schema"}  # the model refuses what does not fit
    assert {rule.check.__name__ for rule in RULES} == BAD.keys() | others


@pytest.mark.parametrize("waiver", sorted({rule.waiver for rule in RULES} - {""}))
def test_a_comment_that_excuses_nothing_must_go(file: Path, waiver: str) -> None:
    [problem] = problems_of(file, f"{NODE}# {waiver}, because this is a test.\n")
    assert problem.startswith(f"{file}:20: nothing here needs the comment `# {waiver}, because")


def test_a_schema_that_is_older_than_the_model_is_to_be_written_again(
    file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    schema = tmp_path / "scenarios/schemas/scenario.schema.json"
    schema.parent.mkdir()
    schema.write_text('{"properties": {"spec": {"properties": {"level": {"enum": ["extended"]}}}}}')
    monkeypatch.setattr(shipped, "scenarios_dir", lambda: tmp_path / "scenarios")
    shipped.read_schema.cache_clear()
    try:
        problems = problems_of(file, NODE)
    finally:
        shipped.read_schema.cache_clear()
    assert problems
    assert all(line.startswith(f"{file}:7: $.spec.level: does not fit") for line in problems)
    assert "dra-conformance schema > " in problems[0]


PROFILE = """\
apiVersion: dra-conformance/v1
kind: DriverProfile
metadata: {name: given}
spec:
  driver: fpga.example.com
  source: someone/driver at v1
  classes: {gpu: {name: fpga, spec: {}}}
"""


@pytest.mark.parametrize(
    ("old", "new", "problem"),
    [
        ("name: given", "name: taken", "3: $.metadata.name: must be given, as its file is named"),
        ("driver at v1", "driver", "6: $.spec.source: does not say which source of the driver"),
        ("apiVersion", "---\na: b\n---\napiVersion", "4: has 2 documents; one file holds one"),
    ],
)
def test_a_profile_that_cannot_be_shipped(file: Path, old: str, new: str, problem: str) -> None:
    assert problems_of(file, PROFILE) == []
    [said] = problems_of(file, PROFILE.replace(old, new, 1))
    assert said.startswith(f"{file}:{problem}")


def test_half_of_the_scenarios_are_shorter_than_a_page(tmp_path: Path) -> None:
    assert list(length_problems(tmp_path, ["a\n" * 40, "a\n" * 90, "a\n"])) == []
    [problem] = length_problems(tmp_path, ["a\n" * 41, "a\n" * 90, "a\n"])
    assert "half of the scenarios have more than 41 lines, and at most 40 are meant" in problem
