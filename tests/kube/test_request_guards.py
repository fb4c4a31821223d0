from __future__ import annotations

import threading
import time
from collections.abc import Iterator

import pytest

from kube.limits import Guards, LimitError


def soon() -> float:
    return time.monotonic() + 0.05


def much_later() -> float:
    return time.monotonic() + 60


def threads() -> set[threading.Thread]:
    return {thread for thread in threading.enumerate() if thread.name == "request limits"}


@pytest.fixture
def others() -> set[threading.Thread]:
    """Threads of other tests' guards: nothing ends them but time."""
    return threads()


@pytest.fixture
def guards(others: set[threading.Thread]) -> Iterator[Guards]:
    made = Guards("too slow")
    yield made
    made.close()
    for thread in threads() - others:
        thread.join(10)


def test_only_the_request_whose_time_is_over_is_cut(
    guards: Guards, others: set[threading.Thread]
) -> None:
    cut = {name: threading.Event() for name in ("long", "short", "next")}
    with guards.guard(cut["long"].set, much_later()):
        for name in ("short", "next"):  # each sooner than what the thread waits for
            with pytest.raises(LimitError, match="too slow"), guards.guard(cut[name].set, soon()):
                assert cut[name].wait(10)
        assert len(threads() - others) == 1
    assert not cut["long"].is_set()


def test_several_requests_are_cut_at_the_same_time(guards: Guards) -> None:
    cut = [threading.Event() for _ in range(3)]
    until = soon()
    one, two, three = (guards.guard(event.set, until) for event in cut)
    with pytest.raises(LimitError), one, two, three:
        assert all(event.wait(10) for event in cut)


def test_the_thread_ends_when_closed_and_a_later_request_is_guarded_too(
    guards: Guards, others: set[threading.Thread]
) -> None:
    with guards.guard(lambda: None, much_later()):
        (first,) = threads() - others
    guards.close()
    first.join(10)
    assert not threads() - others
    cut = threading.Event()
    with pytest.raises(LimitError), guards.guard(cut.set, soon()):
        assert cut.wait(10)


def test_what_is_under_way_and_what_comes_is_cut_once_given_up(guards: Guards) -> None:
    cut = threading.Event()
    with pytest.raises(LimitError, match="given up"), guards.guard(cut.set, much_later()):
        guards.abandon()
    assert cut.is_set()
    with pytest.raises(LimitError, match="given up"), guards.guard(lambda: None, much_later()):
        pass
