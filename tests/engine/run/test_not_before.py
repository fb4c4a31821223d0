"""Expectations that must not hold too early: `notBefore` and `since`."""

from __future__ import annotations

from pathlib import Path

import pytest

from conformance.results.events.scenario import Outcome
from conformance.scenario.loader import load_file
from conformance.scenario.model import Scenario
from kube.base.errors import UsageError
from tests.engine.miniature import write
from tests.scenario.kill_matrix import outcomes
from tests.scenario.shipped import on_reference

DELAYED = "extended/device-taint-rules/toleration-seconds-delay-eviction"


def test_what_comes_too_early_fails_and_what_comes_in_time_does_not() -> None:
    [delayed] = [each for each in on_reference() if each.id == DELAYED]
    assert isinstance(delayed.scenario, Scenario)
    assert outcomes([delayed]) == {DELAYED: Outcome.PASSED}
    assert outcomes([delayed], "evicts-at-once") == {DELAYED: Outcome.FAILED}


@pytest.mark.parametrize(
    ("rest", "said"),
    [
        ("- expect: [{none: {kind: Pod}, notBefore: 1s, since: frist}]\n", "did you mean first"),
        ("- expect: [{none: {kind: Pod}, notBefore: 1s}]\n", "goes with since"),
        ("- expect: [{none: {kind: Pod}, since: first}]\n", "goes with since"),
        (
            "- expect: [{none: {kind: Pod}, notBefore: 1s, since: first, consistently: 1s}]\n",
            "notBefore or consistently, not both",
        ),
        ("- {name: first, wait: 1s}\n- expect: [{none: {kind: Pod}}]\n", "already"),
    ],
)
def test_mistakes_are_told(rest: str, said: str, tmp_path: Path) -> None:
    file = write(tmp_path, "- {name: first, apply: [{claim: one}]}\n" + rest, tier="allocation")
    with pytest.raises(UsageError, match=said):
        load_file(file, tmp_path)
