"""Steps have values of captured objects: what is not there is told, and texts compare alike."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from conformance.results.events.scenario import Outcome
from conformance.scenario.driver.variables import fill_captured
from conformance.scenario.loader import load_file
from conformance.scenario.steps import Step
from tests.engine.miniature import write
from tests.scenario.kill_matrix import outcomes

POD = {"metadata": {"name": "own-x7k2p", "annotations": {"a.b/c": "d"}}, "spec": {"n": [{"m": 1}]}}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("${captured.pod.metadata.name}", "own-x7k2p"),
        ("a-${captured.pod.metadata.name}-b", "a-own-x7k2p-b"),
        ("${captured.pod.metadata.annotations['a.b/c']}", "d"),
        ("${captured.pod.spec.n[0].m}", 1),
        ("${captured.pod.spec.n}", [{"m": 1}]),
        ("${driver}", "${driver}"),
        ("${captured.pod.spec.n[1].m}", LookupError("the captured pod has no spec.n[1].m: [1] is")),
        ("${captured.pod.status.phase}", LookupError("has no status.phase: .status is not there")),
        ("${captured.pod.metadata.name.x}", LookupError("metadata.name.x: .x is not there")),
    ],
)
def test_a_value_is_put_in_or_said_to_be_missing(text: str, expected: Any) -> None:
    step = Step.model_validate({"apply": [{"kind": "Pod", "spec": {"x": [text]}}]})
    if isinstance(expected, LookupError):
        with pytest.raises(LookupError) as caught:
            fill_captured(step, {"pod": POD})
        assert str(expected.args[0]) in str(caught.value)
    else:
        new, _ = fill_captured(step, {"pod": POD})
        assert new.apply == ({"kind": "Pod", "spec": {"x": [expected]}},)


def test_selectors_have_it_too_and_reports_can_tell_it_from_a_name() -> None:
    document = {"delete": [{"kind": "ResourceClaim", "name": "${captured.pod.metadata.name}"}]}
    step = Step.model_validate(document)
    new, texts = fill_captured(step, {"pod": POD})
    assert new.delete is not None
    assert new.delete[0].name == "own-x7k2p"
    assert texts == {"own-x7k2p": "${captured.pod.metadata.name}"}
    plain = Step.model_validate({"delete": [{"kind": "Pod", "name": "pod0"}]})
    assert fill_captured(plain, {"pod": POD})[0] is plain


def test_a_value_that_is_not_there_fails_the_step(tmp_path: Path) -> None:
    steps = """\
- apply: [{claim: one}]
- capture: {before: {kind: ResourceClaim, name: one}}
- expect: [{none: {kind: ResourceClaim, name: "${captured.before.metadata.generateName}"}}]
"""
    loaded = load_file(write(tmp_path, steps, tier="allocation"), tmp_path)
    assert loaded is not None
    [(_, outcome)] = outcomes([loaded]).items()
    assert outcome is Outcome.FAILED
