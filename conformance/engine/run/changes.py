"""Sends the requests of a step, or of an expectation ``rejected``."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any, Protocol

from conformance.engine.objects.ledger import Ledger
from conformance.scenario.base import ObjectSelector
from conformance.scenario.changes import AccountName, Changes, Delete, Update
from conformance.seam.scope import Objects
from kube.errors import ApiError
from kube.values import FieldManager, Obj, Ref, Request, User

_ATTEMPTS = 5
"""To replace an object that others change, too."""


class Finder(Protocol):
    """What this needs of a running scenario."""

    @property
    def scope(self) -> Objects: ...
    @property
    def ledger(self) -> Ledger: ...
    @property
    def captured(self) -> Mapping[str, Obj]: ...
    def find(self, selector: ObjectSelector) -> list[Obj]: ...
    def user(self, account: AccountName | None) -> User | None: ...


class NotOneError(LookupError):
    """What is to be changed does not exist, or there are several of it."""

    def __init__(self, wanted: str, found: str) -> None:
        super().__init__(f"{wanted}: {found}")
        self.wanted = wanted
        self.found = found


def send(changes: Changes, deleted: tuple[Delete, ...], attempt: Finder) -> None:
    """Send all requests, one after the other.

    Raises:
        NotOneError: an object does not exist.
        ApiError: the API server refused one.
        TargetError: no answer.
    """
    user = attempt.user(changes.account)

    def sent(request: Request) -> None:
        attempt.scope.send(replace(request, dry_run=changes.dry_run, user=user))

    for request in _requests(changes, deleted, attempt):
        sent(request)
    if changes.update is not None:
        _update(changes.update, attempt, sent)


def _requests(changes: Changes, deleted: tuple[Delete, ...], attempt: Finder) -> Iterator[Request]:
    if changes.patch is not None:
        patch = changes.patch
        found = attempt.find(patch)
        if len(found) != 1:
            raise NotOneError(f"one {patch.describe()} to patch", f"{len(found)}")
        ref, body = Ref.of(found[0]), patch.body
        if patch.unchanged_since is not None:
            version = _version(attempt.captured[patch.unchanged_since])
            body = {
                **body,
                "metadata": {**(body.get("metadata") or {}), "resourceVersion": version},
            }
        yield Request("patch", ref, body, patch.subresource or "")
    if changes.server_side_apply is not None:
        applied = changes.server_side_apply
        obj = attempt.ledger.applied(applied.object, subresource=applied.subresource or "")
        how = FieldManager(applied.field_manager, applied.force)
        yield Request("patch", Ref.of(obj), obj, applied.subresource or "", manager=how)
    if changes.evict is not None:
        pod = _pod(changes.evict.pod, changes.evict.namespace, attempt)
        body = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": _names(pod)}
        yield Request("create", pod, body, "eviction")
    if changes.bind is not None:
        pod = _pod(changes.bind.pod, changes.bind.namespace, attempt)
        target = {"apiVersion": "v1", "kind": "Node", "name": changes.bind.node}
        body = {"apiVersion": "v1", "kind": "Binding", "metadata": _names(pod), "target": target}
        yield Request("create", pod, body, "binding")
    for item in deleted:
        yield from _deletions(item, attempt)


def _update(update: Update, attempt: Finder, sent: Callable[[Request], None]) -> None:
    """Replace an object as `kubectl replace` does, whatever it is now unless a version is given."""
    obj = attempt.ledger.labelled(dict(update.object))
    ref = Ref.of(obj)
    if update.unchanged_since is not None:
        obj["metadata"]["resourceVersion"] = _version(attempt.captured[update.unchanged_since])
    version = obj["metadata"].get("resourceVersion")
    for attempts_left in reversed(range(_ATTEMPTS)):
        if version is None:
            present = attempt.scope.get(ref)
            if present is None:
                raise NotOneError(f"{ref} to update", "none")
            obj["metadata"]["resourceVersion"] = _version(present)
        try:
            sent(Request("update", ref, obj, update.subresource or ""))
        except ApiError as error:
            if error.code != 409 or version is not None or not attempts_left:
                raise
        else:
            return


def _deletions(item: Delete, attempt: Finder) -> Iterator[Request]:
    objects = attempt.find(item)
    if not objects:
        raise NotOneError(f"{item.describe()} to delete", "none")
    options: dict[str, Any] = {"propagationPolicy": item.propagation}
    if item.grace_seconds is not None:
        options["gracePeriodSeconds"] = item.grace_seconds
    if item.preconditions is not None:
        options["preconditions"] = item.preconditions.model_dump(by_alias=True, exclude_none=True)
    if item.collection:
        first = Ref.of(objects[0])
        every = Ref(first.api_version, first.kind, "", first.namespace)
        # Never more than what the scenario itself has made.
        labels = {**(item.labels or {}), **attempt.ledger.labels}
        yield Request("deletecollection", every, options, labels=labels)
        return
    for obj in objects:
        yield Request("delete", Ref.of(obj), options)


def _pod(name: str, namespace: str | None, attempt: Finder) -> Ref:
    return Ref("v1", "Pod", name, namespace or attempt.scope.namespace)


def _version(obj: Mapping[str, Any]) -> str:
    version: str = obj["metadata"]["resourceVersion"]
    return version


def _names(ref: Ref) -> Obj:
    return {"name": ref.name, "namespace": ref.namespace}
