"""Makes a failing problem small: takes parts away as long as it still fails.

Knows nothing of Kubernetes: lists lose items, objects lose fields, long lists in halves first. What
is left is a problem in which every part matters.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from typing import Any

_KEPT = ("id", "metadata", "name")
"""Fields that stay: two claims without a name are the same claim to some."""

Json = dict[str, Any]
Path = tuple[str | int, ...]


def shrink(problem: Json, fails: Callable[[Json], bool], *, budget: int = 5000) -> Json:
    """A problem that fails, too, and from which nothing more can be taken.

    Args:
        problem: one that fails; it stays as it is.
        fails: whether a problem fails; must not raise.
        budget: how many problems are tried at most.
    """
    smallest = copy.deepcopy(problem)
    tried = 0
    progress = True
    while progress:
        progress = False
        for path, span in list(_parts(smallest)):
            if tried >= budget:
                return smallest
            candidate = copy.deepcopy(smallest)
            if not _remove(candidate, path, span):
                continue
            tried += 1
            if fails(candidate):
                smallest = candidate
                progress = True
    return smallest


def _parts(value: Any, path: Path = ()) -> Iterator[tuple[Path, int]]:
    """What could be taken away: (where, how many items of a list), big parts first."""
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


def _remove(problem: Json, path: Path, span: int) -> bool:
    """Takes a part away in place; False where it is gone already."""
    parent: Any = problem
    *above, last = path
    try:
        for step in above:
            parent = parent[step]
        if isinstance(parent, list):
            if not isinstance(last, int) or last >= len(parent):
                return False
            del parent[last : last + span]
        else:
            del parent[last]
    except (KeyError, IndexError, TypeError):
        return False
    return True
