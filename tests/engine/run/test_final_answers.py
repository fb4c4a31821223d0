"""What a command in a container has answered is not waited for again, once all else is known."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from conformance.engine.run.awaiting import FINAL_SECONDS, await_expectation
from conformance.engine.run.ending import Divergence
from conformance.scenario.expectations.base import Evaluation
from conformance.scenario.expectations.container_hardware import HardwareExpectation
from conformance.targets.reference import ReferenceTarget
from tests.engine.miniature import attempt_in, scenario
from tests.kubesim.conftest import new_scope

LIMIT = 60.0


def waited(
    monkeypatch: pytest.MonkeyPatch, answer: Callable[[float], Evaluation]
) -> tuple[float, str]:
    """Seconds until the wait for an answer of a number of seconds ends, and what it ends with."""
    target = ReferenceTarget()
    try:
        scope = new_scope(target)
        began = scope.now()
        monkeypatch.setattr(
            HardwareExpectation, "evaluate", lambda _self, _cluster: answer(scope.now() - began)
        )
        loaded = scenario({"expect": [{"pod": "p", "phase": "Running"}]})
        attempt = attempt_in(scope, loaded, target)
        wanted = {"hardware": {"seenBy": ["p/c"], "count": 1}, "eventually": f"{LIMIT:g}s"}
        try:
            await_expectation(HardwareExpectation.model_validate(wanted), attempt)
        except Divergence as error:
            return scope.now() - began, error.found
        return scope.now() - began, ""
    finally:
        target.close()


def wrong(text: str, *, final: bool = True) -> Evaluation:
    return Evaluation(False, text, {}, final)


def test_a_wrong_answer_is_final_after_some_seconds(monkeypatch: pytest.MonkeyPatch) -> None:
    seconds, found = waited(monkeypatch, lambda _now: wrong("a mock"))
    assert FINAL_SECONDS <= seconds < FINAL_SECONDS + 5
    assert found == "a mock; given up after 10 s, for nothing is asked again"


def test_an_answer_that_comes_late_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    def after(seconds: float) -> Evaluation:
        if seconds < 30:
            return wrong("nothing yet", final=False)
        return wrong("no claim yet") if seconds < 35 else Evaluation(True, "as described", {}, True)

    assert waited(monkeypatch, after)[1] == ""


@pytest.mark.parametrize("final", [True, False], ids=["changes", "not yet"])
def test_what_may_still_change_is_waited_for(monkeypatch: pytest.MonkeyPatch, final: bool) -> None:
    seconds, found = waited(monkeypatch, lambda now: wrong(f"at {now * final:.0f}", final=final))
    assert seconds >= LIMIT
    assert "given up" not in found
