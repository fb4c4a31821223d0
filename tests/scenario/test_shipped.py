"""Every shipped scenario and profile keeps the rules of `dra-conformance lint --shipped`."""

from __future__ import annotations

import pytest

from conformance.scenario.documents.yamlfile import read_documents, yaml_files
from conformance.scenario.driver.profile import load_profile
from conformance.scenario.lint import files as lint_files
from conformance.scenario.lint.objects import standalone_problems
from conformance.scenario.lint.shipped import (
    file_problems,
    length_problems,
    profile_problems,
    scenario_problems,
)
from conformance.scenario.lint.variables import fill_manifest
from tests.scenario.shipped import ROOT, shipped

PROFILES = [file.stem for file in yaml_files(ROOT / "drivers")]


def test_every_scenario_keeps_the_rules_for_shipped_ones() -> None:
    assert [problem for loaded in shipped() for problem in scenario_problems(loaded)] == []


def test_all_scenarios_together_stay_short() -> None:
    texts = [loaded.document.file.read_text(encoding="utf-8") for loaded in shipped()]
    assert list(length_problems(ROOT, texts)) == []


def test_every_yaml_file_is_one_document() -> None:
    files = yaml_files(ROOT)
    assert files
    assert [line for file in files for line in file_problems(file, read_documents(file))] == []


@pytest.mark.parametrize("name", PROFILES)
def test_a_profile_is_right_and_defines_what_the_scenarios_use(name: str) -> None:
    profile = load_profile(name, ROOT / "drivers")
    [document] = read_documents(ROOT / f"drivers/{name}.yaml")
    assert list(profile_problems(profile, document)) == []
    assert list(lint_files.profile_problems(profile)) == []


def test_lint_sees_without_a_cluster_what_the_api_server_must_refuse() -> None:
    """All but what depends on other objects, on a gate's value, or on a variable's value."""
    unseen = {
        loaded.id
        for loaded in shipped()
        for step in loaded.document.data["spec"]["steps"]
        for expectation in step.get("expect", [])
        if "object" in expectation.get("rejected", {})
        and not any(
            problem.severity == "error"
            for problem in standalone_problems(fill_manifest(expectation["rejected"]["object"]))
        )
    }
    assert unseen == {
        "core/expressions-are-checked",  # of the driver's name
        "core/namespace-deleted-in-use",
        "core/pods-with-claims-are-checked",  # a static pod's
        "extended/admin-access/refused-without-namespace-label",
        "extended/admin-access/template-outlives-its-label",
        "extended/device-class/quota-limits-claims-and-devices",
        "extended/extended-resource/quota-counts-claims-and-pods",
        "extended/resource-claim/user-of-a-namespace",
        "extended/resource-slice/kubelet-keeps-slices-of-its-node",
    }
