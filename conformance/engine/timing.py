"""Tell the time that a target takes from the time that the suite takes.

The suite's own cost is measured, not guessed (benchmarks/suite): every call into the scope counts
as the target's time, except for the suite's checks that run inside ``wait``.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager

from conformance.engine.failures import Interrupted
from conformance.targets.base import ContainerView, Decision, Obj, Objs, Ref, Scope, T


class TimedScope:
    """A scope that adds up, in ``waited``, the seconds of wall time spent in the target.

    While it is ``stoppable`` and ``stop`` is set, waiting ends with :class:`Interrupted`.
    """

    def __init__(self, scope: Scope, stop: threading.Event | None = None) -> None:
        self._scope = scope
        self._stop = stop or threading.Event()
        self.stoppable = True
        self.namespace = scope.namespace
        self.waited = 0.0
        self._in_target = False

    @contextmanager
    def _target_time(self) -> Iterator[None]:
        if self._in_target:
            yield
            return
        self._in_target = True
        start = time.perf_counter()
        try:
            yield
        finally:
            self.waited += time.perf_counter() - start
            self._in_target = False

    def create(self, obj: Obj) -> Obj:
        """See Scope.create."""
        with self._target_time():
            return self._scope.create(obj)

    def get(self, ref: Ref) -> Obj | None:
        """See Scope.get."""
        with self._target_time():
            return self._scope.get(ref)

    def list(self, api_version: str, kind: str, labels: Mapping[str, str] | None = None) -> Objs:
        """See Scope.list."""
        with self._target_time():
            return self._scope.list(api_version, kind, labels)

    def patch(self, ref: Ref, patch: Obj, subresource: str | None = None) -> Obj:
        """See Scope.patch."""
        with self._target_time():
            return self._scope.patch(ref, patch, subresource)

    def delete(self, ref: Ref, grace_seconds: int | None = None) -> None:
        """See Scope.delete."""
        with self._target_time():
            self._scope.delete(ref, grace_seconds)

    def wait(self, check: Callable[[], T | None], timeout: float) -> T | None:
        """See Scope.wait; the time inside ``check`` is the suite's, but for its calls back."""

        def timed() -> T | None:
            start = time.perf_counter()
            self._in_target = False
            try:
                if self.stoppable and self._stop.is_set():
                    raise Interrupted
                return check()
            finally:
                self._in_target = True
                # The surrounding wait counts this time too; calls back have counted themselves.
                self.waited -= time.perf_counter() - start

        with self._target_time():
            return self._scope.wait(timed, timeout)

    def pause(self, seconds: float) -> None:
        """See Scope.pause."""
        with self._target_time():
            self._scope.pause(seconds)

    def observe(self, pod: str, container: str) -> ContainerView | None:
        """See Scope.observe."""
        with self._target_time():
            return self._scope.observe(pod, container)

    def cdi_claims(self) -> Mapping[str, Sequence[str]]:
        """See Scope.cdi_claims."""
        with self._target_time():
            return self._scope.cdi_claims()

    def fault(self, component: str, action: str) -> None:
        """See Scope.fault."""
        with self._target_time():
            self._scope.fault(component, action)

    def decisions(self) -> Sequence[Decision]:
        """See Scope.decisions."""
        with self._target_time():
            return self._scope.decisions()

    def snapshot(self) -> Obj:
        """See Scope.snapshot."""
        with self._target_time():
            return self._scope.snapshot()

    def diagnostics(self) -> Mapping[str, str]:
        """See Scope.diagnostics."""
        with self._target_time():
            return self._scope.diagnostics()

    def close(self) -> None:
        """See Scope.close."""
        self._scope.close()
