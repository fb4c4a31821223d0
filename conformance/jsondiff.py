"""Where two JSON values differ: the smallest parts, with their paths.

Lists are compared in order, as the Kubernetes API mostly means them; a list whose order has no
meaning stands in an object of the one key ``unordered`` and is compared as a multiset.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from kube.base.text import cut

UNORDERED = "unordered"
ABSENT = object()  # Stands for what one of the values has not.

_NOTHING = "<nothing>"


def differences(left: Any, right: Any, path: str = "$") -> Iterator[tuple[str, Any, Any]]:
    """Path, left and right value (:data:`ABSENT` for none) of each smallest part that differs."""
    if _is_unordered(left) and _is_unordered(right):
        only_left, only_right = _multiset_difference(left[UNORDERED], right[UNORDERED])
        if only_left or only_right:
            yield f"{path}.{UNORDERED}", only_left, only_right
    elif isinstance(left, Mapping) and isinstance(right, Mapping):
        for key in sorted({*left, *right}, key=str):
            yield from differences(left.get(key, ABSENT), right.get(key, ABSENT), f"{path}.{key}")
    elif _is_list(left) and _is_list(right):
        for index in range(max(len(left), len(right))):
            yield from differences(
                left[index] if index < len(left) else ABSENT,
                right[index] if index < len(right) else ABSENT,
                f"{path}[{index}]",
            )
    elif left is ABSENT or right is ABSENT or _key(left) != _key(right):
        yield path, left, right


def json_text(value: Any, longest: int = 500) -> str:
    """A JSON value (or :data:`ABSENT`) on one line, for people."""
    return _NOTHING if value is ABSENT else cut(_key(value), longest)


def _multiset_difference(left: Sequence[Any], right: Sequence[Any]) -> tuple[list[Any], list[Any]]:
    """What only the left and what only the right list has, duplicates counted."""
    one, two = Counter(map(_key, left)), Counter(map(_key, right))
    return (
        [json.loads(key) for key in sorted((one - two).elements())],
        [json.loads(key) for key in sorted((two - one).elements())],
    )


def _key(value: Any) -> str:
    return json.dumps(_canonical(value), sort_keys=True, ensure_ascii=True)


def _canonical(value: Any) -> Any:
    """The value with every unordered list sorted, so that equal multisets read alike."""
    if _is_unordered(value):
        return {UNORDERED: sorted((_canonical(item) for item in value[UNORDERED]), key=_key)}
    if isinstance(value, Mapping):
        return {str(key): _canonical(item) for key, item in value.items()}
    if _is_list(value):
        return [_canonical(item) for item in value]
    return value


def _is_list(value: Any) -> bool:
    return isinstance(value, Sequence) and not isinstance(value, str | bytes)


def _is_unordered(value: Any) -> bool:
    return isinstance(value, Mapping) and set(value) == {UNORDERED} and _is_list(value[UNORDERED])
