"""Defects of firstAvailable where the alternatives or their devices have another feature."""

from __future__ import annotations

from collections.abc import Callable

from kube.values import Obj
from kubesim.scheduling.binding import Binder
from kubesim.store import clone
from kubesim.world import World
from tests.mutants.allocation.inputs import reads_claims, requests, results, writes
from tests.mutants.replacing import Defects, instead


@instead(Binder.reserve_claim)
def first_ones_tolerations(
    _: World, original: Callable[..., Obj], pod: Obj, claim: Obj, allocation: Obj | None
) -> Obj:
    """The allocation repeats the tolerations of the alternative that comes first."""
    if allocation is not None:
        allocation = clone(allocation)
        first = {
            request["name"]: request["firstAvailable"][0].get("tolerations")
            for request in requests(claim)
            if request.get("firstAvailable")
        }
        for result in results(allocation):
            name, chosen, _ = result["request"].partition("/")
            if chosen:
                result.pop("tolerations", None)
                if first[name]:
                    result["tolerations"] = first[name]
    return original(pod, claim, allocation)


def one_class(claim: Obj) -> None:
    for request in requests(claim):
        for item in request.get("firstAvailable") or []:
            item["deviceClassName"] = request["firstAvailable"][0]["deviceClassName"]


def no_binding_conditions(allocation: Obj) -> None:
    for result in results(allocation):
        if "/" in result["request"]:
            result.pop("bindingConditions", None)
            result.pop("bindingFailureConditions", None)


DEFECTS: Defects = {
    "alternatives-are-of-one-class": reads_claims(one_class),
    "alternatives-do-not-wait-for-conditions": writes(no_binding_conditions),
    "alternatives-have-tolerations-of-the-first": first_ones_tolerations,
}
