"""The lines of a watch over HTTP, as they come."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Mapping
from typing import Final

from starlette.concurrency import run_in_threadpool

from kube.errors import ApiError
from kube.values import Obj
from kubesim.apiserver import conversion
from kubesim.apiserver.watches import Matches
from kubesim.front.answers import Form
from kubesim.front.backend import Backend, Event
from kubesim.front.body import build_status
from kubesim.front.call import Call

_INITIAL_END: Final = "k8s.io/initial-events-end"


Shape = Callable[[Obj], Obj]
"""From an object in a call's version to what an event has of it."""


async def stream_watch(
    backend: Backend, call: Call, seconds: int, form: Form
) -> AsyncIterator[bytes]:
    """Yield a line of JSON for each event, for a time or until the backend's history is closed."""
    loop = asyncio.get_running_loop()
    deadline = loop.time() + seconds
    queue: asyncio.Queue[Event | None] = asyncio.Queue()

    def hear(event: Event | None) -> None:
        loop.call_soon_threadsafe(queue.put_nowait, event)

    shape = _make_shape(backend, call, form)
    unfollow = backend.history.follow(hear)
    try:
        revision, lines = await run_in_threadpool(_list_initial_lines, backend, call, shape)
        for line in lines:
            yield line
        selects = call.build_selection()
        while True:
            async with asyncio.timeout_at(deadline):
                event = await queue.get()
            if event is None:
                return
            if event.revision > revision:  # else it is among the first lines
                revision = event.revision
                yield _format_event(event, call, selects, shape)
    except TimeoutError:
        if call.list_options.bookmarks and revision > 0:
            yield _format_bookmark(call, revision, shape)
    finally:
        unfollow()


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


def _list_initial_lines(backend: Backend, call: Call, shape: Shape) -> tuple[int, list[bytes]]:
    """Return up to which revision, and with which lines a watch begins.

    These are all objects, or the events after a resourceVersion.
    """
    options = call.list_options
    after = int(options.revision or 0)
    selects = call.build_selection()
    with backend.lock:
        revision = backend.store.revision
        if after and not options.initial_events:
            try:
                events = backend.history.events_since(after)
            except ApiError as error:
                return revision, [_format_line("ERROR", build_status(error))]
            return revision, [_format_event(event, call, selects, shape) for event in events]
        selected = [conversion.to_version(obj, call.api_version) for obj in backend.select(call)]
    if options.initial_events is False:
        return revision, []
    lines = [_format_line("ADDED", shape(obj)) for obj in selected]
    if options.bookmarks and "sendInitialEvents" in call.query:
        lines.append(_format_bookmark(call, revision, shape, {_INITIAL_END: "true"}))
    return revision, lines


def _format_line(kind: str, obj: Obj) -> bytes:
    return json.dumps({"type": kind, "object": obj}).encode() + b"\n"


def _format_event(event: Event, call: Call, selects: Matches, shape: Shape) -> bytes:
    """Return an event as a watch has it; empty where it has none of it."""
    watch_event = event.as_watch_event(call.kind.name, selects)
    if watch_event is None:
        return b""
    change, obj = watch_event
    return _format_line(change, shape(conversion.to_version(obj, call.api_version)))


def _format_bookmark(
    call: Call, revision: int, shape: Shape, annotations: Mapping[str, str] | None = None
) -> bytes:
    meta: Obj = {"resourceVersion": str(revision)}
    if annotations:
        meta["annotations"] = annotations
    typed = {"kind": call.kind.name, "apiVersion": call.api_version}
    return _format_line("BOOKMARK", shape({**typed, "metadata": meta}))
