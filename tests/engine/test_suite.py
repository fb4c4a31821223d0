"""A run: header, scenarios beside one another where they may, footer."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Iterator
from dataclasses import replace

import pytest

from conformance.data import scenarios_dir
from conformance.engine.setup import Setup
from conformance.engine.suite import run_suite
from conformance.results.events.run import RunFinished, RunStarted, RunStopping
from conformance.results.events.scenario import Outcome, ScenarioFinished
from conformance.scenario.driver.profile import load_profile
from conformance.scenario.loader import LoadedScenario
from kube.base.errors import InfrastructureError, TargetError, TargetGoneError, UsageError
from kube.errors import ApiError
from kube.values import Obj, Ref
from tests.engine.miniature import Miniature, Recorder, node, pod, scenario, setup

STEPS = ({"apply": [pod("p")]}, {"expect": [{"pod": "p", "scheduled": True}]})


def three() -> list[LoadedScenario]:
    return [scenario(*STEPS, name=f"s{number}") for number in range(3)]


@pytest.mark.parametrize("workers", [1, 4])
def test_every_planned_scenario_is_reported_once(workers: int) -> None:
    recorder = Recorder()
    scenarios = [scenario(*STEPS, name=f"s{number}") for number in range(6)]
    target = Miniature()
    result = run_suite(scenarios, setup(target), [recorder], workers=workers)
    assert [item.scenario.id for item in result.finished] == [item.id for item in scenarios]
    assert isinstance(recorder.events[0], RunStarted)
    footer = recorder.events[-1]
    assert isinstance(footer, RunFinished)
    assert footer.counts["passed"] == 6
    assert footer.left == ()
    assert target.objects == {}
    reported = [item for item in recorder.events if isinstance(item, ScenarioFinished)]
    assert len(reported) == 6


def terminating(*late: str) -> Miniature:
    """A target whose namespaces are marked at once and removed seconds later, as in a cluster.

    Args:
        late: pods that appear in a namespace that is terminating.
    """
    target = Miniature()

    def on_create(obj: Obj) -> None:
        if obj["kind"] == "Namespace":
            obj["metadata"]["finalizers"] = ["kubernetes"]

    def on_delete(ref: Ref, obj: Obj) -> None:
        if ref.kind == "Namespace":
            obj["metadata"]["deletionTimestamp"] = "2026-11-21T12:00:00Z"
            for name in late:
                target.objects[Ref("v1", "Pod", name, ref.name)] = pod(name)

    target.on_create, target.on_delete = on_create, on_delete
    return target


OTHER = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "other"}}


@pytest.mark.parametrize("apply", [(), (OTHER,)])
def test_empty_namespaces_that_the_cluster_still_removes_are_not_left_behind(
    apply: tuple[Obj, ...],
) -> None:
    target, recorder = terminating(), Recorder()
    steps = [{"apply": [obj]} for obj in apply]
    result = run_suite([scenario(*steps, *STEPS)], setup(target), [recorder])
    assert [item.outcome for item in result.finished] == [Outcome.PASSED]
    assert result.left == ()
    footer = recorder.events[-1]
    assert isinstance(footer, RunFinished)
    assert {Ref("v1", "Namespace", name) for name in footer.terminating} == set(target.objects)
    assert len(footer.terminating) == 1 + len(apply)


def test_a_namespace_that_ends_while_it_is_looked_for_is_not_left_behind() -> None:
    class Slow(Miniature):
        def owned(self, run: str | None = None, *, every_kind: bool = False) -> list[Ref]:
            return [*super().owned(run, every_kind=every_kind), Ref("v1", "Namespace", "other")]

    result = run_suite([scenario({"apply": [OTHER]}, *STEPS)], setup(Slow()), [])
    assert result.left == ()


def test_what_appears_in_a_terminating_namespace_fails_the_cleanup() -> None:
    result = run_suite([scenario(*STEPS)], setup(terminating("late")), [])
    assert [item.outcome for item in result.finished] == [Outcome.FAILED]
    assert "Pod late is still there" in result.finished[0].message


def test_a_namespace_that_nobody_marked_is_left_behind() -> None:
    target = terminating()
    target.on_delete = lambda _ref, _obj: None
    result = run_suite([scenario(*STEPS)], setup(target), [])
    assert [text.split()[0] for text in result.left] == ["Namespace"]


def test_what_was_not_begun_when_the_user_stopped_is_lost() -> None:
    given = setup(Miniature())
    given.stop.set()
    result = run_suite([scenario(*STEPS)], given, [])
    assert result.interrupted
    assert [item.outcome for item in result.finished] == [Outcome.LOST]


def test_nothing_to_run_is_an_error() -> None:
    with pytest.raises(UsageError, match="no scenario matches"):
        run_suite([], setup(Miniature()), [])


def test_a_variable_that_does_not_resolve_is_told_before_anything_runs() -> None:
    target = Miniature()
    bad = scenario({"apply": [pod("${no.such}")]}, STEPS[1])
    with pytest.raises(UsageError, match="unknown variable"):
        run_suite([bad], setup(target), [])
    assert target.log == []


def press_ctrl_c() -> None:
    time.sleep(0.1)  # nothing tells that run_suite has its thread and waits for it
    signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)


@pytest.fixture
def _ctrl_c() -> Iterator[None]:
    """SIGINT as in a terminal; a CI system may have started the tests with it ignored."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("_ctrl_c")
def test_ctrl_c_cleans_up_and_reports_what_had_run() -> None:
    target = Miniature()
    recorder = Recorder()
    given = setup(target)

    def interrupt(obj: Obj) -> None:
        if obj["kind"] == "Pod":
            press_ctrl_c()
            assert given.stop.wait(10)

    target.on_create = interrupt
    result = run_suite(three(), given, [recorder])
    assert result.interrupted
    assert [item.outcome for item in result.finished][1:] == [Outcome.LOST, Outcome.LOST]
    assert target.objects == {}
    assert RunStopping("interrupted", ("core/s0",)) in recorder.events
    assert isinstance(recorder.events[-1], RunFinished)
    assert recorder.events[-1].interrupted


@pytest.mark.usefixtures("_ctrl_c")
def test_ctrl_c_in_the_cleanup_does_not_break_it_off() -> None:
    target = Miniature()
    given = setup(target)

    def interrupt(ref: Ref, obj: Obj) -> None:
        if ref.kind == "Pod":
            press_ctrl_c()
            assert given.stop.wait(10)

    target.on_delete = interrupt
    result = run_suite(three(), given, [])
    outcomes = [item.outcome for item in result.finished]
    assert outcomes == [Outcome.PASSED, Outcome.LOST, Outcome.LOST]
    assert target.objects == {}


def with_classes(target: Miniature) -> Setup:
    profile = load_profile("nvml-dra-driver", scenarios_dir() / "drivers")
    [(name, entry)] = profile.spec.classes.items()
    classes = {name: entry, "other": entry.model_copy(update={"name": "other.example.com"})}
    spec = profile.spec.model_copy(update={"classes": classes})
    made = setup(target)
    changed = profile.model_copy(update={"spec": spec})
    return replace(made, opened=replace(made.opened, profile=changed))


def test_classes_are_removed_when_a_later_one_is_refused() -> None:
    target = Miniature()
    made: list[Obj] = []

    def refuse_the_second(obj: Obj) -> None:
        made.append(obj)
        if len(made) == 2:
            raise ApiError(403, "Forbidden", "no")

    target.on_create = refuse_the_second
    with pytest.raises(InfrastructureError, match="403 Forbidden: no"):
        run_suite([node("a")], with_classes(target), [])
    assert [obj["kind"] for obj in made] == ["DeviceClass", "DeviceClass"]
    assert target.objects == {}


@pytest.mark.usefixtures("_ctrl_c")
def test_ctrl_c_while_classes_are_made_removes_them() -> None:
    target = Miniature()
    given = with_classes(target)

    def interrupt(obj: Obj) -> None:
        if obj["kind"] == "DeviceClass" and not given.stop.is_set():
            press_ctrl_c()
            assert given.stop.wait(10)

    target.on_create = interrupt
    result = run_suite([node("a")], given, [])
    assert [item.outcome for item in result.finished] == [Outcome.LOST]
    assert any("create DeviceClass" in line for line in target.log)
    assert target.objects == {}


def test_a_last_look_that_gets_no_answer_is_something_left_behind() -> None:
    target, recorder = Miniature(), Recorder()

    def no_answer(run: str | None = None, *, every_kind: bool = False) -> list[Ref]:
        raise TargetError("no answer")

    target.owned = no_answer  # type: ignore[method-assign]
    result = run_suite([scenario(*STEPS)], setup(target), [recorder])
    assert result.left == ("what the run made could not be looked for: no answer",)
    assert isinstance(recorder.events[-1], RunFinished)


def not_deleting(error: Exception) -> Miniature:
    target = Miniature()

    def on_delete(_ref: Ref, _obj: Obj) -> None:
        raise error

    target.on_delete = on_delete
    return target


def test_a_cleanup_that_gets_no_answer_is_an_error_and_no_failure() -> None:
    result = run_suite([scenario(*STEPS)], setup(not_deleting(TargetError("no answer"))), [])
    assert [item.outcome for item in result.finished] == [Outcome.ERROR]
    assert "no answer" in result.finished[0].message


def test_a_target_that_is_gone_ends_the_run_and_says_what_may_be_left() -> None:
    target, recorder = not_deleting(TargetGoneError("the server is gone")), Recorder()
    result = run_suite(three(), setup(target), [recorder])
    outcomes = [item.outcome for item in result.finished]
    assert outcomes == [Outcome.ERROR, Outcome.LOST, Outcome.LOST]
    (left,) = result.finished[0].left
    assert left.startswith("perhaps Namespace ")
    assert left.endswith(", Pod p")
    assert [event.reason for event in recorder.events if isinstance(event, RunStopping)] == [
        "the server is gone"
    ]
    assert result.interrupted
