"""Finds what carries the run label at the end of a run, and removes what other runs left."""

from __future__ import annotations

from collections.abc import Collection

from conformance.engine.objects.classes import used_by
from conformance.engine.setup import Setup
from conformance.seam.scope import Scope, Target
from kube.base.errors import TargetError, TargetGoneError
from kube.errors import ApiError
from kube.nodes import RUN_LABEL
from kube.values import Ref

NAMESPACES_MARKED = 30.0
"""Seconds until every namespace of a run must be terminating; all are empty by then."""

GONE = 120.0
"""Seconds until everything must be gone, with the namespaces."""


def last_look(
    scope: Scope, setup: Setup, names: Collection[str]
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Look for anything that carries the run's label.

    A namespace was seen to be empty before and after its deletion; kube-controller-manager then
    takes some seconds (5 s, ``namespaceDeletionGracePeriod``).
    ``names``: of the namespaces of its scenarios.
    Returns what is left, and the namespaces that are terminating.
    """

    def terminating() -> list[Ref] | None:
        refs = [Ref("v1", "Namespace", name) for name in sorted(names)]
        present_namespaces = [(ref, obj) for ref in refs if (obj := scope.get(ref)) is not None]
        marked = [
            ref for ref, obj in present_namespaces if obj["metadata"].get("deletionTimestamp")
        ]
        return marked if len(marked) == len(present_namespaces) else None

    try:
        try:
            going = scope.wait(terminating, NAMESPACES_MARKED) or []
        except TargetGoneError:  # a part of it; the API server may still answer
            going = terminating() or []
        owned = setup.opened.target.owned(setup.run)
        own_namespaces = (ref for ref in owned if ref.kind == "Namespace" and ref not in going)
        states = [(ref, scope.get(ref)) for ref in own_namespaces]  # made by a step
        # None: it was still there when all were listed, and is gone by now.
        going += [ref for ref, obj in states if not obj or "deletionTimestamp" in obj["metadata"]]
    except TargetGoneError:
        label = f"{RUN_LABEL}={setup.run}"
        return (f"perhaps all objects labelled {label}: the cluster does not answer",), ()
    except (ApiError, TargetError) as error:
        return (f"what the run made could not be looked for: {error}",), ()
    left = tuple(str(ref) for ref in owned if ref not in going)
    return left, tuple(ref.name for ref in going if ref in owned)


def sweep(target: Target, run: str | None = None, timeout: float = GONE) -> tuple[str, ...]:
    """Delete what ``target.owned`` finds and wait until it finds nothing; what is left, in words.

    Pods are deleted without a grace period. A DeviceClass that other runs use is left to them.
    """
    problems: list[str] = []
    scope = target.scope("dra-conformance-cleanup")
    try:
        owned = target.owned(run, every_kind=True)
        if run is not None:
            owned = [ref for ref in owned if ref.kind != "DeviceClass"]
        for ref in owned:
            try:
                scope.delete(ref, 0 if ref.kind == "Pod" else None)
            except ApiError as error:
                problems.append(f"{ref}: {error.message}")
        for shared in used_by(scope, run) if run is not None else ():
            problems += shared.leave()
        end = target.now() + timeout
        remaining: list[Ref] = target.owned(run, every_kind=True)
        while remaining and target.now() < end:
            scope.pause(0.5)
            remaining = target.owned(run, every_kind=True)
    finally:
        scope.close()
    return (*problems, *map(str, remaining))
