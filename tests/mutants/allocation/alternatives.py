"""Defects of firstAvailable: alternatives, and what belongs to the one that is taken."""

from __future__ import annotations

from collections.abc import Callable

from kube.values import Obj
from kubesim.scheduling.binding import Binder
from kubesim.world import World
from reference_allocator.api.limits import ALLOCATION_RESULTS_MAX
from tests.mutants.allocation.inputs import (
    changed,
    constraints_of,
    reads_claims,
    requests,
    results,
    writes,
)
from tests.mutants.replacing import Defects, Mutation, instead


def last_alternative_first(claim: Obj) -> None:
    for request in requests(claim):
        (request.get("firstAvailable") or []).reverse()


def only_first(count: int) -> Mutation:
    def change(claim: Obj) -> None:
        for request in requests(claim):
            del (request.get("firstAvailable") or [])[count:]

    return reads_claims(change)


def only_first_alternatives_count(claim: Obj) -> None:
    first = [request.get("exactly") or request["firstAvailable"][0] for request in requests(claim)]
    if sum(wanted.get("count", 0) for wanted in first) > ALLOCATION_RESULTS_MAX:
        for request in requests(claim):
            del (request.get("firstAvailable") or [])[1:]


def alternatives_lose(field: str) -> Mutation:
    def change(claim: Obj) -> None:
        for request in requests(claim):
            for item in request.get("firstAvailable") or []:
                item.pop(field, None)

    return reads_claims(change)


def later_alternatives_lose_mode(claim: Obj) -> None:
    for request in requests(claim):
        for item in (request.get("firstAvailable") or [])[1:]:
            item.pop("allocationMode", None)


def constraints_spare_alternatives(claim: Obj) -> None:
    if any(request.get("firstAvailable") for request in requests(claim)):
        found = constraints_of(claim)
        found[:] = [item for item in found if "matchAttribute" not in item]


def lose_alternative(allocation: Obj) -> None:
    for result in results(allocation):
        result["request"] = result["request"].partition("/")[0]


@instead(Binder.reserve_claim)
def config_of_all(
    _: World, original: Callable[..., Obj], pod: Obj, claim: Obj, allocation: Obj | None
) -> Obj:
    """Everything that a claim says of configuration is copied."""
    found = (claim["spec"].get("devices") or {}).get("config") or []
    if allocation is not None and found:
        (allocation,) = changed([allocation], lambda new: copy_config(new, found))
    return original(pod, claim, allocation)


def copy_config(allocation: Obj, found: list[Obj]) -> None:
    config = allocation["devices"].get("config") or []
    from_class = [item for item in config if item["source"] == "FromClass"]
    from_claim = [{**item, "source": "FromClaim"} for item in found]
    allocation["devices"]["config"] = from_class + from_claim


DEFECTS: Defects = {
    "alternatives-lose-count": alternatives_lose("count"),
    "later-alternatives-lose-mode": reads_claims(later_alternatives_lose_mode),
    "constraints-spare-alternatives": reads_claims(constraints_spare_alternatives),
    "alternatives-lose-tolerations": alternatives_lose("tolerations"),
    "config-of-all-alternatives": config_of_all,
    "last-alternative-first": reads_claims(last_alternative_first),
    "loses-chosen-alternative": writes(lose_alternative),
    "only-first-alternatives-count": reads_claims(only_first_alternatives_count),
}
