from __future__ import annotations

from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest
import xmlschema
from hypothesis import given
from hypothesis import strategies as st

from conformance.report.ci import MAX_CHARACTERS, MAX_INLINE, JUnitFile
from conformance.report.files import DiagnosticsFolder
from conformance.results.events.comparison import Judgement, Verdict
from conformance.results.events.scenario import KnownFailure, Outcome
from tests.report.builders import HOSTILE, compared, ended, finished, planned, play, sample, stream
from tests.report.golden import check


def test_every_outcome_has_its_element(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "deep" / "junit.xml"
    monkeypatch.setattr("socket.gethostname", lambda: "box")
    play(JUnitFile(path), stream(*sample(), compared=[compared("core/passing", "identical")]))
    check("junit.xml", path.read_text(encoding="utf-8"))
    root = ET.parse(path).getroot()
    cases = {case.get("name"): case for case in root.iter("testcase")}
    assert {
        name: [child.tag for child in case if child.tag in ("failure", "error", "skipped")]
        for name, case in cases.items()
    } == {
        "passing": [],
        "failing": ["failure"],
        "broken": ["error"],
        "lost": ["error"],
        "unsupported": ["skipped"],
    }
    assert root.get("tests") == "5"
    assert root.get("failures") == "1"
    assert root.get("errors") == "2"
    assert root[0].get("skipped") == "1"
    assert {case.get("file") for case in cases.values()} >= {"scenarios/core/failing.yaml"}
    assert {case.get("line") for case in cases.values()} == {"3"}


SCHEMA = xmlschema.XMLSchema(str(Path(__file__).with_name("junit.xsd")))


def test_the_file_is_what_readers_agree_on(tmp_path: Path) -> None:
    path = tmp_path / "junit.xml"
    known = planned("core/known")
    scenarios, events, diagnostics = sample()
    issue = KnownFailure("some-issue", "https://example.com/1")
    events.append(finished(known, Outcome.KNOWN, HOSTILE, known_issues=(issue,)))
    judged = [compared("core/passing", "missed")]
    play(JUnitFile(path), stream([*scenarios, known], events, diagnostics, compared=judged))
    SCHEMA.validate(str(path))
    # The schema refuses what Jenkins does: a property in a test case, an unknown attribute.
    tree = ET.parse(path)
    for change in (
        lambda case: ET.SubElement(case, "properties"),
        lambda case: case.set("status", "x"),
        lambda case: case.attrib.pop("name"),
    ):
        bad = ET.fromstring(ET.tostring(tree.getroot()))
        change(next(bad.iter("testcase")))
        assert not SCHEMA.is_valid(ET.ElementTree(bad))


def test_long_diagnostics_are_attached_and_short_ones_stand_in_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CI_PROJECT_DIR", str(tmp_path))
    path = tmp_path / "out" / "junit.xml"
    scenario = planned("core/failing")
    kept = {scenario.id: {"kubelet.log": "x" * (MAX_INLINE + 1), "explanation.txt": "why"}}
    folder = DiagnosticsFolder(tmp_path / "out" / "diagnostics")
    reporter = JUnitFile(path, folder.folder_of)
    for item in stream([scenario], [finished(scenario, Outcome.FAILED, "m")], kept):
        folder.handle(item)
        reporter.handle(item)
    SCHEMA.validate(str(path))
    case = next(ET.parse(path).getroot().iter("testcase"))
    lines = (case.findtext("system-out") or "").splitlines()
    attached = [line for line in lines if line.startswith("[[")]
    assert attached == [
        "[[ATTACHMENT|out/diagnostics/core/failing/explanation.txt]]",
        "[[ATTACHMENT|out/diagnostics/core/failing/kubelet.log]]",
    ]
    assert case.findtext("system-err") == "== explanation.txt ==\nwhy"
    monkeypatch.delenv("CI_PROJECT_DIR")
    play(reporter, [ended([])])
    assert f"[[ATTACHMENT|{tmp_path}/out/diagnostics/core/failing/kubelet.log]]" in path.read_text()


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is full")
def test_a_full_disk_leaves_no_scrap_and_no_half_file(tmp_path: Path) -> None:
    path = tmp_path / "junit.xml"
    (tmp_path / "junit.xml.tmp").symlink_to("/dev/full")
    with pytest.raises(OSError, match="No space left"):
        play(JUnitFile(path), stream(*sample()))
    assert list(tmp_path.iterdir()) == []


def test_hostile_texts_give_valid_xml_that_says_the_same(tmp_path: Path) -> None:
    path = tmp_path / "junit.xml"
    scenario = planned(summary=HOSTILE, feature=HOSTILE)
    event = finished(scenario, Outcome.FAILED, HOSTILE)
    play(JUnitFile(path), stream([scenario], [event], {scenario.id: {HOSTILE: HOSTILE}}))
    failure = ET.parse(path).getroot().find(".//failure")
    assert failure is not None
    assert failure.text is not None
    assert r"[red]markup[/red] <b>&amp;</b> ]]> \x1b[2J\x00\x07\x85" in failure.text
    assert "<script>alert(1)</script>" in failure.text
    assert r"\ufffe" in failure.text


@given(text=st.text())
def test_any_text_gives_xml_that_parses(text: str, tmp_path_factory: Any) -> None:
    path = tmp_path_factory.getbasetemp() / "any.xml"
    scenario = planned("core/x", summary=text)
    play(JUnitFile(path), stream([scenario], [finished(scenario, Outcome.ERROR, text)]))
    assert len(list(ET.parse(path).getroot().iter("testcase"))) == 1


def test_a_huge_message_is_cut(tmp_path: Path) -> None:
    path = tmp_path / "junit.xml"
    scenario = planned()
    play(JUnitFile(path), stream([scenario], [finished(scenario, Outcome.FAILED, "x" * 5_000_000)]))
    assert path.stat().st_size < 2 * MAX_CHARACTERS
    failure = ET.parse(path).getroot().find(".//failure")
    assert failure is not None
    assert len(failure.get("message", "")) < 600


def test_no_local_folder_and_no_credential_is_in_the_file(tmp_path: Path) -> None:
    path = tmp_path / "junit.xml"
    scenario = planned()
    event = finished(scenario, Outcome.FAILED, f"{scenario.file}: Bearer abcdef0123456789")
    play(JUnitFile(path), stream([scenario], [event]))
    text = path.read_text()
    assert "/home/somebody" not in text
    assert "abcdef" not in text


def test_a_verdict_against_a_rule_is_a_failure_though_the_scenario_passed(tmp_path: Path) -> None:
    path = tmp_path / "junit.xml"
    judgement = Judgement(Verdict.INADMISSIBLE, "selector: <no>")
    judged = [compared("core/a", judgements=(judgement,)), compared("core/b", "admissible")]
    both = [planned("core/a"), planned("core/b")]
    events = stream(both, [finished("core/a"), finished("core/b")], compared=judged)
    play(JUnitFile(path), events)
    root = ET.parse(path).getroot()
    assert root.get("failures") == "1"
    failure = root.find(".//testcase[@name='a']/failure")
    assert failure is not None
    assert failure.get("type") == "inadmissible"
    assert failure.text == "inadmissible: selector: <no>"
    assert root.find(".//testcase[@name='b']/failure") is None
