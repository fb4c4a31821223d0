"""Whatever is in a line, if its digest fits: reading and reporting it gives one message at most."""

from __future__ import annotations

import copy
import hashlib
import json
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from conformance import __version__
from conformance.certify.build import build_report
from conformance.compare.compare_scenarios import compare_scenario
from conformance.digest import document_digest
from conformance.report.pages import render_html
from conformance.results.read import load_results
from conformance.results.write import ResultFile
from kube.base.errors import ConformanceError
from tests.certify.test_conformance_report import IMPLEMENTATION, PROFILES
from tests.compare.cluster import allocation, claim, decision
from tests.report.builders import finished, planned, play, stream

JUNK: st.SearchStrategy[Any] = st.sampled_from(
    [None, 0, -1, True, "", "x", 1.5, [], {}, [None], {"x": None}, [{}], ["header"], "core/b"]
)


PROFILE = {"metadata": {"name": "x"}, "spec": {}}
SUITE = {"suite_version": __version__}


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, Any]]:
    path = tmp_path_factory.mktemp("whole") / "whole.ndjson"
    scenarios = [planned("core/a"), planned("core/b")]
    events = [
        finished("core/a", decisions=(decision([claim()], [allocation("gpu-0")]),)),
        finished("core/b"),
    ]
    judged = [compare_scenario(event) for event in events]
    start = {
        **SUITE,
        "driver_profile": PROFILE,
        "driver_profile_digest": document_digest(PROFILE),
        "feature_gates": {"A": True},
    }
    items = {"core/a": {"events": "none"}}
    play(ResultFile(path), stream(scenarios, events, items, start=start, compared=judged))
    return [json.loads(line) for line in path.read_text().splitlines()]


def damage(data: st.DataObject, value: Any, depth: int) -> Any:
    """The value with one of its parts, at most so deep, replaced, removed or put beside it."""
    if depth and isinstance(value, dict) and value:
        key = data.draw(st.sampled_from(sorted(value)))
        if data.draw(st.integers(0, 9)) == 0:
            del value[key]
        else:
            value[key] = damage(data, value[key], depth - 1)
        return value
    if depth and isinstance(value, list) and value:
        index = data.draw(st.integers(0, len(value) - 1))
        value[index] = damage(data, value[index], depth - 1)
        return value
    return data.draw(JUNK)


@given(data=st.data())
def test_a_damaged_line_is_one_message_and_no_crash(
    data: st.DataObject, whole: list[dict[str, Any]], tmp_path_factory: Any
) -> None:
    folder = tmp_path_factory.getbasetemp()
    lines = copy.deepcopy(whole)
    index = data.draw(st.integers(0, len(lines) - 1))
    lines[index] = damage(data, lines[index], data.draw(st.integers(1, 4)))
    body = "".join(json.dumps(line) + "\n" for line in lines[:-1])
    if isinstance(lines[-1], dict) and "digest" in lines[-1]:
        lines[-1]["digest"] = f"sha256:{hashlib.sha256(body.encode()).hexdigest()}"
    path = folder / "damaged.ndjson"
    path.write_text(body + json.dumps(lines[-1]) + "\n")
    with suppress(ConformanceError):
        result = load_results(path)
        render_html(result)
        build_report(result, IMPLEMENTATION, PROFILES, result.run.planned)


@pytest.mark.parametrize("profile", [{"x": None}, {"metadata": 7}, {"metadata": {}}, {"spec": []}])
def test_a_driver_profile_of_another_form_has_no_name(profile: Any, tmp_path: Path) -> None:
    path = tmp_path / "r"
    start = {"driver_profile": profile, "driver_profile_digest": document_digest(profile)}
    play(ResultFile(path), stream([planned()], [finished()], start={**SUITE, **start}))
    result = load_results(path)
    assert "?, sha256:" in render_html(result)
    report = build_report(result, IMPLEMENTATION, PROFILES, result.run.planned)
    assert report.driver_profile is not None
    assert report.driver_profile.name == "?"
