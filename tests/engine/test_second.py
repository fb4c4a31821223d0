"""A second cluster, for what disrupts a whole control plane."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import pytest

from conformance.engine import second as module
from conformance.engine.second import Second, may_have_second, start_second
from conformance.engine.setup import Setup
from conformance.engine.suite import run_suite
from conformance.results.events.run import RunFinished, RunStarted
from conformance.results.events.scenario import Outcome
from conformance.scenario.loader import LoadedScenario
from conformance.targets.opening.options import TargetOptions
from conformance.targets.opening.target import Opened
from kube.base.errors import ConformanceError, InfrastructureError, UsageError
from kube.values import Obj
from tests.engine.miniature import Miniature, Recorder, scenario, setup
from tests.engine.schedule.kit import STEPS

LOCAL = TargetOptions(target="cluster", cluster="local", name="mine")


def disrupting(name: str, **spec: Any) -> LoadedScenario:
    fault = {"fault": {"component": "kube-scheduler"}}
    return scenario(*STEPS, fault, STEPS[1], name=name, **spec)


def plain(number: int) -> list[LoadedScenario]:
    return [scenario(*STEPS, name=f"plain-{index}") for index in range(number)]


DISRUPTING = [disrupting(f"disrupts-{number}") for number in range(3)]


def given(target: Miniature) -> Setup:
    run = setup(target)
    capabilities = replace(
        run.opened.capabilities,
        concurrent=True,
        abilities=frozenset({"fault:kube-scheduler"}),
    )
    return replace(run, opened=replace(run.opened, capabilities=capabilities, options=LOCAL))


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> list[TargetOptions | str]:
    """The clusters that were opened, and "removed" when one was closed."""
    seen: list[TargetOptions | str] = []

    @contextmanager
    def open_target(options: TargetOptions, _progress: object) -> Iterator[Opened]:
        seen.append(options)
        yield given(Miniature()).opened
        seen.append("removed")

    monkeypatch.setattr(module, "open_target", open_target)
    monkeypatch.setattr(module, "has_room_for", lambda nodes: nodes == 1)
    return seen


def test_what_disrupts_a_control_plane_runs_beside_all_others() -> None:
    first, other, recorder = Miniature(), Miniature(), Recorder()
    first.memory, other.memory = 5 << 30, 2 << 30
    disrupted = threading.Event()
    other.on_fault = lambda _action: disrupted.set()

    def on_create(obj: Obj) -> None:
        if obj["kind"] == "Pod":  # a scenario of the first cluster runs, and waits for the second
            assert disrupted.wait(20), "the clusters were used one after the other"

    first.on_create = on_create
    scenarios = [DISRUPTING[0], *plain(2)]
    second = Second(given(other), (DISRUPTING[0],))
    result = run_suite(scenarios, given(first), [recorder], second=second)
    assert [item.scenario.id for item in result.finished] == [item.id for item in scenarios]
    assert {item.outcome for item in result.finished} == {Outcome.PASSED}
    assert "restart kube-scheduler" in other.log
    assert "restart kube-scheduler" not in first.log
    assert first.objects == other.objects == {}
    header = recorder.events[0]
    assert isinstance(header, RunStarted)
    assert header.options["secondCluster"] == ["core/disrupts-0"]
    footer = recorder.events[-1]
    assert isinstance(footer, RunFinished)
    assert footer.memory["cluster"] == 7 << 30
    assert footer.memory["suite"] > 1 << 20


def test_a_resumed_run_also_names_what_the_one_before_had_there() -> None:
    earlier = run_suite([DISRUPTING[1]], given(Miniature()), [])
    options = {**earlier.run.options, "secondCluster": ["core/disrupts-1"]}
    begun = replace(earlier, run=replace(earlier.run, options=options), footer=None)
    second = Second(given(Miniature()), (DISRUPTING[0],))
    result = run_suite(DISRUPTING[:2], given(Miniature()), [], begun=begun, second=second)
    assert result.run.options["secondCluster"] == ["core/disrupts-0", "core/disrupts-1"]


def test_a_cluster_that_breaks_ends_the_run_on_the_other_one() -> None:
    class Broken(Miniature):
        def owned(self, *_: object, **__: object) -> list[Any]:
            raise RuntimeError("no answer")

    first = Miniature()
    run = given(first)
    second = Second(replace(given(Broken()), stop=run.stop), (DISRUPTING[0],))
    with pytest.raises(RuntimeError, match="no answer"):
        run_suite([DISRUPTING[0], *plain(2)], run, [], second=second)
    assert run.stop.is_set()
    assert first.objects == {}


def test_it_has_one_node_and_ends_with_the_run(started: list[TargetOptions | str]) -> None:
    run, said = given(Miniature()), list[str]()
    with start_second([*DISRUPTING, *plain(3)], run, said.append) as wait:
        second = wait()
        assert second is not None
        assert second.scenarios == tuple(DISRUPTING)
        assert (second.setup.run, second.setup.stop) == (run.run, run.stop)
        assert second.setup.lost is not run.lost
    assert started == [replace(LOCAL, name="mine-2", nodes=1), "removed"]
    assert said == ["second cluster: 3 scenarios that disrupt a control plane run there"]


@pytest.mark.parametrize(
    "scenarios",
    [
        [*DISRUPTING[:2], *plain(9)],
        [*DISRUPTING, *plain(2)],
        [*DISRUPTING[:2], disrupting("cannot", tier="node", requires={"devices": 9}), *plain(9)],
    ],
)
def test_it_is_not_started_where_it_saves_nothing(
    scenarios: list[LoadedScenario], started: list[TargetOptions | str]
) -> None:
    with start_second(scenarios, given(Miniature()), lambda _line: None) as wait:
        assert wait() is None
    assert started == []


def test_without_memory_for_it_there_is_none(
    started: list[TargetOptions | str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "has_room_for", lambda _nodes: False)
    with start_second([*DISRUPTING, *plain(3)], given(Miniature()), lambda _line: None) as wait:
        assert wait() is None
    assert started == []


@pytest.mark.parametrize("kind", [InfrastructureError, UsageError])
def test_where_it_cannot_be_started_all_run_on_the_first(
    kind: type[ConformanceError], monkeypatch: pytest.MonkeyPatch
) -> None:
    @contextmanager
    def open_target(*_: object) -> Iterator[Opened]:
        raise kind("no address is free")
        yield

    monkeypatch.setattr(module, "open_target", open_target)
    monkeypatch.setattr(module, "has_room_for", lambda _nodes: True)
    said: list[str] = []
    with start_second([*DISRUPTING, *plain(3)], given(Miniature()), said.append) as wait:
        assert wait() is None
    [line] = said
    assert "could not be started" in line
    assert "no address is free" in line


@pytest.mark.parametrize(
    ("changes", "workers", "running", "allowed"),
    [
        ({}, None, (), True),
        ({}, 4, (), False),
        ({"nodes": 1}, None, (), False),
        ({"keep": True}, None, (), False),
        ({"driver_command": ("a-driver",)}, None, (), False),
        ({"cluster": "kind"}, None, (), False),
        ({}, None, ("mine",), False),
        ({}, None, ("mine-2",), False),
    ],
)
def test_only_beside_a_local_cluster_that_the_run_starts(
    changes: dict[str, Any],
    workers: int | None,
    running: tuple[str, ...],
    allowed: bool,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(module, "find_cluster", lambda options: options.name in running or None)
    assert may_have_second(replace(LOCAL, **changes), workers) is allowed
