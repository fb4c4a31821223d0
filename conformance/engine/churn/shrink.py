"""The least that still shows a violation: of the operations, and of what was recorded."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

from conformance.targets.invariants import Inventory, Violation, reserved_for_nobody, violations_in
from conformance.targets.watching import Version

T = TypeVar("T")


def fewest(items: Sequence[T], shows: Callable[[Sequence[T]], bool]) -> list[T]:
    """Leave out what can be left out: halves first, then smaller and smaller parts.

    Args:
        items: which show it.
        shows: whether some of them, in the same order, still do.
    """
    left, size = list(items), len(items)
    while size := size // 2:
        at = 0
        while at < len(left):
            without = left[:at] + left[at + size :]
            if shows(without):
                left = without
            else:
                at += size
    return left


def shortest_history(
    versions: Sequence[Version], violation: Violation, inventory: Inventory
) -> list[Version]:
    """The objects without which the violation is not seen, from the last moment that is needed.

    Leaving an object out as a whole cannot make another's state wrong. What remains begins with the
    state that each of them has by then.
    """

    def shows(part: Sequence[Version]) -> bool:
        if violation.rule == "reserved":
            return violation.text in [item.text for item in reserved_for_nobody(part)]
        return any(
            (item.rule, item.version) == (violation.rule, violation.version)
            for item in violations_in(part, inventory)
        )

    until = [version for version in versions if version[0] <= violation.version]

    def about(uids: Sequence[str]) -> list[Version]:
        return [version for version in until if version[1] in set(uids)]

    if not shows(until):
        return until
    uids = fewest(list(dict.fromkeys(uid for _, uid, _ in until)), lambda some: shows(about(some)))
    needed = about(uids)
    for start in range(len(needed) - 1, 0, -1):
        before = {uid: (number, uid, state) for number, uid, state in needed[:start]}
        window = [*sorted(before.values(), key=lambda item: item[0]), *needed[start:]]
        if shows(window):
            return window
    return needed
