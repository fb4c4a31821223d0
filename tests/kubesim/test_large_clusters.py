"""What a change costs does not grow with the cluster: who looks at what, and when."""

from __future__ import annotations

import threading
import time

import pytest

from kube.values import Obj
from kubesim import World
from kubesim.front.serving import RealTime, seconds_since_epoch
from kubesim.views import View, is_owned_or_deleted


def make_namespace(name: str, **metadata: object) -> Obj:
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, **metadata}}


def test_a_view_has_what_applies_now() -> None:
    store = World().cluster.store
    before = store.add(make_namespace("before", ownerReferences=[]))
    view = View(store, ["Namespace"], is_owned_or_deleted)
    store.add(make_namespace("plain"))
    after = store.add(make_namespace("after", ownerReferences=[]))
    assert view.list_objects() == [before, after]
    store.modify(before, lambda new: new["metadata"].pop("ownerReferences"))
    store.remove(after)
    assert view.list_objects() == []


def test_time_that_nobody_waits_for_gives_no_work(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World()
    runs: list[float] = []
    for controller in world.controllers:
        monkeypatch.setattr(controller, "sync", lambda: runs.append(world.clock.now))
    world.advance(100.0)
    world.settle()
    assert not runs
    world.clock.wake_in(5.0)
    assert world.advance(200.0)
    assert set(runs) == {105.0}


def test_where_controllers_take_long_requests_do_not_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World(start=seconds_since_epoch())
    backend = RealTime(world)
    settled: list[str] = []
    followed = threading.Event()

    def settle() -> None:
        begin = time.thread_time()
        while time.thread_time() < begin + 0.3:
            pass
        settled.append(threading.current_thread().name)
        if len(settled) > 1:
            followed.set()

    monkeypatch.setattr(world, "settle", settle)
    for _ in range(3):
        with backend.changing():
            pass
    assert settled == ["MainThread"]  # the first request, which has told how long it takes
    running = threading.Thread(target=backend.run, name="run")
    running.start()
    assert followed.wait(20)
    backend.history.close()
    running.join()
    assert set(settled[1:]) == {"run"}
