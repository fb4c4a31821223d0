from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from conformance import __version__
from conformance.certify.build import OtherSuiteError, believed
from conformance.certify.profiles import load_profiles
from conformance.certify.verify import Verification, verify_report
from conformance.compare.compare import compare_scenario
from conformance.digest import set_digest
from conformance.engine.events import Outcome
from conformance.errors import ExitCode, UsageError
from conformance.resultfile.read import load_results
from conformance.resultfile.write import ResultFile
from tests.certify.test_conformance_report import IMPLEMENTATION
from tests.compare.cluster import allocation, claim, decision
from tests.report.builders import finished, planned, play, stream

PROFILES = load_profiles()
CATALOGUE = [planned("core/a"), planned("core/b"), planned("core/c"), planned("extended/d")]


class Submission:
    """A report and its result file, as somebody hands them in."""

    def __init__(self, folder: Path) -> None:
        self.results = folder / "results.jsonl"
        self.report = folder / "report.yaml"
        self.catalogue = CATALOGUE
        decisions = (decision([claim()], [allocation("gpu-0")]),)
        events = [
            finished("core/a", decisions=decisions),
            finished("core/b", Outcome.FAILED, "no"),
            finished("core/c", Outcome.SKIPPED, "no devices", steps=()),
            finished("extended/d"),
        ]
        judged = [compare_scenario(event) for event in events]
        start = {"suite_version": __version__}
        play(ResultFile(self.results), stream(CATALOGUE, events, start=start, compared=judged))
        self._claim()

    def _claim(self) -> None:
        result = load_results(self.results)
        report = believed(result, IMPLEMENTATION, PROFILES.profiles, self.catalogue)
        self.report.write_text(report.to_yaml())

    def edit_report(self, old: str, new: str) -> None:
        text = self.report.read_text()
        assert old in text
        self.report.write_text(text.replace(old, new, 1))

    def forge(self, change: Callable[[dict[str, Any]], None]) -> None:
        """Change the records and make footer and report fit, as a careful liar would."""
        records = [json.loads(line) for line in self.results.read_text().splitlines()]
        for record in records:
            change(record)
        body = "".join(json.dumps(record) + "\n" for record in records[:-1])
        records[-1]["digest"] = f"sha256:{hashlib.sha256(body.encode()).hexdigest()}"
        self.results.write_text(body + json.dumps(records[-1]) + "\n")
        self._claim()

    def verify(self) -> Verification:
        return verify_report(self.report, self.results, PROFILES, self.catalogue)


@pytest.fixture
def submission(tmp_path: Path) -> Submission:
    return Submission(tmp_path)


def test_an_honest_report_is_verified(submission: Submission) -> None:
    verification = submission.verify()
    assert verification.discrepancies == ()
    assert verification.exit_code is ExitCode.CONFORMANT


@pytest.mark.parametrize(
    ("old", "new", "path"),
    [
        pytest.param("result: failure", "result: success", "$.profiles[0].result", id="result"),
        pytest.param(
            "failed: 1", "failed: 0", "$.profiles[0].statistics.failed", id="failed count"
        ),
        pytest.param(
            "passed: 1", "passed: 9", "$.profiles[0].statistics.passed", id="passed count"
        ),
        pytest.param("- core/b", "- core/x", "$.profiles[0].failed[0]", id="failed list"),
        pytest.param(
            "  failed:\n  - core/b\n",
            "  failed: []\n",
            "$.profiles[0].failed[0]",
            id="shorter list",
        ),
        pytest.param(
            "reason: no devices", "reason: not needed", "$.profiles[0].skipped[0].reason", id="why"
        ),
        pytest.param("1.37.1", "1.38.0", "$.kubernetesVersion", id="Kubernetes"),
        pytest.param("- NVML", "- nothing", "$.simulated[0]", id="simulated"),
        pytest.param("2026-11-21", "2027-11-21", "$.date", id="date"),
        pytest.param("etcd: 3.6.6", "etcd: 9.9.9", "$.components.etcd", id="component"),
        pytest.param(
            "identical: 1",
            "identical: 2",
            "$.comparison.verdicts.identical",
            id="verdict",
        ),
    ],
)
def test_an_edited_report_is_told_with_the_place(
    submission: Submission, old: str, new: str, path: str
) -> None:
    submission.edit_report(old, new)
    verification = submission.verify()
    assert path in [item.path for item in verification.discrepancies]
    assert verification.exit_code is ExitCode.NOT_CONFORMANT


def test_a_dropped_profile_entry_cannot_hide_behind_another_name(submission: Submission) -> None:
    submission.edit_report("name: dra-extended", "name: dra-core")
    assert "profile dra-core is listed twice" in str(submission.verify().discrepancies[0])
    submission.edit_report("name: dra-core", "name: dra-gold")
    assert "unknown profile 'dra-gold'" in str(submission.verify().discrepancies[0])


def test_the_implementations_own_particulars_are_not_checked(submission: Submission) -> None:
    submission.edit_report("organization: Example", "organization: Somebody else")
    assert submission.verify().discrepancies == ()


def test_a_result_file_of_another_run_is_told(submission: Submission, tmp_path: Path) -> None:
    content = submission.results.read_text()
    submission.results.write_text(content.replace('"seconds": 60.0', '"seconds": 61.0'))
    assert [item.path for item in submission.verify().discrepancies] == ["$.evidence.digest"]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        pytest.param(
            lambda text: text.replace('"outcome": "failed"', '"outcome": "passed"', 1),
            "changed after the run",
            id="edited outcome",
        ),
        pytest.param(lambda text: text.rsplit("\n", 2)[0] + "\n", "no footer", id="footer cut off"),
        pytest.param(lambda _: "", "is empty", id="empty"),
        pytest.param(lambda text: text * 2, "follows the footer", id="two runs"),
    ],
)
def test_a_tampered_result_file_is_a_discrepancy(
    submission: Submission, change: Callable[[str], str], message: str
) -> None:
    submission.results.write_text(change(submission.results.read_text()))
    verification = submission.verify()
    assert message in str(verification.discrepancies[0])
    assert verification.exit_code is ExitCode.NOT_CONFORMANT


def test_a_forged_scenario_is_not_the_one_that_the_suite_ships(submission: Submission) -> None:
    def weaken(record: dict[str, Any]) -> None:
        if record["record"] == "header":
            record["planned"][0]["digest"] = "sha256:" + "0" * 64

    submission.forge(weaken)
    messages = [str(item) for item in submission.verify().discrepancies]
    assert any("jsonl:1: core/a: is not the scenario that the suite ships" in m for m in messages)
    assert any("the header's scenario-set digest is" in message for message in messages)


def test_a_scenario_moved_to_another_level_is_told(submission: Submission) -> None:
    def demote(record: dict[str, Any]) -> None:
        if record["record"] == "header":
            record["planned"][1]["level"] = "extended"

    submission.forge(demote)
    messages = [str(item) for item in submission.verify().discrepancies]
    assert "jsonl:1: core/b: is core ResourceClaim in the suite, the header says extended" in (
        "\n".join(messages)
    )


def test_a_core_scenario_that_was_never_planned_is_told(tmp_path: Path) -> None:
    submission = Submission(tmp_path)
    submission.catalogue = [*CATALOGUE, planned("core/e")]
    paths = [item.path for item in submission.verify().discrepancies]
    assert "$.profiles[0].notSelected[0]" in paths


def test_a_forged_verdict_is_judged_again(submission: Submission) -> None:
    def improve(record: dict[str, Any]) -> None:
        if record["record"] == "scenario" and record["decisions"]:
            record["decisions"][0]["allocations"] = [allocation("gpu-7")]

    submission.forge(improve)
    messages = "\n".join(str(item) for item in submission.verify().discrepancies)
    assert "jsonl:2: core/a: the verdicts are 1 identical, judged again 1 inadmissible" in messages


def test_a_scenario_whose_comparison_was_dropped_is_told(submission: Submission) -> None:
    def forget(record: dict[str, Any]) -> None:
        if record["record"] == "compared" and record["scenario"] == "core/a":
            record |= {"record": "diagnostics", "items": {}}
            for field in ("judgements", "differences", "problems"):
                del record[field]

    submission.forge(forget)
    messages = [str(item) for item in submission.verify().discrepancies]
    assert any(
        "core/a: was not compared, and the header says that the run was" in m for m in messages
    )


def test_scenarios_of_others_are_noted_and_contradict_nothing(submission: Submission) -> None:
    submission.catalogue = CATALOGUE[1:]
    submission.forge(lambda _: None)
    verification = submission.verify()
    assert verification.discrepancies == ()
    assert "not of the suite, and counted for no profile: core/a" in verification.notes


def test_what_cannot_be_checked_is_said(submission: Submission) -> None:
    assert "implementation is what the submitter says" in submission.verify().notes[0]


def test_evidence_of_another_suite_version_says_nothing(submission: Submission) -> None:
    def age(record: dict[str, Any]) -> None:
        if record["record"] == "header":
            record["suiteVersion"] = "0.0.1"

    submission.forge(age)
    with pytest.raises(OtherSuiteError, match=r"suite '0\.0\.1'.*install dra-conformance 0\.0\.1"):
        submission.verify()


def test_a_missing_file_and_another_version_are_usage_errors(submission: Submission) -> None:
    content = submission.results.read_text()
    submission.results.write_text(content.replace("dra-conformance/v1", "dra-conformance/v2", 1))
    with pytest.raises(UsageError, match="apiVersion"):
        submission.verify()
    submission.results.unlink()
    with pytest.raises(UsageError, match=r"results\.jsonl: cannot be read"):
        submission.verify()
    submission.report.unlink()
    with pytest.raises(UsageError, match=r"report\.yaml: cannot be read"):
        submission.verify()


def test_the_digest_of_a_set_does_not_depend_on_its_order() -> None:
    assert set_digest(CATALOGUE) == set_digest(CATALOGUE[::-1])
    changed = [replace(CATALOGUE[0], digest="sha256:1"), *CATALOGUE[1:]]
    assert set_digest(changed) != set_digest(CATALOGUE)


def test_a_report_is_yaml_that_any_reader_takes(submission: Submission) -> None:
    document = yaml.safe_load(submission.report.read_text())
    assert document["kind"] == "ConformanceReport"
    names = [item["name"] for item in document["profiles"]]
    assert names == [item.name for item in PROFILES.profiles]
