from __future__ import annotations

import hashlib
import json
import re
from pathlib import Path
from typing import Any

import pytest

from conformance.report.allure import AllureResults
from conformance.report.allure_run import executor_of
from conformance.results.events.scenario import KnownFailure, Outcome
from tests.report.builders import (
    HOSTILE,
    compared,
    finished,
    planned,
    play,
    sample,
    started,
    step,
    stream,
)

pytest_plugins = ["pytester"]


def results(folder: Path) -> dict[str, dict[str, Any]]:
    read = (json.loads(path.read_text("utf-8")) for path in folder.glob("*-result.json"))
    return {item["name"]: item for item in read}


def labels(result: dict[str, Any]) -> dict[str, str]:
    return {item["name"]: item["value"] for item in result["labels"]}


def test_labels_links_steps_and_attachments(tmp_path: Path) -> None:
    play(
        AllureResults(tmp_path, clock=lambda: 1000.0),
        stream(*sample(), compared=[compared("core/failing", "missed")]),
    )
    result = results(tmp_path)["failing"]
    assert labels(result) == {
        "epic": "dra-core",
        "feature": "ResourceClaim",
        "story": "What core/failing shows.",
        "severity": "critical",
        "tag": "allocation",
        "parentSuite": "dra-conformance",
        "suite": "core",
        "subSuite": "ResourceClaim",
        "verdict": "missed",
    }
    assert labels(results(tmp_path)["unsupported"])["epic"] == "dra-extended"
    assert labels(results(tmp_path)["unsupported"])["severity"] == "normal"
    assert [link["url"] for link in result["links"]] == ["https://kubernetes.io/docs/"]
    assert [(s["name"], s["status"]) for s in result["steps"]] == [
        ("step 0", "passed"),
        ("step 1", "failed"),
    ]
    assert result["steps"][1]["start"] == result["steps"][0]["stop"] == 1_795_255_230_250
    assert result["statusDetails"]["message"].startswith("pod pod0 is Pending")
    assert result["statusDetails"]["trace"] == "at core/failing.yaml:12"
    attached = {item["name"]: item for item in result["attachments"]}
    assert set(attached) == {"events", "claims.yaml", "comparison"}
    assert result["titlePath"] == ["core", "ResourceClaim"]
    assert attached["claims.yaml"]["type"] == "application/yaml"
    assert (tmp_path / attached["events"]["source"]).read_text() == "FailedScheduling"


def test_decisions_and_observations_are_attached_as_json(tmp_path: Path) -> None:
    scenario = planned()
    event = finished(scenario, decisions=({"node": "a"},), undecided=({"kind": "Snapshot"},))
    play(AllureResults(tmp_path), stream([scenario], [event]))
    attached = {item["name"]: item for item in results(tmp_path)["one"]["attachments"]}
    assert set(attached) == {"decisions", "undecided"}
    file = tmp_path / attached["decisions"]["source"]
    assert json.loads(file.read_text()) == [{"node": "a"}]


def test_the_identity_depends_on_the_public_id_alone(tmp_path: Path) -> None:
    one = planned(digest="sha256:0", file="/a/core/one.yaml", summary="Some summary.", line=1)
    two = planned(digest="sha256:1", file="/b/core/one.yaml", summary="Another one.", line=9)
    ids = []
    for number, item in enumerate((one, two, planned("core/two"))):
        play(AllureResults(tmp_path / str(number)), stream([item], [finished(item)]))
        [result] = results(tmp_path / str(number)).values()
        ids.append(result["testCaseId"])
    assert ids[0] == ids[1] != ids[2]
    result = results(tmp_path / "0")["one"]
    assert result["fullName"] == "scenarios.core.one#one"
    assert result["testCaseId"] == result["historyId"]
    assert result["testCaseId"] == hashlib.md5(b"scenarios.core.one#one").hexdigest()


def test_hostile_texts_are_written_as_they_can_be_shown(tmp_path: Path) -> None:
    scenario = planned(summary=HOSTILE, feature=HOSTILE, references=(f"https://x/{HOSTILE}",))
    event = finished(scenario, Outcome.FAILED, HOSTILE)
    diagnostics = {scenario.id: {HOSTILE: HOSTILE, "../../up": "Bearer abcdef0123456789"}}
    play(AllureResults(tmp_path), stream([scenario], [event], diagnostics))
    for path in tmp_path.iterdir():
        assert "abcdef" not in path.read_text("utf-8")
    result = results(tmp_path)["one"]
    assert r"\x1b[2J\x00" in result["statusDetails"]["message"]
    for item in result["attachments"]:
        assert "/" not in item["source"]


def test_the_environment_is_a_properties_file(tmp_path: Path) -> None:
    AllureResults(tmp_path).handle(
        started(
            [], driver="a=b:c\nd \u00e9\U0001f600", versions={"kubernetes": "1.37.1", "k s": "1"}
        )
    )
    assert (tmp_path / "environment.properties").read_text("ascii").splitlines() == [
        r"Driver = a\=b\:c\nd \u00e9\ud83d\ude00",
        "Kubernetes = 1.37.1",
        "Simulated = NVML",
        "Suite = 0.1.0",
        "Target = cluster/local",
        r"k\ s = 1",
    ]


def test_steps_name_objects_as_they_were_called_and_time_is_the_scenarios(tmp_path: Path) -> None:
    scenario = planned()
    event = finished(
        scenario,
        namespace="dra-0123abcd",
        started_at="2026-01-01T00:00:01.500+00:00",
        steps=(step(scenario.id, title="expect pod p on node dra-a-*; size(x) * 2 == 4"),),
    )
    play(AllureResults(tmp_path), stream([scenario], [event]))
    result = results(tmp_path)["one"]
    assert [item["name"] for item in result["steps"]] == [
        "expect pod p on node dra-a-0123abcd; size(x) * 2 == 4"
    ]
    assert result["start"] == result["steps"][0]["start"] == 1_767_225_601_500
    assert result["stop"] == 1_767_225_602_000


def test_a_known_issue_is_skipped_marked_and_linked(tmp_path: Path) -> None:
    scenario = planned()
    issue = KnownFailure("some-issue", "https://example.com/1")
    event = finished(scenario, Outcome.KNOWN, "double", known_issues=(issue,))
    play(AllureResults(tmp_path), stream([scenario], [event]))
    result = results(tmp_path)["one"]
    assert result["status"] == "skipped"
    assert result["statusDetails"]["known"] is True
    assert {"type": "issue", "url": "https://example.com/1", "name": "some-issue"} in result[
        "links"
    ]
    assert category(tmp_path, result) == "Known issue of Kubernetes"


def category(folder: Path, result: dict[str, Any]) -> str | None:
    """The first category that fits, as Allure 2 and 3 look for it."""
    message = result.get("statusDetails", {}).get("message", "")
    for item in json.loads((folder / "categories.json").read_text()):
        pattern = item.get("messageRegex", ".*")
        if result["status"] in item["matchedStatuses"] and re.fullmatch(
            pattern, message, re.DOTALL
        ):
            return str(item["name"])
    return None


def test_each_scenario_has_one_result_with_its_status_and_its_category(tmp_path: Path) -> None:
    scenarios, events, diagnostics = sample()
    bug = planned("core/bug")
    events.append(finished(bug, Outcome.ERROR, "the suite failed: KeyError: 'x'"))
    play(AllureResults(tmp_path), stream([*scenarios, bug], events, diagnostics))
    found = results(tmp_path)
    assert {name: (item["status"], category(tmp_path, item)) for name, item in found.items()} == {
        "passing": ("passed", None),
        "failing": ("failed", "Product defect"),
        "broken": ("broken", "Infrastructure"),
        "bug": ("broken", "Test defect"),
        "unsupported": ("skipped", None),
        "lost": ("broken", "Infrastructure"),
    }
    assert not list(tmp_path.glob("*.tmp"))


@pytest.mark.parametrize(
    ("env", "expected"),
    [
        ({}, {"name": "local", "type": "local", "buildName": "r1"}),
        (
            {
                "GITHUB_ACTIONS": "true",
                "GITHUB_SERVER_URL": "https://github.com",
                "GITHUB_REPOSITORY": "acme/fpga",
                "GITHUB_RUN_ID": "77",
                "GITHUB_RUN_NUMBER": "5",
                "GITHUB_WORKFLOW": "dra",
            },
            {
                "name": "GitHub Actions",
                "type": "github",
                "buildUrl": "https://github.com/acme/fpga/actions/runs/77",
                "buildName": "dra #5",
                "buildOrder": 5,
            },
        ),
        (
            {"GITLAB_CI": "true", "CI_JOB_URL": "https://x/1", "CI_JOB_NAME": "j"},
            {"name": "GitLab CI", "type": "gitlab", "buildUrl": "https://x/1", "buildName": "j #"},
        ),
        (
            {"JENKINS_URL": "u", "BUILD_URL": "b", "JOB_NAME": "j", "BUILD_NUMBER": "9"},
            {
                "name": "Jenkins",
                "type": "jenkins",
                "buildUrl": "b",
                "buildName": "j #9",
                "buildOrder": 9,
            },
        ),
    ],
)
def test_the_executor_is_the_job_that_runs_it(
    env: dict[str, str], expected: dict[str, str | int]
) -> None:
    assert executor_of("r1", env) == expected


ROOT = Path(__file__).parents[2]
ITEM = (
    f"""
import sys
sys.path.insert(0, {str(ROOT)!r})
"""
    """
import pytest
from conformance.results.events.scenario import Outcome
from conformance.report.allure import apply_to_current_test
from tests.report.builders import finished, planned, step

class Scenario(pytest.Item):
    def runtest(self):
        outcome = Outcome(self.name.split("-")[0])
        scenario = planned(f"core/{self.name}")
        event = finished(scenario, outcome, "the message", decisions=({"node": "a"},))
        apply_to_current_test(event, {"events": "FailedScheduling"})
        if outcome is Outcome.FAILED:
            raise AssertionError("the message")
        if outcome is Outcome.ERROR:
            raise RuntimeError("the message")
        if outcome is Outcome.KNOWN:
            pytest.xfail("the message")
        if outcome is Outcome.SKIPPED:
            pytest.skip("the message")

class File(pytest.File):
    def collect(self):
        yield Scenario.from_parent(self, name=self.path.stem)

def pytest_collect_file(file_path, parent):
    if file_path.suffix == ".yaml":
        return File.from_parent(parent, path=file_path)
"""
)


def test_pytest_items_get_the_same_as_the_command_line(pytester: pytest.Pytester) -> None:
    """With a worker, whose items reach Allure as text; tests/plugin compares without one."""
    pytester.makeconftest(ITEM)
    folder = pytester.mkdir("scenarios") / "core"
    folder.mkdir()
    names = ["passed-a", "failed-b", "error-c", "skipped-d", "known-e"]
    for name in names:
        (folder / f"{name}.yaml").write_text("")
    pytester.runpytest_subprocess(
        "-p", "no:cacheprovider", "-p", "no:dra_conformance", "--alluredir=out", "-n", "1"
    ).assert_outcomes(passed=1, failed=2, skipped=1, xfailed=1)
    by_pytest = results(pytester.path / "out")

    command_line = pytester.path / "cli"
    scenarios = [planned(f"core/{name}") for name in names]
    events = [
        finished(item, Outcome(item.name.split("-")[0]), "the message", decisions=({"node": "a"},))
        for item in scenarios
    ]
    diagnostics = {item.id: {"events": "FailedScheduling"} for item in scenarios}
    play(AllureResults(command_line), stream(scenarios, events, diagnostics))
    by_command_line = results(command_line)

    assert set(by_pytest) == set(by_command_line) == set(names)
    for name in names:
        one, two = by_pytest[name], by_command_line[name]
        for field in ("status", "fullName", "testCaseId", "historyId", "titlePath", "links"):
            assert one[field] == two[field], field
        assert labels(two).items() <= labels(one).items()
        assert [s["name"] for s in one["steps"]] == [s["name"] for s in two["steps"]]
        assert one["steps"][1]["stop"] - one["steps"][1]["start"] == 250
        kinds = [[(a["name"], a["type"]) for a in item["attachments"]] for item in (one, two)]
        assert kinds[0] == kinds[1]


def test_without_a_listener_nothing_happens() -> None:
    from conformance.report.allure import apply_to_current_test

    apply_to_current_test(finished(), {"events": "x"})


def test_a_verdict_against_a_rule_fails_a_scenario_that_passed(tmp_path: Path) -> None:
    scenario = planned()
    judged = [compared(scenario.id, "missed")]
    play(AllureResults(tmp_path), stream([scenario], [finished(scenario)], compared=judged))
    result = results(tmp_path)["one"]
    assert result["status"] == "failed"
    assert result["statusDetails"]["message"] == "an allocation is missed"
    assert [item["name"] for item in result["attachments"]] == ["comparison"]
