"""What a front serves: an API server's objects, their history, and who may change them when."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from conformance.targets.reference.apiserver.handling import Handler
from conformance.targets.reference.apiserver.server import ApiServer
from conformance.targets.reference.cluster import Cluster
from conformance.targets.reference.front.call import Call
from conformance.targets.reference.front.history import History
from conformance.targets.reference.store import name_of, namespace_of
from conformance.targets.seam.values import Obj


class Backend:
    """The objects of one cluster.

    Args:
        kubernetes: version that is reported, for example 1.37.1.
    """

    def __init__(
        self,
        cluster: Cluster,
        api: ApiServer,
        handler: Handler,
        kubernetes: str,
        lock: threading.RLock,
    ) -> None:
        self.api = api
        self.handler = handler
        self.kubernetes = kubernetes
        self.store = cluster.store
        self.gates = cluster.gates
        self.lock = lock
        self.history = History(cluster.store, lock)

    @contextmanager
    def changing(self) -> Iterator[None]:
        """Held by a request that changes something."""
        with self.lock:
            yield

    def select(self, call: Call) -> list[Obj]:
        """The stored objects that a call selects, in the order of their keys in etcd."""
        selects = call.selection()
        found = [one for one in self.store.all(call.kind.name) if selects(one)]
        return sorted(found, key=lambda one: (namespace_of(one), name_of(one)))
