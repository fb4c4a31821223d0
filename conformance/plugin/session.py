"""What the items of one pytest process share: the options, and the target once it is open.

With pytest-xdist the controller opens a cluster once and the workers connect to it; the in-process
reference is opened by each worker for itself.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from conformance.clusters.base import ClusterAccess
from conformance.engine.classes import ensure_classes
from conformance.engine.events import ShardPlan
from conformance.engine.ledger import Ledger
from conformance.engine.options import RunOptions
from conformance.engine.setup import Setup
from conformance.errors import InfrastructureError
from conformance.plugin.results import SessionResults
from conformance.scenario.selection import Selection
from conformance.targets.opening.options import TargetOptions
from conformance.targets.opening.target import connect, open_reference
from conformance.targets.seam.values import RUN_LABEL


@dataclass
class Session:
    """The session of one process."""

    options: TargetOptions
    selection: Selection
    run: str
    worker: str = ""
    access: ClusterAccess | None = None
    about: RunOptions = field(default_factory=RunOptions)
    stack: ExitStack = field(default_factory=ExitStack)
    setup: Setup | None = None
    results: SessionResults | None = None
    shard: ShardPlan | None = None


SESSION = pytest.StashKey[Session]()


def setup_of(session: Session) -> Setup:
    """Open this process's target when the first scenario needs it."""
    if session.setup is None:
        with ExitStack() as stack:
            if session.access is not None:
                opened = stack.enter_context(connect(session.access, session.options))
            else:
                opened = stack.enter_context(open_reference(session.options))
            about = session.about
            setup = Setup(
                session.run,
                opened,
                worker=session.worker,
                retries=about.retries,
                time_factor=about.time_factor,
            )
            if session.access is None:  # otherwise the controller has provided them
                stack.enter_context(classes_for(setup))
            session.stack.enter_context(stack.pop_all())
        session.setup = setup
    return session.setup


@contextmanager
def classes_for(setup: Setup) -> Iterator[None]:
    """Have the driver's DeviceClasses in the cluster while the context lasts."""
    scope = setup.opened.target.scope(f"dra-{setup.run}")
    ledger = Ledger(scope, {RUN_LABEL: setup.run})
    try:
        for profile in (setup.opened.profile, setup.opened.other):
            if profile is not None:
                ensure_classes(profile, scope, ledger)
        yield
    finally:
        left = ledger.cleanup(60.0)
        scope.close()
        if left:
            raise InfrastructureError("; ".join(left))


def lock_file(run: str) -> Path:
    """The same for the controller of a run and its workers."""
    return Path(tempfile.gettempdir()) / f"dra-conformance-{os.getuid()}-{run}"
