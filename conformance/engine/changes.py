"""Send what a scenario wants changed: by a step, or to see it refused."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Protocol

from conformance.engine.ledger import Ledger
from conformance.scenario.base import ObjectSelector
from conformance.scenario.changes import Changes, Delete, Update
from conformance.targets.base import ApiError, Obj, Objs, Ref, Request, Scope

_ATTEMPTS = 5
"""To replace an object that somebody else changes, too."""


class Finder(Protocol):
    """Who finds what is to be changed: the context of the running scenario."""

    scope: Scope
    ledger: Ledger

    def find(self, selector: ObjectSelector) -> Objs:
        """All objects that a selector names."""


class NotOneError(LookupError):
    """What is to be changed is not there, or not alone.

    Attributes:
        wanted: the object in words.
        found: what was there instead.
    """

    def __init__(self, wanted: str, found: str) -> None:
        super().__init__(f"{wanted}: {found}")
        self.wanted = wanted
        self.found = found


def send(changes: Changes, deleted: tuple[Delete, ...], context: Finder) -> None:
    """Send the requests of a step, or of a ``rejected``, one after the other.

    Raises:
        NotOneError: an object is not there.
        ApiError: the API server refused one.
        TargetError: no answer.
    """
    for request in _requests(changes, deleted, context):
        context.scope.send(request)
    if changes.update is not None:
        _update(changes.update, context, dry_run=changes.dry_run)


def _requests(changes: Changes, deleted: tuple[Delete, ...], context: Finder) -> Iterator[Request]:
    dry = changes.dry_run
    if changes.patch is not None:
        patch = changes.patch
        found = context.find(patch)
        if len(found) != 1:
            raise NotOneError(f"one {patch.describe()} to patch", f"{len(found)}")
        ref = Ref.of(found[0])
        yield Request("patch", ref, patch.body, patch.subresource or "", dry_run=dry)
    if changes.evict is not None:
        pod = _pod(changes.evict.pod, changes.evict.namespace, context)
        body = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": _names(pod)}
        yield Request("create", pod, body, "eviction", dry_run=dry)
    if changes.bind is not None:
        pod = _pod(changes.bind.pod, changes.bind.namespace, context)
        target = {"apiVersion": "v1", "kind": "Node", "name": changes.bind.node}
        body = {"apiVersion": "v1", "kind": "Binding", "metadata": _names(pod), "target": target}
        yield Request("create", pod, body, "binding", dry_run=dry)
    for item in deleted:
        yield from _deletions(item, context, dry_run=dry)


def _update(update: Update, context: Finder, *, dry_run: bool) -> None:
    """Replace an object: as `kubectl replace` whatever it is now, unless a version is given."""
    obj = context.ledger.labelled(dict(update.object))
    ref = Ref.of(obj)
    given = obj["metadata"].get("resourceVersion")
    for attempts_left in reversed(range(_ATTEMPTS)):
        if given is None:
            there = context.scope.get(ref)
            if there is None:
                raise NotOneError(f"{ref} to update", "none")
            obj["metadata"]["resourceVersion"] = there["metadata"]["resourceVersion"]
        try:
            context.scope.send(
                Request("update", ref, obj, update.subresource or "", dry_run=dry_run)
            )
        except ApiError as error:
            if error.code != 409 or given is not None or not attempts_left:
                raise
        else:
            return


def _deletions(item: Delete, context: Finder, *, dry_run: bool) -> Iterator[Request]:
    found = context.find(item)
    if not found:
        raise NotOneError(f"{item.describe()} to delete", "none")
    options: dict[str, Any] = {"propagationPolicy": item.propagation}
    if item.grace_seconds is not None:
        options["gracePeriodSeconds"] = item.grace_seconds
    if item.collection:
        first = Ref.of(found[0])
        every = Ref(first.api_version, first.kind, "", first.namespace)
        # Never more than what the scenario itself has made.
        labels = {**(item.labels or {}), **context.ledger.labels}
        yield Request("deletecollection", every, options, labels=labels, dry_run=dry_run)
        return
    for obj in found:
        yield Request("delete", Ref.of(obj), options, dry_run=dry_run)


def _pod(name: str, namespace: str | None, context: Finder) -> Ref:
    return Ref("v1", "Pod", name, namespace or context.scope.namespace)


def _names(ref: Ref) -> Obj:
    return {"name": ref.name, "namespace": ref.namespace}
