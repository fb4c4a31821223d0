"""The lines of a watch over HTTP, as they come."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import suppress
from functools import partial
from typing import Final

from starlette.concurrency import run_in_threadpool

from kube.errors import ApiError
from kube.values import Obj
from kubesim.apiserver import conversion
from kubesim.apiserver.watches import Matches
from kubesim.front.backend import Backend, Event, FellBehindError, History
from kubesim.front.body import build_status
from kubesim.front.call import Call

_INITIAL_END: Final = "k8s.io/initial-events-end"


class Wakeups:
    """Wakes the watches of one event loop, all by one message however many changes there were.

    Args:
        history: what they follow.
        loop: in which they run.
    """

    def __init__(self, history: History, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._asleep: set[asyncio.Future[None]] = set()
        self._is_due = False
        history.follow(self._hear)

    async def wait(self, is_due: Callable[[], bool], deadline: float) -> None:
        """Wait until something may have changed. Raises TimeoutError.

        ``is_due``: whether it has already; it is asked once nothing can be missed any more.
        """
        change: asyncio.Future[None] = self._loop.create_future()
        self._asleep.add(change)
        try:
            if not is_due():
                async with asyncio.timeout_at(deadline):
                    await change
        finally:
            self._asleep.discard(change)

    def _hear(self) -> None:
        if not self._is_due:
            self._is_due = True
            with suppress(RuntimeError):  # the loop has ended
                self._loop.call_soon_threadsafe(self._wake)

    def _wake(self) -> None:
        self._is_due = False  # before they read, so that what comes meanwhile wakes them again
        for change in self._asleep:
            if not change.done():
                change.set_result(None)


async def stream_watch(
    backend: Backend, wakeups: Wakeups, call: Call, seconds: int
) -> AsyncIterator[bytes]:
    """Yield lines of JSON, one for each event, for a time or until the history is closed.

    A client that does not read for so long that events which it has not had are forgotten is cut
    off, as one of k8s.io/apiserver's cacher is (``forget`` in cache_watcher.go): the stream ends.
    """
    history = backend.history
    deadline = asyncio.get_running_loop().time() + seconds
    revision, position, lines = await run_in_threadpool(_list_initial_lines, backend, call)
    selects = call.build_selection()
    if lines:
        yield lines
    if position is None:
        return
    try:
        while True:
            await wakeups.wait(partial(history.has_news, position), deadline)
            events = history.read_events(position)
            position += len(events)
            if events:
                revision = events[-1].revision
            if lines := b"".join(_format_event(event, call, selects) for event in events):
                yield lines
            if history.closed and history.position == position:
                return
    except FellBehindError:
        return
    except TimeoutError:
        if call.has_flag("allowWatchBookmarks"):
            yield _format_bookmark(call, revision)


def _list_initial_lines(backend: Backend, call: Call) -> tuple[int, int | None, bytes]:
    """Return up to which revision and position, and with which lines a watch begins.

    These are all objects, or the events after a resourceVersion; without a position it ends there.
    """
    initial = call.has_flag("sendInitialEvents")
    after = call.read_number("resourceVersion")
    history = backend.history
    if after and not initial:
        try:
            return after, history.find_position(after), b""
        except ApiError as error:
            return after, None, _format_line("ERROR", build_status(error))
    with backend.lock:
        revision, position = backend.store.revision, history.position
        selected = [conversion.as_version(obj, call.api_version) for obj in backend.select(call)]
    lines = [_format_line("ADDED", obj) for obj in selected]
    if initial:
        lines.append(_format_bookmark(call, revision, {_INITIAL_END: "true"}))
    return revision, position, b"".join(lines)


def _format_line(kind: str, obj: Obj) -> bytes:
    return json.dumps({"type": kind, "object": obj}).encode() + b"\n"


def _format_event(event: Event, call: Call, selects: Matches) -> bytes:
    """Return an event as a watch has it; empty where it has none of it."""
    watch_event = event.as_watch_event(call.kind.name, selects)
    if watch_event is None:
        return b""
    change, obj = watch_event
    if event.type == "DELETED":
        obj = event.obj  # which is as it was last
    if obj is not event.obj:  # It depends on what this watch selects.
        return _format_line(change, conversion.as_version(obj, call.api_version))
    line = event.lines.get((change, call.api_version))
    if line is None:
        line = _format_line(change, conversion.as_version(obj, call.api_version))
        event.lines[change, call.api_version] = line
    return line


def _format_bookmark(
    call: Call, revision: int, annotations: Mapping[str, str] | None = None
) -> bytes:
    meta: Obj = {"resourceVersion": str(revision)}
    if annotations:
        meta["annotations"] = annotations
    typed = {"kind": call.kind.name, "apiVersion": call.api_version}
    return _format_line("BOOKMARK", {**typed, "metadata": meta})
