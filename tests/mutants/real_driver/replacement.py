"""How a defect reaches the driver: one method of one class is replaced, for the whole process."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tests.mutants.replacing import Method, class_of

PutIn = Callable[[], None]
OfTheContract = Mapping[str, tuple[str, PutIn, str]]
"""Defect -> what goes wrong, what puts it in, and the rule of driver-check that catches it."""

Json = dict[str, Any]


def instead(old: Method, new: Callable[..., Any], at: Any = None) -> PutIn:
    """Return what replaces a method of a class or a function of a module.

    Args:
        old: of the class that defines it, for example ``DriverCore.prepare``, or a function.
        new: called with what was there, then with the arguments of the call.
        at: the module that uses a function, if another one defines it.
    """

    def put_in() -> None:
        owner = at or class_of(old)
        original = getattr(owner, old.__name__)
        setattr(owner, old.__name__, lambda *args, **named: new(original, *args, **named))

    return put_in


def both(*changes: PutIn) -> PutIn:
    """Several changes at once."""

    def put_in() -> None:
        for change in changes:
            change()

    return put_in


def with_results(claim: Mapping[str, Any], change: Callable[[Json, int], Json]) -> Json:
    """A ResourceClaim whose results of the allocation are others.

    Args:
        claim: as the API server has it.
        change: a result and its place to what takes its place.
    """
    allocation = claim["status"]["allocation"]
    results: Sequence[Json] = allocation["devices"].get("results") or []
    changed = [change(dict(result), place) for place, result in enumerate(results)]
    devices = {**allocation["devices"], "results": changed}
    return {
        **claim,
        "status": {**claim["status"], "allocation": {**allocation, "devices": devices}},
    }
