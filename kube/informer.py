"""A kind of object, followed by a watch: one list, then every change until it is stopped.

The first list is made by the thread that asks, so that a refusal reaches it directly. After that a
thread of its own follows: it opens the watch again where the server ended it, lists again where the
server has forgotten the place (410 Gone, and nothing else: what happened between the last event and
a list is lost), and keeps trying where the server is away or refuses, saying in `trouble` why what
it knows may be old.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import closing

from kube.api import Resource, collect_objects, request_list
from kube.base.errors import TargetError
from kube.connection import Connection
from kube.errors import ApiError, of_status
from kube.store import Store, version_of
from kube.transport import Stream
from kube.values import Obj

_LOG = logging.getLogger(__name__)

_WATCH_SECONDS = 290  # below the five minutes at which proxies and servers cut connections

Listener = Callable[[str, Obj], None]
"""Called with ADDED, MODIFIED or DELETED and the object, in the order of the watch. After a new
list also with LISTED and the list (``items``, ``metadata``), which replaces all that was known, up
to the version ``since``."""


class Informer:
    """Follows one resource in one namespace, or in all (``namespace`` None).

    With ``selected`` (``kube.api.selection``) it is there to be listened to: what is selected no
    longer is deleted for the store, for good. With ``keep`` only what it makes of an object is
    known and told, and lists come in pages; ``metadata`` must stay as it is read here (name,
    namespace, uid, resourceVersion).

    Attributes:
        store: what is known; may also be fed with the responses to one's own requests.
        trouble: None, or why the watch is interrupted now (with the moment since when).
    """

    def __init__(
        self,
        connection: Connection,
        resource: Resource,
        namespace: str | None = None,
        agent: str = "",
        selected: Mapping[str, str] | None = None,
        keep: Callable[[Obj], Obj] | None = None,
    ) -> None:
        self.resource = resource
        self._keep = keep
        self.namespace = namespace
        self.store = Store()
        self.trouble: tuple[float, TargetError] | None = None
        self._connection = connection
        self._agent = agent
        self._path = resource.path(namespace)
        self._selected = dict(selected or {})
        self._version = ""
        self._forgotten = True
        self._listeners: list[Listener] = []
        self._lock = threading.Lock()
        self._stream: Stream | None = None
        self._stopping = threading.Event()
        self._thread = threading.Thread(
            target=self._follow, name=f"watch {resource.plural} {namespace or ''}", daemon=True
        )

    def start(self) -> None:
        """List, then start to follow. Raises ApiError or TargetError."""
        self._list()
        self._thread.start()

    def listen(self, listener: Listener) -> None:
        """Call ``listener`` for every change from now on, in the watching thread."""
        self._listeners = [*self._listeners, listener]

    def unlisten(self, listener: Listener) -> None:
        self._listeners = [other for other in self._listeners if other != listener]

    def stop(self) -> None:
        self._stopping.set()
        with self._lock:
            stream = self._stream
        if stream is not None:
            stream.stop()
        if self._thread.is_alive() and self._thread is not threading.current_thread():
            self._thread.join(10)

    def _list(self) -> None:
        if self._keep is None:
            object_list = request_list(
                self._connection, self._path, self._agent, selected=self._selected
            )
            kind = str(object_list.get("kind", "")).removesuffix("List") or self.resource.kind
            for item in object_list["items"]:
                item.setdefault(
                    "apiVersion", object_list.get("apiVersion", self.resource.api_version)
                )
                item.setdefault("kind", kind)
        else:
            items, metadata = collect_objects(
                self._connection, self.resource, self._keep, self.namespace
            )
            object_list = {
                "kind": f"{self.resource.kind}List",
                "metadata": metadata,
                "items": items,
            }
        since, self._version = self._version, object_list["metadata"].get("resourceVersion", "")
        self._forgotten = not self._version
        self.store.replace(object_list["items"], version_of(object_list))
        self._tell("LISTED", {**object_list, "since": since})

    def _follow(self) -> None:
        pause = 0.05
        failure: TargetError | None
        while not self._stopping.is_set():
            try:
                if self._forgotten:
                    self._list()
                if self._watch():
                    pause = 0.05
                    continue
                failure = None  # the server ends each watch at once: back off
            except ApiError as error:
                self._forgotten = error.code == 410
                if self._forgotten:
                    continue
                failure = TargetError(
                    f"{self._connection.where} refuses to watch {self._path}: {error}"
                )
            except TargetError as error:
                failure = error
            if failure is not None and not self._stopping.is_set():
                since = self.trouble[0] if self.trouble else time.monotonic()
                self.trouble = (since, failure)
                self._tell("TROUBLE", {})
                _LOG.info("watch of %s: retry in %.2f s: %s", self._path, pause, failure)
            self._stopping.wait(pause)
            pause = min(pause * 2, 2.0)

    def _watch(self) -> bool:
        """Follow one watch to its end; whether it brought anything."""
        stream = self._connection.stream(
            self._path,
            {
                **self._selected,
                "watch": "true",
                "resourceVersion": self._version,
                "allowWatchBookmarks": "true",
                "timeoutSeconds": str(_WATCH_SECONDS),
            },
            self._agent,
        )
        with self._lock:
            self._stream = stream
        if self._stopping.is_set():
            stream.stop()
        _LOG.debug("watching %s from version %s", self._path, self._version)
        self.trouble = None
        brought = False
        try:
            with closing(iter(stream)) as events:
                for event in events:
                    try:
                        self._take(event["type"], event["object"])
                    except (KeyError, TypeError, AttributeError):
                        raise TargetError("unexpected watch event") from None
                    brought = True
        except TargetError:
            if not brought and not self._stopping.is_set():
                raise  # a connection that is cut at once, again and again, is trouble
        finally:
            with self._lock:
                self._stream = None
            _LOG.debug("watch of %s ended", self._path)
        return brought

    def _take(self, change: str, obj: Obj) -> None:
        if change == "ERROR":
            raise of_status(obj)
        self._version = obj["metadata"].get("resourceVersion", self._version)
        if change == "BOOKMARK":
            return
        obj = self._keep(obj) if self._keep else obj
        if change == "DELETED":
            self.store.remove(obj)
        else:
            self.store.put(obj)
        self._tell(change, obj)

    def _tell(self, change: str, obj: Obj) -> None:
        for listener in self._listeners:
            listener(change, obj)
