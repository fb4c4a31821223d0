"""Runs scenarios in threads, each when the model says that it begins."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from functools import partial

from conformance.engine.schedule.model import (
    OBSERVERS,
    Running,
    State,
    Waiting,
    in_order,
    next_to_begin,
)
from conformance.engine.schedule.needs import Needs
from conformance.engine.schedule.pools import NodePool, NodePools, home_of
from conformance.results.events.scenario import ScenarioFinished
from conformance.results.knownissues import versions_of_kubernetes
from conformance.scenario.loader import LoadedScenario
from conformance.scenario.registry import load_known_issues
from conformance.seam.values import Capabilities


class Slot:
    """What a running scenario reports of itself, from its own thread.

    Args:
        changed: set whenever another scenario may be able to begin.
        disruptive: whether the scenario disrupts others until it settles.
    """

    def __init__(self, changed: threading.Event | None = None, *, disruptive: bool = False) -> None:
        self.observing = False
        self.disruptive = disruptive
        self._changed = changed or threading.Event()

    @contextmanager
    def observe(self) -> Iterator[None]:
        """Free the slot while the scenario only observes."""
        self.observing = True
        self._changed.set()
        try:
            yield
        finally:
            self.observing = False

    def settle(self) -> None:
        """Report that the scenario disrupts nobody from now on."""
        self.disruptive = False
        self._changed.set()


class Schedule:
    """The scenarios of a run on a target.

    On a target that is not ``concurrent`` they run one after the other in the given order: in
    virtual time a scenario's limits would pass while it waits for what another one holds.

    Args:
        slots: how many may act at once.
        reason_to_skip: why a scenario cannot run in a pool, None if it can.

    ``running``: ids of those that run.
    """

    def __init__(
        self,
        scenarios: Sequence[LoadedScenario],
        capabilities: Capabilities,
        slots: int,
        reason_to_skip: Callable[[LoadedScenario, NodePool], str | None],
    ) -> None:
        self.running: tuple[str, ...] = ()
        self._loaded = {item.id: item for item in scenarios}
        self._slots, self._observers = (slots, OBSERVERS) if capabilities.concurrent else (1, 0)
        self._pools = NodePools.of(capabilities)
        versions = versions_of_kubernetes(capabilities)
        known_issues = load_known_issues().list_failing_scenarios(versions)
        waiting: list[Waiting] = []
        for item in scenarios:
            needs = Needs.of(item.scenario.spec)
            if item.id in known_issues:  # it may wait until it gives up
                limit = item.scenario.spec.timeouts.eventually
                needs = replace(needs, seconds=max(needs.seconds, limit))
            home = home_of(needs, self._pools, partial(reason_to_skip, item))
            waiting.append(Waiting(item.id, needs, home))
        self._waiting = in_order(waiting) if capabilities.concurrent else waiting

    def run(
        self,
        run: Callable[[LoadedScenario, NodePool, Slot], ScenarioFinished],
        ended: Callable[[LoadedScenario, Future[ScenarioFinished]], None],
        stopping: Callable[[], bool],
    ) -> None:
        """Run scenarios until all have ended, or when ``stopping``, those that have begun.

        Args:
            run: runs one, in a thread of its own.
            ended: called for each that has ended, in the thread of this call.
        """
        changed = threading.Event()
        running: dict[Future[ScenarioFinished], tuple[Running, Slot]] = {}
        # So many threads that none that may begin waits for one (`model.State`, invariant 1).
        most = self._slots + self._observers
        with ThreadPoolExecutor(most, thread_name_prefix="scenario") as threads:
            while running or (self._waiting and not stopping()):
                # Before the look: what changes from here on must end the wait below.
                changed.clear()
                for future in [future for future in running if future.done()]:
                    name = running.pop(future)[0].scenario.id
                    ended(self._loaded[name], future)
                while not stopping() and (begun := self._next(running.values())) is not None:
                    self._waiting.remove(begun.scenario)
                    slot = Slot(changed, disruptive=begun.disruptive)
                    loaded = self._loaded[begun.scenario.id]
                    future = threads.submit(run, loaded, begun.pool, slot)
                    running[future] = begun, slot
                    future.add_done_callback(lambda _: changed.set())
                self.running = tuple(item.scenario.id for item, _ in running.values())
                # At most a second, for nothing sets the event when the run is to stop.
                changed.wait(1.0 if running else 0)

    def _next(self, running: Iterable[tuple[Running, Slot]]) -> Running | None:
        now = tuple(
            replace(item, observing=slot.observing, disruptive=slot.disruptive)
            for item, slot in running
        )
        waiting = tuple(self._waiting)
        return next_to_begin(State(waiting, now, self._pools, self._slots, self._observers))
