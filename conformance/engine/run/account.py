"""Keeps what components say of a scenario's pods and claims, as lines that two targets can share.

A watch brings each state that a pod ever has, so that a state which passes counts as much as the
one that a step happens to look at.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import groupby
from typing import Any, Final

from conformance.results.events.account import MAX_LINE, MAX_LINES, Account
from conformance.seam.scope import Scope
from conformance.seam.watching import Event, Watching
from kube.base.errors import TargetError
from kube.base.text import one_line
from kube.errors import ApiError
from kube.observations import DriverCall
from kube.values import Obj, Query

Canonical = Callable[[str], str]
"""Makes a text the same in every run and on every target."""

_UID: Final = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_TIME: Final = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z")
_DEVICE: Final = re.compile(r"<uid>-[\w.-]+")
"""Of a CDI device; which of several devices a claim has is judged as its allocation."""

_SUFFIX: Final = re.compile(r"[a-z0-9]{5}$")
"""What the API server puts behind a ``generateName``."""

_ABOUT: Final = ("Pod", "ResourceClaim")
_CONTAINERS: Final = ("initContainerStatuses", "containerStatuses")


class AccountKeeper:
    """Keeps the account of one scenario: of pods and events until `take`, of calls until `finish`.

    What cannot be watched or read is not kept, and ends no scenario.
    """

    def __init__(self, scope: Scope, nodes: Iterable[str], canonical: Canonical) -> None:
        """Begin to watch.

        Args:
            nodes: the names of the target's nodes.
            canonical: the scenario's own, for the names in its steps.
        """
        self._scope = scope
        self._nodes = nodes
        self._rename = canonical
        self._account: Account | None = None
        self._watches: tuple[Watching, Watching] | None = None
        with suppress(ApiError, TargetError):
            self._watches = scope.watch(Query("v1", "Pod")), scope.watch(Query("v1", "Event"))

    def take(self) -> None:
        """Take what was said so far of pods and in events."""
        if self._watches is None:
            return
        with suppress(TargetError):
            pods, events = (watching.events() for watching in self._watches)
            self._rename = _make_renaming([obj for _, obj in pods], self._nodes, self._rename)
            self._account = Account(
                events=_make_lines(map(self._rename, _describe_events(events))),
                pods=_describe_pods(pods, self._rename),
            )

    def finish(self) -> Account | None:
        """Return all of it with what drivers were asked, None where something is not known."""
        if self._account is None:
            return None
        calls = self._scope.observe.driver_calls()
        return replace(self._account, calls=_describe_calls(calls, self._rename))


def _describe_calls(
    calls: Sequence[DriverCall] | None, rename: Canonical
) -> Mapping[str, tuple[str, ...]] | None:
    if calls is None:
        return None
    lines_by_claim: dict[str, list[str]] = {}
    for call in calls:
        answer = f"{call.operation}: {call.error}" if call.error else call.operation
        line = one_line(rename(answer), MAX_LINE)
        lines_by_claim.setdefault(rename(call.claim), []).append(line)
    return {
        claim: tuple(line for line, _ in groupby(lines))[:MAX_LINES]
        for claim, lines in sorted(lines_by_claim.items())
    }


def _make_renaming(
    pods: Iterable[Mapping[str, Any]], nodes: Iterable[str], canonical: Canonical
) -> Canonical:
    """Return what replaces names that differ between targets."""
    names = dict.fromkeys(nodes, "<node>")
    for pod in pods:
        meta, status = pod["metadata"], pod.get("status") or {}
        if meta.get("generateName"):
            names[meta["name"]] = _without_suffix(meta["name"])
        claims = [*(status.get("resourceClaimStatuses") or ())]
        claims.append(status.get("extendedResourceClaimStatus") or {})
        for claim in claims:
            name = claim.get("resourceClaimName") or ""
            if name.startswith(meta["name"]):
                names[name] = names.get(meta["name"], meta["name"]) + _without_suffix(
                    name.removeprefix(meta["name"])
                )
            elif name:  # a status can name the claim of another pod, which says more of it
                names.setdefault(name, _without_suffix(name))
        for container in (pod.get("spec") or {}).get("containers") or ():
            names.setdefault(container.get("image") or "<image>", "<image>")
    # The longest first: the name of a claim begins with that of its pod.
    ordered = sorted(names, key=len, reverse=True)
    pattern = re.compile("|".join(rf"(?<![\w-]){re.escape(name)}(?![\w-])" for name in ordered))

    def rename(text: str) -> str:
        text = _DEVICE.sub("<uid>-<device>", _TIME.sub("<time>", _UID.sub("<uid>", text)))
        return canonical(pattern.sub(lambda match: names[match[0]], text) if ordered else text)

    return rename


def _without_suffix(name: str) -> str:
    return _SUFFIX.sub("*", name)


def _make_lines(texts: Iterable[str]) -> tuple[str, ...]:
    return tuple(sorted({one_line(text, MAX_LINE) for text in texts})[:MAX_LINES])


def _describe_events(changes: Iterable[Event]) -> Iterator[str]:
    for change, event in changes:
        about = event.get("involvedObject") or {}
        if change != "DELETED" and about.get("kind") in _ABOUT:
            component = event.get("reportingComponent") or (event.get("source") or {}).get(
                "component"
            )
            yield (
                f"{about['kind']} {about.get('name')}: {event.get('type')} {event.get('reason')}"
                f" of {component}: {event.get('message') or ''}"
            )


def _describe_pods(changes: Iterable[Event], rename: Canonical) -> Mapping[str, tuple[str, ...]]:
    lines_by_pod: dict[str, set[str]] = {}
    for _, pod in changes:
        lines = lines_by_pod.setdefault(rename(pod["metadata"]["name"]), set())
        lines.update(map(rename, _describe_status(pod.get("status") or {})))
    return {name: _make_lines(lines) for name, lines in sorted(lines_by_pod.items())}


def _describe_status(status: Mapping[str, Any]) -> Iterator[str]:
    yield _join("phase", status.get("phase"), status.get("reason"), status.get("message"))
    for condition in status.get("conditions") or ():
        what = f"{condition['type']}={condition['status']}"
        yield _join("condition", what, condition.get("reason"), condition.get("message"))
    for claim in status.get("resourceClaimStatuses") or ():
        yield _join("claim", claim["name"], claim.get("resourceClaimName"))
    if special := status.get("extendedResourceClaimStatus"):
        yield _join("extended resources", special.get("resourceClaimName"))
        for mapping in special.get("requestMappings") or ():
            yield _join("mapping", *(mapping[key] for key in sorted(mapping)))
    for field in _CONTAINERS:
        for container in status.get(field) or ():
            yield from _describe_container(container)


def _describe_container(container: Obj) -> Iterator[str]:
    name = f"container {container['name']}"
    for state, details in (container.get("state") or {}).items():
        code = details.get("exitCode")
        text = None if code is None else f"code {code}"
        yield _join(name, state, text, details.get("reason"), details.get("message"))
    for resource in container.get("allocatedResourcesStatus") or ():
        for device in resource.get("resources") or ():
            health = _join(device.get("health"), device.get("message"))
            yield _join(name, resource["name"], device.get("resourceID"), health)


def _join(*texts: str | None) -> str:
    """Return the texts that there are, in a line."""
    return ": ".join(text for text in texts if text)
