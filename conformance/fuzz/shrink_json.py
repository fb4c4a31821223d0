"""Makes a failing problem small: takes parts away as long as it still fails.

Knows nothing of Kubernetes: lists lose items, objects lose fields, long lists in halves first, and
numbers get smaller. What is left is a problem in which every part matters.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Sequence
from typing import Any

_KEPT = ("id", "metadata", "name", "namespace", "apiVersion", "kind", "kubernetes")
"""Fields that stay: two claims without a name are the same claim to some."""
_COUNTED = ("resourceSliceCount", "generation")
"""Numbers that stay: slices that disagree about their pool can be understood in two ways."""
_TOGETHER = 24

Json = dict[str, Any]
Path = tuple[str | int, ...]
Part = tuple[Path, int]
"""Where, and how many items of a list are taken away; 0: the number there is halved."""


def shrink(problem: Json, fails: Callable[[Json], bool], *, budget: int = 5000) -> Json:
    """A problem that fails, too, and from which nothing more can be taken.

    Args:
        problem: one that fails; it stays as it is.
        fails: whether a problem fails; must not raise.
        budget: how many problems are tried at most.
    """
    return shrink_together(problem, lambda one: [fails(one[0])], budget=budget, together=1)


def shrink_together(
    problem: Json,
    fail: Callable[[Sequence[Json]], Sequence[bool]],
    *,
    possible: Callable[[Json], bool] = lambda _: True,
    budget: int = 600,
    together: int = _TOGETHER,
) -> Json:
    """As `shrink`, where many problems are tried at once: the parts that can go, go together.

    Args:
        fail: whether each of some problems fails.
        possible: whether a problem is one that can be tried at all.
        together: how many are tried at once.
    """
    smallest, progress = copy.deepcopy(problem), True
    while progress:
        progress, parts = False, list(_parts(smallest))
        while parts and budget > 0:
            chunk: list[tuple[Part, Json]] = []
            while parts and len(chunk) < together:
                candidate = without(smallest, [part := parts.pop(0)])
                if candidate != smallest and possible(candidate):
                    chunk.append((part, candidate))
            budget -= len(chunk)
            failed = fail([candidate for _, candidate in chunk]) if chunk else ()
            gone = [part for (part, _), fails in zip(chunk, failed, strict=True) if fails]
            while gone:
                progress, candidate = True, without(smallest, gone)
                if len(gone) == 1:
                    smallest = candidate
                    break
                budget -= 1
                if possible(candidate) and fail([candidate])[0]:
                    smallest = candidate
                    break
                gone = gone[: len(gone) // 2]  # not all together; the rest is tried again
    return smallest


def without(problem: Json, parts: Sequence[Part]) -> Json:
    """A copy from which parts are gone; what is not there any more is left out."""
    found = copy.deepcopy(problem)
    # From the end, so that what is taken first moves nothing that is taken later.
    for path, span in sorted(parts, key=lambda part: [str(step).zfill(8) for step in part[0]])[
        ::-1
    ]:
        _remove(found, path, span)
    return found


def _parts(value: Any, path: Path = ()) -> Iterator[Part]:
    """What could be taken away, big parts first."""
    if isinstance(value, list):
        size = len(value) // 2
        while size > 1:
            for start in range(0, len(value), size):
                yield (*path, start), size
            size //= 2
        for index in reversed(range(len(value))):
            yield (*path, index), 1
        for index, item in enumerate(value):
            yield from _parts(item, (*path, index))
    elif isinstance(value, dict):
        for key in list(value):
            if key not in _KEPT:
                yield (*path, key), 1
        for key, item in value.items():
            yield from _parts(item, (*path, key))
    elif isinstance(value, int) and value > 1 and path[-1] not in _COUNTED:
        yield path, 0


def _remove(problem: Json, path: Path, span: int) -> None:
    """Takes a part away in place, or halves a number, if it is there."""
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
