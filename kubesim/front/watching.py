"""The lines of a watch over HTTP, as they come."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import suppress
from functools import partial
from typing import Final, Protocol

from starlette.concurrency import run_in_threadpool

from kube.errors import ApiError
from kube.values import Obj
from kubesim.apiserver.watches import Matches
from kubesim.front.answers import Form, too_large_revision
from kubesim.front.backend import Backend, Event, FellBehindError, History
from kubesim.front.body import build_status
from kubesim.front.call import Call
from kubesim.front.encoded import dump_json, write_type
from kubesim.goforms import encode_object

_INITIAL_END: Final = "k8s.io/initial-events-end"


class Writer(Protocol):
    """Writes what an event of a watch has of an object, as JSON."""

    def __call__(self, obj: Obj, *, is_stored: bool = True) -> bytes:
        """Return the JSON. ``is_stored``: the object is what was stored at its resourceVersion."""
        ...


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

    async def wait(self, is_due: Callable[[], bool]) -> None:
        """Wait until something may have changed, or all are woken for another reason.

        ``is_due``: whether it has already; it is asked once nothing can be missed any more.
        """
        change: asyncio.Future[None] = self._loop.create_future()
        self._asleep.add(change)
        try:
            if not is_due():
                await change
        finally:
            self._asleep.discard(change)

    def _hear(self) -> None:
        if not self._is_due:
            self._is_due = True
            with suppress(RuntimeError):  # the loop has ended
                self._loop.call_soon_threadsafe(self.wake)

    def wake(self) -> None:
        """Wake all, in the loop's thread."""
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
    history, loop = backend.history, asyncio.get_running_loop()
    deadline = loop.time() + seconds
    write = _make_writer(backend, call, form)
    revision, position, lines = await run_in_threadpool(_list_initial_lines, backend, call, write)
    selects = call.build_selection()
    if lines:
        yield lines
    if position is None:
        return
    is_over = seconds <= 0

    def end() -> None:
        nonlocal is_over
        is_over = True
        wakeups.wake()

    # One timer for all waits: a timer for each costs as much as an event.
    timer = loop.call_at(deadline, end)
    try:
        while True:
            events = history.read_events(position)
            position += len(events)
            if events:
                revision = events[-1].revision
            if lines := b"".join(_format_event(event, call, selects, write) for event in events):
                yield lines
            if history.closed and history.position == position:
                return
            if is_over:
                break
            await wakeups.wait(partial(history.has_news, position))
    except FellBehindError:
        return
    finally:
        timer.cancel()
    if call.list_options.bookmarks and revision > 0:
        yield _format_bookmark(call, revision, write)


def _make_writer(backend: Backend, call: Call, form: Form) -> Writer:
    """Return what writes the objects of a watch; of tables only the first names the columns."""
    encoded, version = backend.encoded, call.api_version
    typed = write_type(call.kind.name, version)
    if not form.target:

        def write(obj: Obj, *, is_stored: bool = True) -> bytes:
            encode = encoded.encode_stored if is_stored else encoded.encode_other
            return typed + encode(obj, version)

        return write
    is_first = True

    def write_target(obj: Obj, *, is_stored: bool = True) -> bytes:  # noqa: ARG001 (see Writer)
        nonlocal is_first
        shaped = form.shape(backend.api, call, obj)
        if form.target == "Table" and not is_first:
            shaped["columnDefinitions"] = None
        is_first = False
        return dump_json(shaped).encode()

    return write_target


def _list_initial_lines(
    backend: Backend, call: Call, write: Writer
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
            return after, None, _format_error(error)
    with backend.lock:
        revision, position = backend.store.revision, history.position
        selected = backend.select(call)
    if options.initial_events and after > revision:
        return revision, None, _format_error(too_large_revision(after, revision))
    if options.initial_events is False:
        return revision, position, b""
    lines = [_format_line("ADDED", write(obj)) for obj in selected]
    if options.bookmarks and options.initial_events:
        lines.append(_format_bookmark(call, revision, write, {_INITIAL_END: "true"}))
    return revision, position, b"".join(lines)


def _format_line(kind: str, text: bytes) -> bytes:
    return b'{"type":"%s","object":%s}\n' % (kind.encode(), text)


def _format_error(error: ApiError) -> bytes:
    return _format_line("ERROR", dump_json(build_status(error)).encode())


def _format_event(event: Event, call: Call, selects: Matches, write: Writer) -> bytes:
    """Return an event as a watch has it; empty where it has none of it."""
    watch_event = event.as_watch_event(call.kind.name, selects)
    if watch_event is None:
        return b""
    change, obj = watch_event
    if event.type == "DELETED":
        obj = event.obj  # which is as it was last
    # Another object, with the same resourceVersion, is what this watch has selected last.
    return _format_line(change, write(obj, is_stored=obj is event.obj))


def _format_bookmark(
    call: Call, revision: int, write: Writer, annotations: Mapping[str, str] | None = None
) -> bytes:
    meta: Obj = {"resourceVersion": str(revision)}
    if annotations:
        meta["annotations"] = annotations
    typed = {"kind": call.kind.name, "apiVersion": call.api_version}
    bookmark = encode_object({**typed, "metadata": meta})
    return _format_line("BOOKMARK", write(bookmark, is_stored=False))
