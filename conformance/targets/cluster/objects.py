"""Objects as a scenario reads and changes them: from watches while it waits, else from the server.

While a scenario waits, what its check reads comes from watches, so that it is looked at again at
every change and at no other time. Outside of a wait, and once more before a wait gives up, reads go
to the API server itself: what is reported as a mismatch is what the server says, never what a
watch was late to tell.
"""

from __future__ import annotations

import time

from kube.api import Api, Resource
from kube.base.errors import TargetError
from kube.informer import Informer
from kube.informers import Changes, InformerFactory
from kube.store import has_labels
from kube.values import Obj, Query, Ref

_TROUBLE_SECONDS = 30.0
"""How long a watch may be interrupted during a wait before the wait ends with an error."""


class Objects:
    """The objects of a scenario's namespace, and those of the cluster.

    ``changes``: notified of whatever a check has read, and of what was learned.

    ``waiting``: whether a check is being made, which is repeated when something changes.
    """

    def __init__(
        self,
        api: Api,
        namespace: str,
        own: InformerFactory,
        shared: InformerFactory,
        changes: Changes,
    ) -> None:
        self._api = api
        self._default = namespace
        self._own = own
        self._shared = shared
        self._changes = changes
        self.waiting = False

    def locate(self, ref: Ref | Query) -> tuple[Resource, str | None]:
        """Return the kind that is meant, and the namespace if it has one. Raises ApiError."""
        resource = self._api.discovery.find(ref.api_version, ref.kind)
        return resource, self.choose_namespace(resource, ref.namespace)

    def choose_namespace(self, resource: Resource, namespace: str | None) -> str | None:
        """Return where an object of a kind is; None for one of the cluster."""
        return (namespace or self._default) if resource.namespaced else None

    def get(self, ref: Ref) -> Obj | None:
        resource, namespace = self.locate(ref)
        informer = self._watched(resource, namespace)
        if informer is not None:
            return informer.store.get(namespace, ref.name)
        return self._api.read(resource, namespace, ref.name, self._default)

    def find(self, query: Query) -> list[Obj]:
        resource, namespace = self.locate(query)
        informer = self._watched(resource, namespace)
        if informer is not None and not query.fields:
            return informer.store.list(query.labels)
        objects = self._api.list(resource, namespace, self._default, query.fields)
        return [item for item in objects if has_labels(item, query.labels)]

    def learn(self, resource: Resource, obj: Obj) -> Obj:
        """Put into the cache at once what the server answered to a request of ours."""
        namespace = obj["metadata"].get("namespace")
        informer = self._informer_of(resource, namespace)
        if informer is not None:
            if informer.resource == resource:
                informer.store.put(obj)
                self._changes.notify()
            else:
                self.relearn(resource, namespace, obj["metadata"]["name"])
        return obj

    def relearn(self, resource: Resource, namespace: str | None, name: str) -> None:
        """Bring the cache up to what the server says about one object now."""
        informer = self._informer_of(resource, namespace)
        if informer is None:
            return
        cached = informer.store.get(namespace, name)
        current = self._api.read(informer.resource, namespace, name, self._default)
        if cached is not None and (
            current is None or current["metadata"]["uid"] != cached["metadata"]["uid"]
        ):
            informer.store.remove(cached)
        if current is not None:
            informer.store.put(current)
        self._changes.notify()

    def give_up_on_trouble(self) -> None:
        """End a wait whose watches were interrupted for too long. Raises TargetError."""
        for informer in self._changes.informers:
            trouble = informer.trouble
            if trouble is not None and time.monotonic() - trouble[0] > _TROUBLE_SECONDS:
                raise TargetError(str(trouble[1]))

    def _watched(self, resource: Resource, namespace: str | None) -> Informer | None:
        """Return the informer to read from: none outside of a wait, or if it has another version.

        Also in the second case it is listened to, so that the check is repeated at each change.
        """
        if not self.waiting:
            return None
        informers = self._own if resource.namespaced else self._shared
        informer = informers.informer(resource, namespace)
        self._changes.attach(informer)
        return informer if informer.resource == resource else None

    def _informer_of(self, resource: Resource, namespace: str | None) -> Informer | None:
        informers = self._own if resource.namespaced else self._shared
        return informers.find_started(resource, namespace)
