from __future__ import annotations

from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

from hypothesis import given, settings
from hypothesis import strategies as st

from conformance.engine.events import Outcome
from conformance.report.junit import MAX_CHARACTERS, JUnitFile
from tests.report.builders import HOSTILE, finished, planned, play, sample, stream
from tests.report.golden import check


def test_every_outcome_has_its_element(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "junit.xml"
    verdicts = {"core/passing": "identical"}
    play(JUnitFile(path, verdicts), stream(*sample()))
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
    assert root.get("skipped") == "1"


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


@settings(deadline=None)
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


def test_an_interrupted_run_is_written_with_what_was_lost(tmp_path: Path) -> None:
    path = tmp_path / "junit.xml"
    play(JUnitFile(path), stream([planned("core/a"), planned("core/b")], [finished("core/a")]))
    error = ET.parse(path).getroot().find(".//testcase[@name='b']/error")
    assert error is not None
    assert error.get("type") == "lost"


def test_a_verdict_against_a_rule_is_a_failure_though_the_scenario_passed(tmp_path: Path) -> None:
    path = tmp_path / "junit.xml"
    verdicts = {"core/a": "inadmissible", "core/b": "admissible"}
    play(
        JUnitFile(path, verdicts, lambda _: ["selector: <no>"]),
        stream([planned("core/a"), planned("core/b")], [finished("core/a"), finished("core/b")]),
    )
    root = ET.parse(path).getroot()
    assert root.get("failures") == "1"
    failure = root.find(".//testcase[@name='a']/failure")
    assert failure is not None
    assert failure.get("type") == "inadmissible"
    assert failure.text == "selector: <no>"
    assert root.find(".//testcase[@name='b']/failure") is None
