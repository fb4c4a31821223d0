"""How a defect reaches the driver: one method of one class is replaced, for the whole process."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

PutIn = Callable[[], None]
OfTheContract = Mapping[str, tuple[str, PutIn, str]]
"""Defect -> what goes wrong, what puts it in, and the rule of driver-check that catches it."""

Json = dict[str, Any]


def instead(owner: Any, name: str, new: Callable[..., Any]) -> PutIn:
    """Replace a method of a class or a function of a module.

    Args:
        owner: whose it is.
        name: its name; there must be one.
        new: called with what was there, then with the arguments of the call.
    """

    def put_in() -> None:
        original = getattr(owner, name)
        setattr(owner, name, lambda *args, **named: new(original, *args, **named))

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
