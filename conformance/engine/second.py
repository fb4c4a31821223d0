"""A second local cluster, for scenarios that disrupt the control plane of theirs.

Whoever restarts a scheduler or an API server disrupts everybody in its cluster, so that on one
cluster such scenarios run one after the other while nothing else does (docs/decisions/0035).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace

from conformance.engine.lost_driver import LostDriver
from conformance.engine.schedule.needs import Needs, Reach
from conformance.engine.setup import Setup
from conformance.scenario.loader import LoadedScenario
from conformance.targets.opening.options import TargetOptions
from conformance.targets.opening.target import find_cluster, open_target
from kube.base.errors import ConformanceError
from kube.base.text import counted
from localkube.base import Progress
from localkube.options import has_room_for

WORTHWHILE = 3
"""From so many scenarios on a start costs less than they would take from all others."""

NODES = 1
"""Of the second cluster. A scenario that needs more stays on the first."""


@dataclass(frozen=True, slots=True)
class Second:
    """The second cluster: what is given for its part of the run, and what runs there."""

    setup: Setup
    scenarios: tuple[LoadedScenario, ...]


def may_have_second(options: TargetOptions, workers: int | None) -> bool:
    """Whether a run may start a second local cluster beside the one that it is about to start.

    Not where the user says how many nodes there are or how many scenarios run at once, uses a
    cluster that is there, or has a driver whose devices may be this machine's. To be asked before
    the first one runs.
    """
    return (
        options.cluster == "local"
        and options.nodes is None
        and not options.driver_command
        and not options.keep
        and workers is None
        and find_cluster(options) is None
        and find_cluster(_options_of_second(options)) is None
    )


@contextmanager
def start_second(
    scenarios: Sequence[LoadedScenario], setup: Setup, progress: Progress
) -> Iterator[Callable[[], Second | None]]:
    """Start a second cluster in the background, where it saves time, and remove it at the end.

    Args:
        scenarios: those that are to run.
        setup: what is given for the run on the first cluster, which runs.

    Yields: a function that waits until the cluster has started. It returns None where there is
        none; if it could not be started it says so, and all scenarios run on the first.
    """
    disrupting = [
        item
        for item in scenarios
        if Needs.of(item.scenario.spec).disrupts is Reach.CLUSTER
        and setup.explain_skip(item) is None
    ]
    enough = WORTHWHILE <= len(disrupting) <= len(scenarios) - WORTHWHILE
    if not enough or not has_room_for(NODES):
        yield lambda: None
        return
    options = _options_of_second(setup.opened.options)

    def say(line: str) -> None:
        progress(f"second cluster: {line}")

    # The thread has ended, however that went, before what it started is removed.
    with ExitStack() as cluster, ThreadPoolExecutor(1, thread_name_prefix="second") as thread:
        start = thread.submit(cluster.enter_context, open_target(options, say))

        def wait() -> Second | None:
            try:
                opened = start.result()
            except ConformanceError as error:  # also of what stands in its way, as on its name
                say(f"could not be started, its scenarios run on the first: {error}")
                return None
            second = replace(setup, opened=opened, lost=LostDriver())
            able = tuple(item for item in disrupting if second.explain_skip(item) is None)
            say(f"{counted(len(able), 'scenario')} that disrupt a control plane run there")
            return Second(second, able)

        yield wait


def _options_of_second(options: TargetOptions) -> TargetOptions:
    return replace(options, name=f"{options.name}-2", nodes=NODES)
