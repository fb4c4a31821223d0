"""Scenario files: ids, digests, and errors that say file, line and path."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from conformance.data import scenarios_dir
from conformance.digest import set_digest
from conformance.scenario.driver.profile import load_profile
from conformance.scenario.driver.variables import Variables
from conformance.scenario.loader import LoadedScenario, load_scenarios
from kube.base.errors import UsageError

SCENARIO = """\
apiVersion: dra-conformance/v1
kind: Scenario
metadata:
  name: given
spec:
  summary: A pod is scheduled to the node with the device.
  level: core
  feature: ResourceClaim
  tier: allocation
  references: [https://kep.k8s.io/4381]
  nodes: [a]
  steps:
  - apply:
    - {apiVersion: v1, kind: Pod, metadata: {name: p}, spec: {nodeName: "${node.a}"}}
  - expect:
    - {pod: p, node: "${node.a}"}
"""


def write(tmp_path: Path, text: str, name: str = "core/given.yaml") -> Path:
    file = tmp_path / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)
    return file


def load(tmp_path: Path, text: str, name: str = "core/given.yaml") -> LoadedScenario:
    [loaded] = load_scenarios([write(tmp_path, text, name)])
    return loaded


def test_comments_do_not_change_the_digest_and_content_does(tmp_path: Path) -> None:
    plain = load(tmp_path, SCENARIO)
    commented = load(tmp_path, "# why\n" + SCENARIO)
    changed = load(tmp_path, SCENARIO.replace("the device.", "a device."))
    assert plain.digest == commented.digest != changed.digest
    assert set_digest([plain]) == set_digest([commented]) != set_digest([changed])


def test_variables_are_replaced_in_manifests_and_expectations(tmp_path: Path) -> None:
    bound = load(tmp_path, SCENARIO).bind(Variables(None, "0badcafe", "image"))
    apply, expect = bound.spec.steps
    assert apply.apply is not None
    assert expect.expect is not None
    assert apply.apply[0]["spec"] == {"nodeName": "dra-a-0badcafe"}
    assert getattr(expect.expect[0], "node", None) == "dra-a-0badcafe"


def test_variables_are_replaced_in_keys(tmp_path: Path) -> None:
    text = SCENARIO.replace('{nodeName: "${node.a}"}', '{nodeSelector: {"x/${name.r}": "1"}}')
    bound = load(tmp_path, text).bind(Variables(None, "0badcafe", "image"))
    apply = bound.spec.steps[0].apply
    assert apply is not None
    assert apply[0]["spec"] == {"nodeSelector": {"x/dra-r-0badcafe": "1"}}


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        pytest.param(
            "level: core",
            "level: cor",
            ":7: $.spec.level: must be 'core' or 'extended' (found 'cor'); did you mean core?",
            id="unknown level",
        ),
        pytest.param(
            "tier: allocation",
            "tier: cloud",
            ":9: $.spec.tier: must be 'allocation', 'node' or 'device'",
            id="unknown tier",
        ),
        pytest.param(
            "feature: ResourceClaim",
            "feature: ResourceClaims",
            ":8: $.spec.feature: unknown feature 'ResourceClaims'; did you mean ResourceClaim?",
            id="unknown feature",
        ),
        pytest.param(
            "  - expect:",
            "  - expects:",
            ":15: $.spec.steps[1].expects: unknown field 'expects'; did you mean expect?",
            id="unknown field",
        ),
        pytest.param(
            "{pod: p, node:",
            "{pods: p, node:",
            ":16: $.spec.steps[1].expect[0]: an expectation has exactly one of pod,",
            id="unknown expectation",
        ),
        pytest.param(
            '{pod: p, node: "${node.a}"}',
            "{pod: p, scheduled: true, eventually: soon}",
            ":16: $.spec.steps[1].expect[0].eventually: must be a duration like 500ms, 3s or 2m",
            id="bad duration",
        ),
        pytest.param(
            '{pod: p, node: "${node.a}"}',
            "{pod: p, scheduled: true, eventually: 3}",
            ".eventually: must be a duration like 500ms, 3s or 2m; write the number with its unit",
            id="duration without unit",
        ),
        pytest.param(
            '{pod: p, node: "${node.a}"}',
            "{pod: p, scheduled: true, eventually: 99999m}",
            ".eventually: must be a duration of at most an hour (60m) (found '99999m')",
            id="duration of weeks",
        ),
        pytest.param(
            '{pod: p, node: "${node.a}"}',
            "{pod: p, phse: Running}",
            ":16: $.spec.steps[1].expect[0].phse: unknown field 'phse'; did you mean phase?",
            id="unknown field of an expectation",
        ),
        pytest.param(
            "references: [https://kep.k8s.io/4381]",
            "references: 4381",
            ":10: $.spec.references: must be a list (found 4381)",
            id="no list",
        ),
        pytest.param(
            "  nodes: [a]\n",
            "  nodes: [a]\n  requires: {devices: many}\n",
            ":12: $.spec.requires.devices: must be a whole number (found 'many')",
            id="no number",
        ),
        pytest.param(
            "name: given", "name: other", ":4: $.metadata.name: is 'other', but", id="file name"
        ),
        pytest.param(
            '  - expect:\n    - {pod: p, node: "${node.a}"}\n',
            "",
            ":5: $.spec: no step expects anything",
            id="cannot fail",
        ),
        pytest.param(
            "  summary: A pod is scheduled to the node with the device.\n",
            "",
            ":5: $.spec.summary: is required but missing",
            id="missing field",
        ),
    ],
)
def test_what_is_wrong_is_said_with_file_line_and_path(
    tmp_path: Path, old: str, new: str, says: str
) -> None:
    assert old in SCENARIO
    with pytest.raises(UsageError) as error:
        load(tmp_path, SCENARIO.replace(old, new))
    assert str(error.value).startswith(f"{tmp_path}/core/given.yaml:")
    assert says in str(error.value)


def test_a_variable_that_the_profile_lacks_is_said_with_its_place(tmp_path: Path) -> None:
    text = SCENARIO.replace("tier: allocation", "tier: node").replace("  nodes: [a]\n", "")
    text = text.replace('spec: {nodeName: "${node.a}"}', "spec: {}").replace(
        '{pod: p, node: "${node.a}"}', '{pod: p, node: "${selector.mtch}"}'
    )
    loaded = load(tmp_path, text)
    profile = load_profile("gpu.nvidia.com", scenarios_dir() / "drivers")
    with pytest.raises(UsageError, match=r"did you mean \$\{selector\.match\}\?\); known") as error:
        loaded.bind(Variables(profile, "0badcafe", "image"))
    assert ":15: $.spec.steps[1].expect[0].node: unknown variable ${sel" in str(error.value)


def test_every_problem_of_every_file_is_said_at_once(tmp_path: Path) -> None:
    write(tmp_path, SCENARIO.replace("level: core", "level: x"), "core/given.yaml")
    write(tmp_path, "a: [", "core/other.yaml")
    with pytest.raises(UsageError) as error:
        load_scenarios([tmp_path / "core"])
    assert len(str(error.value).splitlines()) == 2


def test_two_documents_in_one_file_are_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="has 2 documents; one file holds one scenario"):
        load(tmp_path, SCENARIO + "---\n" + SCENARIO)


def test_a_path_that_is_too_long_is_named(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="check the path"):
        load_scenarios([tmp_path / ("a" * 300)])


def test_an_empty_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"given\.yaml:1: is empty"):
        load(tmp_path, "# nothing\n")


def test_a_file_that_is_no_regular_one_hides_no_mistake_of_the_others(tmp_path: Path) -> None:
    write(tmp_path, SCENARIO.replace("level: core", "level: x"), "core/given.yaml")
    write(tmp_path, 'apiVersion: !!bool "x"\n', "core/other.yaml")
    os.mkfifo(tmp_path / "core/pipe.yaml")
    (tmp_path / "core/folder.yaml").mkdir()
    with pytest.raises(UsageError) as error:
        load_scenarios([tmp_path / "core"])
    given, other, pipe = str(error.value).splitlines()
    assert "given.yaml:7: $.spec.level" in given
    assert "other.yaml:1: tag !!bool is not allowed here" in other
    assert "pipe.yaml: cannot be read: it is not a regular file" in pipe


def test_a_missing_path_is_named(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no such file or folder"):
        load_scenarios([tmp_path / "absent"])


PROFILE = (
    "apiVersion: dra-conformance/v1\nkind: DriverProfile\nmetadata: {name: x}\n"
    "spec: {driver: x.example.com, classes: {}}\n"
)


def test_only_what_is_wanted_is_read(tmp_path: Path) -> None:
    write(tmp_path, SCENARIO)
    write(tmp_path, "a: [", "core/other.yaml")
    found = load_scenarios([tmp_path], lambda identity: "given" in identity)
    assert [item.id for item in found] == ["core/given"]


def test_a_folder_may_hold_profiles_and_manifests_beside_scenarios(tmp_path: Path) -> None:
    write(tmp_path, SCENARIO)
    write(tmp_path, PROFILE, "core/x.yaml")
    write(tmp_path, "apiVersion: v1\nkind: Pod\n---\nservices: {}\n", "core/pod.yaml")
    assert [item.id for item in load_scenarios([tmp_path])] == ["core/given"]


def test_a_kind_that_is_misspelt_is_not_passed_over(tmp_path: Path) -> None:
    write(tmp_path, SCENARIO.replace("kind: Scenario", "kind: Scenari"))
    with pytest.raises(UsageError, match=r":2: \$\.kind: must be 'Scenario' \(found 'Scenari'\)"):
        load_scenarios([tmp_path])


def test_a_document_of_another_kind_is_told_what_it_is_for_and_nothing_else(tmp_path: Path) -> None:
    profile = write(tmp_path, PROFILE, "x.yaml")
    with pytest.raises(UsageError) as error:
        load_scenarios([profile])
    text = "this is a DriverProfile, not a Scenario; give it to --driver"
    assert str(error.value) == f"{profile}:2: $.kind: {text}"
    with pytest.raises(UsageError, match="this is a Scenario, not a DriverProfile; `dra-conf"):
        load_profile(str(write(tmp_path, SCENARIO)), tmp_path)


@pytest.mark.parametrize(
    ("file", "given", "identity"),
    [
        pytest.param("scenarios/fpga/given.yaml", "scenarios", "fpga/given", id="all"),
        pytest.param("scenarios/fpga/given.yaml", "scenarios/fpga", "fpga/given", id="a folder"),
        pytest.param(
            "scenarios/fpga/given.yaml", "scenarios/fpga/given.yaml", "fpga/given", id="a file"
        ),
        pytest.param("acme/fpga/given.yaml", "acme", "fpga/given", id="another folder"),
        pytest.param("acme/fpga/given.yaml", "acme/fpga/given.yaml", "given", id="another file"),
    ],
)
def test_the_id_of_a_scenario_that_is_not_shipped_is_the_path_below_its_folder(
    file: str, given: str, identity: str, tmp_path: Path
) -> None:
    write(tmp_path, SCENARIO, file)
    [loaded] = load_scenarios([tmp_path / given])
    assert loaded.id == identity


def test_scenarios_of_one_name_in_two_folders_are_two(tmp_path: Path) -> None:
    write(tmp_path, SCENARIO, "acme/a/given.yaml")
    write(tmp_path, SCENARIO, "acme/b/given.yaml")
    found = load_scenarios([tmp_path / "acme"])
    assert [item.id for item in found] == ["a/given", "b/given"]


def test_the_shipped_folder_itself_can_be_given() -> None:
    assert load_scenarios([scenarios_dir()]) == load_scenarios()
