"""Remove everything that carries the run label, whoever left it there."""

from __future__ import annotations

from conformance.engine.classes import used_by
from conformance.targets.seam.scope import Target
from conformance.targets.seam.values import ApiError, Ref

GONE = 120.0
"""Seconds until everything must be gone, the namespaces included."""


def sweep(target: Target, run: str | None = None, timeout: float = GONE) -> tuple[str, ...]:
    """Delete what ``target.owned`` finds, in its order, and wait until it finds nothing.

    Pods are deleted without a grace period. A DeviceClass that other runs use too is left to them.

    Returns:
        What is left, in words.
    """
    problems: list[str] = []
    scope = target.scope("dra-conformance-cleanup")
    try:
        found = target.owned(run, every_kind=True)
        if run is not None:
            found = [ref for ref in found if ref.kind != "DeviceClass"]
        for ref in found:
            try:
                scope.delete(ref, 0 if ref.kind == "Pod" else None)
            except ApiError as error:
                problems.append(f"{ref}: {error.message}")
        for shared in used_by(scope, run) if run is not None else ():
            problems += shared.leave()
        end = target.now() + timeout
        left: list[Ref] = target.owned(run, every_kind=True)
        while left and target.now() < end:
            scope.pause(0.5)
            left = target.owned(run, every_kind=True)
    finally:
        scope.close()
    return (*problems, *map(str, left))
