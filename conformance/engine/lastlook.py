"""At the end of a run: whether it has left anything behind."""

from __future__ import annotations

from collections.abc import Collection

from conformance.engine.setup import Setup
from conformance.errors import TargetGoneError
from conformance.targets.seam.scope import Scope
from conformance.targets.seam.values import RUN_LABEL, ApiError, Ref, TargetError

NAMESPACES_MARKED = 30.0
"""Seconds until every namespace of a run must be on its way out; all of them are empty by then."""


def last_look(
    scope: Scope, setup: Setup, names: Collection[str]
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Look for anything at all that carries the run's label.

    A namespace was seen to be empty before it was marked for deletion and after; the cluster
    then takes its time (kube-controller-manager: 5 s, ``namespaceDeletionGracePeriod``).

    Args:
        scope: any of the run's.
        setup: the run's.
        names: of the namespaces that its scenarios had.

    Returns:
        What is left, and the namespaces that are on their way out.
    """

    def terminating() -> list[Ref] | None:
        refs = [Ref("v1", "Namespace", name) for name in sorted(names)]
        there = [(ref, obj) for ref in refs if (obj := scope.get(ref)) is not None]
        marked = [ref for ref, obj in there if obj["metadata"].get("deletionTimestamp")]
        return marked if len(marked) == len(there) else None

    try:
        try:
            going = scope.wait(terminating, NAMESPACES_MARKED) or []
        except TargetGoneError:  # a part of it; the API server may still answer
            going = terminating() or []
        owned = setup.opened.target.owned(setup.run)
        others = (ref for ref in owned if ref.kind == "Namespace" and ref not in going)
        found = [(ref, scope.get(ref)) for ref in others]  # made by a step
        going += [ref for ref, obj in found if obj and "deletionTimestamp" in obj["metadata"]]
    except TargetGoneError:
        label = f"{RUN_LABEL}={setup.run}"
        return (f"perhaps all objects labelled {label}: the cluster does not answer",), ()
    except (ApiError, TargetError) as error:
        return (f"what the run made could not be looked for: {error}",), ()
    left = tuple(str(ref) for ref in owned if ref not in going)
    return left, tuple(ref.name for ref in going if ref in owned)
