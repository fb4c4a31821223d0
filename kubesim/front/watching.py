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
from kubesim.front.answers import Form, too_large_revision
from kubesim.front.backend import Backend, Event, FellBehindError, History
from kubesim.front.body import build_status
from kubesim.front.call import Call
from kubesim.goforms import encode_object

_INITIAL_END: Final = "k8s.io/initial-events-end"

Shape = Callable[[Obj], Obj]
"""From an object in a call's version to what an event has of it."""


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
    backend: Backend, wakeups: Wakeups, call: Call, seconds: int, form: Form
) -> AsyncIterator[bytes]:
    """Yield lines of JSON, one for each event, for a time or until the history is closed.

    A client that does not read for so long that events which it has not had are forgotten is cut
    off, as one of k8s.io/apiserver's cacher is (``forget`` in cache_watcher.go): the stream ends.
    """
    if form.target == "PartialObjectMetadataList":
        return  # Of no event can a list be made, which ends the stream of a real server, too.
    history = backend.history
    deadline = asyncio.get_running_loop().time() + seconds
    shape = _make_shape(backend, call, form)
    # Only what is the same for all who watch is written once for all.
    is_shared = not form.target
    revision, position, lines = await run_in_threadpool(_list_initial_lines, backend, call, shape)
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
            formatted = (_format_event(event, call, selects, shape, is_shared) for event in events)
            if lines := b"".join(formatted):
                yield lines
            if history.closed and history.position == position:
                return
    except FellBehindError:
        return
    except TimeoutError:
        if call.list_options.bookmarks and revision > 0:
            yield _format_bookmark(call, revision, shape)


def _make_shape(backend: Backend, call: Call, form: Form) -> Shape:
    """Return what shapes the objects of a watch; of tables only the first names the columns."""
    is_first = True

    def shape(obj: Obj) -> Obj:
        nonlocal is_first
        shaped = form.shape(backend.api, call, obj)
        if form.target == "Table" and not is_first:
            shaped["columnDefinitions"] = None
        is_first = False
        return shaped

    return shape


def _list_initial_lines(
    backend: Backend, call: Call, shape: Shape
) -> tuple[int, int | None, bytes]:
    """Return up to which revision and position, and with which lines a watch begins.

    These are all objects, or the events after a resourceVersion; without a position it ends there.
    """
    options, history = call.list_options, backend.history
    after = int(options.revision or 0)
    if after and not options.initial_events:
        try:
            return after, history.find_position(after), b""
        except ApiError as error:
            return after, None, _format_line("ERROR", build_status(error))
    with backend.lock:
        revision, position = backend.store.revision, history.position
        selected = [conversion.as_version(obj, call.api_version) for obj in backend.select(call)]
    if options.initial_events and after > revision:
        status = build_status(too_large_revision(after, revision))
        return revision, None, _format_line("ERROR", status)
    if options.initial_events is False:
        return revision, position, b""
    lines = [_format_line("ADDED", shape(obj)) for obj in selected]
    if options.bookmarks and options.initial_events:
        lines.append(_format_bookmark(call, revision, shape, {_INITIAL_END: "true"}))
    return revision, position, b"".join(lines)


def _format_line(kind: str, obj: Obj) -> bytes:
    return json.dumps({"type": kind, "object": obj}).encode() + b"\n"


def _format_event(
    event: Event, call: Call, selects: Matches, shape: Shape, is_shared: bool
) -> bytes:
    """Return an event as a watch has it; empty where it has none of it."""
    watch_event = event.as_watch_event(call.kind.name, selects)
    if watch_event is None:
        return b""
    change, obj = watch_event
    if event.type == "DELETED":
        obj = event.obj  # which is as it was last
    key = change, call.api_version
    # Another object depends on what this watch selects.
    is_shared = is_shared and obj is event.obj
    line = event.lines.get(key) if is_shared else None
    if line is None:
        line = _format_line(change, shape(conversion.as_version(obj, call.api_version)))
        if is_shared:
            event.lines[key] = line
    return line


def _format_bookmark(
    call: Call, revision: int, shape: Shape, annotations: Mapping[str, str] | None = None
) -> bytes:
    meta: Obj = {"resourceVersion": str(revision)}
    if annotations:
        meta["annotations"] = annotations
    typed = {"kind": call.kind.name, "apiVersion": call.api_version}
    return _format_line("BOOKMARK", shape(encode_object({**typed, "metadata": meta})))
