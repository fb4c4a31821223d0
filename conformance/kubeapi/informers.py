"""The informers of a scenario and of its target: started when first needed, shared where possible.

Following a kind costs a connection and a thread, so a scenario follows only what its expectations
look at, in its own namespace; what has no namespace is followed once for all scenarios.
"""

from __future__ import annotations

import threading

from conformance.kubeapi.connection import Connection
from conformance.kubeapi.discovery import Resource
from conformance.kubeapi.informer import Informer

_Key = tuple[str, str, str]  # group, kind, namespace ("" for all)


class InformerFactory:
    """A set of informers, at most one for each kind and namespace. Safe for threads."""

    def __init__(self, connection: Connection, agent: str = "") -> None:
        self._connection = connection
        self._agent = agent
        self._lock = threading.Lock()
        self._informers: dict[_Key, Informer] = {}

    def started(self, resource: Resource, namespace: str | None) -> Informer | None:
        """The informer that follows this kind there already, in whichever of its versions."""
        return self._informers.get(_key(resource, namespace))

    def informer(self, resource: Resource, namespace: str | None) -> Informer:
        """The informer for a kind, listed once already. Raises ApiError or TargetError."""
        with self._lock:
            informer = self._informers.get(_key(resource, namespace))
            if informer is None:
                informer = Informer(self._connection, resource, namespace, self._agent)
                informer.start()
                self._informers[_key(resource, namespace)] = informer
            return informer

    def all(self) -> list[Informer]:
        """All informers that were started."""
        with self._lock:
            return list(self._informers.values())

    def stop(self) -> None:
        """End all watches."""
        with self._lock:
            informers = list(self._informers.values())
            self._informers.clear()
        for informer in informers:
            informer.stop()


def _key(resource: Resource, namespace: str | None) -> _Key:
    return resource.group, resource.kind, (namespace or "") if resource.namespaced else ""
