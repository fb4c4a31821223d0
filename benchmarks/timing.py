"""A target that adds up the time spent inside it, so that what is left is the suite's own."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, cast

from conformance.seam.scope import Scope, T, Target


class TimedTarget:
    """A target whose scopes note, for each namespace, the seconds of wall time spent in them."""

    def __init__(self, target: Target) -> None:
        self._target = target
        self.waited: dict[str, float] = {}

    def __getattr__(self, name: str) -> Any:
        return getattr(self._target, name)

    def scope(self, namespace: str) -> Scope:
        """See Target.scope."""
        return cast("Scope", _TimedScope(self._target.scope(namespace), self.waited))


class _TimedScope:
    """A scope that is used by one thread; every call counts, but not the checks inside ``wait``."""

    def __init__(self, scope: Scope, waited: dict[str, float]) -> None:
        self._scope = scope
        self._waited = waited

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._scope, name)
        return self._timed(found) if callable(found) else found

    def wait(self, check: Callable[[], T | None], timeout: float) -> T | None:
        """See Scope.wait."""

        def suites_own() -> T | None:
            start = time.perf_counter()
            try:
                return check()
            finally:  # calls back into the scope have counted themselves
                self._count(start - time.perf_counter())

        waited: T | None = self._timed(self._scope.wait)(suites_own, timeout)
        return waited

    def _timed(self, call: Callable[..., Any]) -> Callable[..., Any]:
        def timed(*args: Any, **kwargs: Any) -> Any:
            start = time.perf_counter()
            try:
                return call(*args, **kwargs)
            finally:
                self._count(time.perf_counter() - start)

        return timed

    def _count(self, seconds: float) -> None:
        namespace = self._scope.namespace
        self._waited[namespace] = self._waited.get(namespace, 0.0) + seconds
