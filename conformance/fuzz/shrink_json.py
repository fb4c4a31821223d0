"""Makes a failing problem small: takes parts away as long as it still fails.

Knows nothing of Kubernetes: lists lose items, objects lose fields, long lists in halves first, and
numbers get smaller. What is left is a problem in which every part matters.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Sequence
from typing import Any

_KEPT_FIELDS = ("id", "metadata", "name", "namespace", "apiVersion", "kind", "kubernetes")
"""Fields that stay: two claims without a name are the same claim to some."""
_KEPT_NUMBERS = ("resourceSliceCount", "generation")
"""Numbers that stay: slices that disagree about their pool can be understood in two ways."""
_AT_ONCE = 24

Json = dict[str, Any]
Path = tuple[str | int, ...]
Removal = tuple[Path, int]
"""A path, and how many items of the list there are taken away; 0: the number there is halved."""


def shrink(problem: Json, fails: Callable[[Json], bool], *, budget: int = 5000) -> Json:
    """Return a problem that fails, too, and from which nothing more can be taken.

    Args:
        problem: one that fails; it stays as it is.
        fails: whether a problem fails; must not raise.
        budget: how many problems are tried at most.
    """
    return shrink_together(
        problem, lambda candidates: [fails(candidates[0])], budget=budget, together=1
    )


def shrink_together(
    problem: Json,
    fail: Callable[[Sequence[Json]], Sequence[bool]],
    *,
    possible: Callable[[Json], bool] = lambda _: True,
    budget: int = 600,
    together: int = _AT_ONCE,
) -> Json:
    """Shrink as `shrink` does, trying many problems at once: what can go alone, goes together.

    Args:
        fail: whether each of some problems fails.
        possible: whether a problem is one that can be tried at all.
        together: how many are tried at once.
    """
    smallest, progress = copy.deepcopy(problem), True
    while progress:
        progress, removals = False, list(_possible_removals(smallest))
        while removals and budget > 0:
            chunk: list[tuple[Removal, Json]] = []
            while removals and len(chunk) < together:
                candidate = apply_removals(smallest, [removal := removals.pop(0)])
                if candidate != smallest and possible(candidate):
                    chunk.append((removal, candidate))
            budget -= len(chunk)
            failed = fail([candidate for _, candidate in chunk]) if chunk else ()
            accepted = [removal for (removal, _), fails in zip(chunk, failed, strict=True) if fails]
            while accepted:
                progress, candidate = True, apply_removals(smallest, accepted)
                if len(accepted) == 1:
                    smallest = candidate
                    break
                budget -= 1
                if possible(candidate) and fail([candidate])[0]:
                    smallest = candidate
                    break
                # Not all can go together; the others are tried again in the next round.
                accepted = accepted[: len(accepted) // 2]
    return smallest


def apply_removals(problem: Json, removals: Sequence[Removal]) -> Json:
    """Return a copy with removals applied; one whose path is not there any more is left out."""
    smaller = copy.deepcopy(problem)
    # From the end, so that what is taken first moves nothing that is taken later.
    for path, span in sorted(
        removals, key=lambda removal: [str(step).zfill(8) for step in removal[0]]
    )[::-1]:
        _apply_removal(smaller, path, span)
    return smaller


def _possible_removals(value: Any, path: Path = ()) -> Iterator[Removal]:
    """Yield what could be taken away, big parts first."""
    if isinstance(value, list):
        size = len(value) // 2
        while size > 1:
            for start in range(0, len(value), size):
                yield (*path, start), size
            size //= 2
        for index in reversed(range(len(value))):
            yield (*path, index), 1
        for index, item in enumerate(value):
            yield from _possible_removals(item, (*path, index))
    elif isinstance(value, dict):
        for key in list(value):
            if key not in _KEPT_FIELDS:
                yield (*path, key), 1
        for key, item in value.items():
            yield from _possible_removals(item, (*path, key))
    elif isinstance(value, int) and value > 1 and path[-1] not in _KEPT_NUMBERS:
        yield path, 0


def _apply_removal(problem: Json, path: Path, span: int) -> None:
    """Take a part away in place, or halve a number, if it is there."""
    parent: Any = problem
    *above, last = path
    try:
        for step in above:
            parent = parent[step]
        if not span:
            parent[last] = parent[last] // 2
        elif isinstance(parent, list):
            if isinstance(last, int) and last < len(parent):
                del parent[last : last + span]
        else:
            del parent[last]
    except (KeyError, IndexError, TypeError):
        return
