"""A report is made again from its result file and must be the same."""

from __future__ import annotations

from dataclasses import replace

import pytest

from conformance.digest import set_digest
from conformance.targets.opening.options import DEFAULT_VERSION
from kube.base.errors import ExitCode, UsageError
from tests.certify.evidence import CORE, SHARED, Forgery


@pytest.fixture
def honest(forgery: Forgery) -> Forgery:
    forgery.write()
    forgery.claim()
    return forgery


def edit(report: Forgery, old: str, new: str) -> None:
    text = report.report.read_text()
    assert old in text
    report.report.write_text(text.replace(old, new, 1))


@pytest.mark.parametrize(
    ("old", "new", "path"),
    [
        ("result: uncertified", "result: success", "$.profiles[0].result"),
        ("passed: 4", "passed: 9", "$.profiles[0].statistics.passed"),
        ("error: []", "error: [core/x]", "$.profiles[0].error[0]"),
        ("skipped: []", "skipped: [{scenario: a, reason: b}]", "$.profiles[0].skipped[0]"),
        (
            f"kubernetesVersion: {DEFAULT_VERSION}",
            "kubernetesVersion: 1.38.0",
            "$.kubernetesVersion",
        ),
        ("- NVML", "- nothing", "$.simulated[5]"),
        ("date: '20", "date: '19", "$.date"),
        ("identical: ", "identical: 1", "$.comparison.verdicts.identical"),
        ("support: supported", "support: unsupported", "$.features[0].support"),
        ("stage: GA", "stage: Beta", "$.features[0].stage"),
        ("claimed: false", "claimed: true", "$.features[0].claimed"),
        ("product: Tesla T4", "product: H100", "$.inventory.devices[0].product"),
        ("count: 4", "count: 4000", "$.inventory.devices[0].count"),
        ("nodes: 1", "nodes: 100", "$.inventory.nodes"),
        ("knownIssues: []", "knownIssues: [{name: x, link: y, scenarios: []}]", "$.knownIssues[0]"),
        ("DRAAdminAccess: true", "DRAAdminAccess: false", "$.featureGates.DRAAdminAccess"),
        ("env: ^GPU_DEVICE", "env: ^GPU_DEVOCE", "$.driverProfile.document.spec.probe.env"),
        ("differences: 0", "differences: 1", "$.comparison.differences"),
        ("interrupted: false", "interrupted: true", "$.evidence.interrupted"),
    ],
)
def test_an_edited_report_is_reported_with_the_place(
    honest: Forgery, old: str, new: str, path: str
) -> None:
    edit(honest, old, new)
    verification = honest.verify()
    assert (path, "report") in [(item.path, item.code) for item in verification.discrepancies]
    assert verification.exit_code is ExitCode.NOT_CONFORMANT


def test_a_profile_under_another_name_is_no_profile(honest: Forgery) -> None:
    edit(honest, f"name: {CORE}", "name: dra-gold")
    [found] = honest.verify().discrepancies
    assert (found.code, found.message) == ("profile-unknown", "unknown profile 'dra-gold'")


def test_a_profile_that_is_listed_twice_is_reported(honest: Forgery) -> None:
    text = honest.report.read_text()
    start, end = text.index(f"- name: {CORE}"), text.index("\nfeatures:")
    honest.report.write_text(f"{text[:end]}\n{text[start:]}")
    assert honest.verify().discrepancies[0].code == "profile-repeated"


def test_the_implementations_own_particulars_are_not_checked(honest: Forgery) -> None:
    edit(honest, "organization: Example", "organization: Somebody else")
    verification = honest.verify()
    assert verification.discrepancies == ()
    assert "implementation is what the submitter says" in verification.notes[0]


def test_a_result_file_of_another_run_is_reported(honest: Forgery) -> None:
    honest.footer["seconds"] += 1.0
    honest.write()
    assert [item.path for item in honest.verify().discrepancies] == ["$.evidence.digest"]


def test_a_tampered_result_file_is_a_discrepancy(honest: Forgery) -> None:
    text = honest.results.read_text()
    honest.results.write_text(text.replace('"outcome": "passed"', '"outcome": "failed"', 1))
    [found] = honest.verify().discrepancies
    assert found.code == "result-file"
    assert "changed after the run" in found.message


def test_a_core_scenario_that_was_never_planned_is_reported(honest: Forgery) -> None:
    honest.catalogue = [*honest.catalogue, replace(honest.catalogue[0], id="core/new")]
    paths = [item.path for item in honest.verify().discrepancies]
    assert "$.profiles[0].notSelected[0]" in paths


def test_scenarios_of_others_are_noted_and_contradict_nothing(forgery: Forgery) -> None:
    forgery.catalogue = [item for item in forgery.catalogue if item.id != SHARED]
    forgery.write()
    forgery.claim()
    verification = forgery.verify()
    assert verification.discrepancies == ()
    assert f"not of the suite, and counted for no profile: {SHARED}" in verification.notes


def test_a_missing_file_and_another_version_are_usage_errors(honest: Forgery) -> None:
    content = honest.results.read_text()
    honest.results.write_text(content.replace("dra-conformance/v1", "dra-conformance/v2", 1))
    with pytest.raises(UsageError, match="apiVersion"):
        honest.verify()
    honest.results.unlink()
    with pytest.raises(UsageError, match=r"results\.ndjson: cannot be read"):
        honest.verify()
    honest.report.unlink()
    with pytest.raises(UsageError, match=r"report\.yaml: cannot be read"):
        honest.verify()


def test_the_digest_of_a_set_does_not_depend_on_its_order(forgery: Forgery) -> None:
    ours = forgery.catalogue
    assert set_digest(ours) == set_digest(ours[::-1])
    assert set_digest([replace(ours[0], digest="sha256:1"), *ours[1:]]) != set_digest(ours)
