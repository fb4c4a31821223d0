"""The lines of a watch over HTTP, as they come."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Mapping
from typing import Final

from starlette.concurrency import run_in_threadpool

from kube.errors import ApiError
from kube.values import Obj
from kubesim.apiserver import conversion
from kubesim.apiserver.watches import Matches
from kubesim.front.backend import Backend, Event
from kubesim.front.body import build_status
from kubesim.front.call import Call

_INITIAL_END: Final = "k8s.io/initial-events-end"


async def stream_watch(backend: Backend, call: Call, seconds: int) -> AsyncIterator[bytes]:
    """Yield a line of JSON for each event, for a time or until the backend's history is closed."""
    loop = asyncio.get_running_loop()
    deadline = loop.time() + seconds
    queue: asyncio.Queue[Event | None] = asyncio.Queue()

    def hear(event: Event | None) -> None:
        loop.call_soon_threadsafe(queue.put_nowait, event)

    unfollow = backend.history.follow(hear)
    try:
        revision, lines = await run_in_threadpool(_list_initial_lines, backend, call)
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
                yield _format_event(event, call, selects)
    except TimeoutError:
        if call.has_flag("allowWatchBookmarks"):
            yield _format_bookmark(call, revision)
    finally:
        unfollow()


def _list_initial_lines(backend: Backend, call: Call) -> tuple[int, list[bytes]]:
    """Return up to which revision, and with which lines a watch begins.

    These are all objects, or the events after a resourceVersion.
    """
    initial = call.has_flag("sendInitialEvents")
    after = call.read_number("resourceVersion")
    selects = call.build_selection()
    with backend.lock:
        revision = backend.store.revision
        if after and not initial:
            try:
                events = backend.history.events_since(after)
            except ApiError as error:
                return revision, [_format_line("ERROR", build_status(error))]
            return revision, [_format_event(event, call, selects) for event in events]
        selected = [conversion.to_version(obj, call.api_version) for obj in backend.select(call)]
    lines = [_format_line("ADDED", obj) for obj in selected]
    if initial:
        lines.append(_format_bookmark(call, revision, {_INITIAL_END: "true"}))
    return revision, lines


def _format_line(kind: str, obj: Obj) -> bytes:
    return json.dumps({"type": kind, "object": obj}).encode() + b"\n"


def _format_event(event: Event, call: Call, selects: Matches) -> bytes:
    """Return an event as a watch has it; empty where it has none of it."""
    watch_event = event.as_watch_event(call.kind.name, selects)
    return (
        b""
        if watch_event is None
        else _format_line(watch_event[0], conversion.to_version(watch_event[1], call.api_version))
    )


def _format_bookmark(
    call: Call, revision: int, annotations: Mapping[str, str] | None = None
) -> bytes:
    meta: Obj = {"resourceVersion": str(revision)}
    if annotations:
        meta["annotations"] = annotations
    typed = {"kind": call.kind.name, "apiVersion": call.api_version}
    return _format_line("BOOKMARK", {**typed, "metadata": meta})
