"""The shortest history that still shows a violation, and how it is printed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from conformance.engine.run.churn_invariants import (
    Inventory,
    Violation,
    reserved_for_nobody,
    violations_in,
)
from conformance.seam.watching import Obj, Version
from kube.slices import results_of


def shortest(
    versions: Sequence[Version], violation: Violation, inventory: Inventory
) -> list[Version]:
    """Drop the objects that the violation does not need, then all but the last moments.

    An object is dropped with its whole history, which cannot make another object's state wrong. The
    result starts with the state of each object at that time.
    """
    at_last = {"reserved": reserved_for_nobody, "left": left}

    def shows(history: Sequence[Version]) -> bool:
        if violation.rule in at_last:
            return violation.text in [item.text for item in at_last[violation.rule](history)]
        return any(
            (item.rule, item.version) == (violation.rule, violation.version)
            for item in violations_in(history, inventory)
        )

    needed = [version for version in versions if version[0] <= violation.version]
    if not shows(needed):
        return needed
    for uids in _parts(list(dict.fromkeys(uid for _, uid, _ in needed))):
        without = [version for version in needed if version[1] not in uids]
        if shows(without):
            needed = without
    for start in range(len(needed) - 1, 0, -1):
        before = {uid: (number, uid, state) for number, uid, state in needed[:start]}
        window = [*sorted(before.values(), key=lambda item: item[0]), *needed[start:]]
        if shows(window):
            return window
    return needed


def left(versions: Sequence[Version]) -> Iterator[Violation]:
    """What still exists after the last version."""
    for obj in {uid: state for _, uid, state in versions}.values():
        if obj is not None:
            meta = obj["metadata"]
            text = f"{obj['kind']} {meta['namespace']}/{meta['name']} is left"
            yield Violation("left", 0, f"{text}, though all was deleted")


def _parts(uids: Sequence[str]) -> Iterator[frozenset[str]]:
    """Both halves, then all quarters, and so on down to single objects."""
    size = len(uids)
    while size := size // 2:
        yield from (frozenset(uids[at : at + size]) for at in range(0, len(uids), size))


def lines(versions: Sequence[Version]) -> list[str]:
    """One line for each state of an object."""
    names = {
        uid: f"{state['kind']} {state['metadata']['namespace']}/{state['metadata']['name']}"
        for _, uid, state in versions
        if state is not None
    }
    return [
        f"{version}: {names.get(uid, uid)} {_state(state) if state else 'is gone'}"
        for version, uid, state in versions
    ]


def _state(obj: Obj) -> str:
    status = obj["status"]
    if obj["kind"] == "Pod":
        text = f"on {obj['spec'].get('nodeName', 'no node')}, {status.get('phase')}"
    else:
        names = (f"{one['pool']}/{one['device']}" for one in results_of(obj))
        text = "has " + (", ".join(names) or "nothing")
        users = ", ".join(user["name"] for user in status.get("reservedFor") or ())
        text += f" for {users}" if users else ""
    return text + (", being deleted" if "deletionTimestamp" in obj["metadata"] else "")
