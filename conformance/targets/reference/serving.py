"""A reference that is served until it is ended: ``dra-conformance cluster up --reference``.

Its virtual time follows the clock of the machine. The process is written down in the state folder
(its identity in ``process.json``), so that ``down`` and ``status`` work from any other process.
"""

from __future__ import annotations

import dataclasses
import json
import os
import shutil
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

from conformance.targets.reference.target import ReferenceTarget
from kube.base.folders import state_folder
from kube.base.locks import file_lock
from kube.base.processes import Identity, identify, send, wait_gone
from kube.errors import ApiError
from kubesim.clock import EPOCH
from kubesim.front.backend import Backend
from kubesim.front.server import Front
from localkube.base import ClusterError, ClusterUsageError
from localkube.layout import Layout, make_layout

_NAMESPACES: Final = ("default", "kube-system")
_END_SECONDS: Final = 30.0
_LONGEST_WAIT: Final = 1.0
"""A signal that comes just before a wait goes to sleep has its handler run after it."""


def seconds_since_epoch() -> float:
    """The present in a reference's virtual time."""
    return time.time() - EPOCH.timestamp()


class RealTime(Backend):
    """The objects of a reference whose virtual time is that of the machine.

    ``target``: the reference, begun at `seconds_since_epoch`.
    """

    def __init__(self, target: ReferenceTarget) -> None:
        world, version = target.world, target.options.kubernetes_version
        super().__init__(world.cluster, world.api, world.handler, version, target.lock)
        self._world = world
        self._changed = threading.Condition(target.lock)
        # time.time() may be set back.
        self._ahead = world.clock.now - time.monotonic()
        for name in _NAMESPACES:
            with self.changing(), suppress(ApiError):  # a shape may have it
                named = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
                world.api.create(named, "")

    @contextmanager
    def changing(self) -> Iterator[None]:
        """Held by a request that changes something; what follows from that happens at the end."""
        with self._changed:
            self._catch_up()
            yield
            self._world.settle()
            self._changed.notify_all()

    def run(self) -> None:
        """Let time pass, until an exception ends it. Raises TargetError."""
        with self._changed:
            while True:
                self._catch_up()
                due = self._world.clock.next()
                left = _LONGEST_WAIT if due is None else max(0.0, due - self._now())
                self._changed.wait(min(left, _LONGEST_WAIT))

    def _catch_up(self) -> None:
        while self._world.advance(self._now()):
            pass

    def _now(self) -> float:
        return time.monotonic() + self._ahead


class ServedReference:
    """The served reference of a name, which this process or another one runs.

    Raises ClusterUsageError: the name is none that can be a file name and a context name.
    """

    def __init__(self, name: str) -> None:
        self._layout: Layout = make_layout(name, state_folder() / "reference" / name)

    @property
    def kubeconfig(self) -> Path:
        return self._layout.kubeconfig

    @property
    def _record(self) -> Path:
        return self._layout.dir / "process.json"

    @contextmanager
    def serving(self, target: ReferenceTarget) -> Iterator[RealTime]:
        """Serve a reference in this process for as long as the context lasts.

        Raises ClusterUsageError: one of this name is running.
        """
        with file_lock(self._layout.lock):
            if self.process() is not None:
                raise ClusterUsageError(
                    f"a reference named {self._layout.name!r} is running; end it with "
                    f"`dra-conformance cluster down --cluster reference --name "
                    f"{self._layout.name}`, or choose another name"
                )
            shutil.rmtree(self._layout.dir, ignore_errors=True)
            self._layout.dir.mkdir(mode=0o700, parents=True)
            identity = identify(os.getpid())
            assert identity is not None  # it is this process
            self._record.write_text(json.dumps(dataclasses.asdict(identity)))
        try:
            backend = RealTime(target)
            front = Front(backend, self._layout.dir, self._layout.name)
            try:
                yield backend
            finally:
                front.close()
        finally:
            shutil.rmtree(self._layout.dir, ignore_errors=True)

    def process(self) -> Identity | None:
        """The process that serves it; None where none does."""
        try:
            found = Identity(**json.loads(self._record.read_text()))
        except (OSError, ValueError, TypeError):
            return None
        return found if found.alive() else None

    def down(self) -> bool:
        """End it and remove its files; False where there was none. Raises ClusterError."""
        with file_lock(self._layout.lock):
            process = self.process()
            if process is not None:
                send([process.pid], signal.SIGTERM)
                if not wait_gone(process, _END_SECONDS):
                    raise ClusterError(
                        f"process {process.pid}, which serves the reference {self._layout.name!r}, "
                        f"did not end within {_END_SECONDS:.0f} s"
                    )
            there = process is not None or self._layout.dir.exists()
            shutil.rmtree(self._layout.dir, ignore_errors=True)
            return there
