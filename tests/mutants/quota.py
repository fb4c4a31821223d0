"""Defects of quotas."""

from __future__ import annotations

from collections.abc import Callable

from kube.values import Obj
from kubesim.apiserver.admission import Quotas, Usage
from kubesim.world import World
from tests.mutants.replacing import Defects, Mutation, instead


def forgets(kind: str, prefix: str) -> Mutation:
    """Objects of a kind do not count for what begins so."""

    @instead(Quotas.usage_of)
    def mutate(_: World, original: Callable[[Obj], Usage], obj: Obj) -> Usage:
        used = original(obj)
        if obj["kind"] == kind:
            for name in [name for name in used if name.startswith(prefix)]:
                del used[name]
        return used

    return mutate


DEFECTS: Defects = {
    "quota-counts-no-claims": forgets("ResourceClaim", "count/"),
    "quota-of-extended-resources-forgets-claims": forgets("ResourceClaim", "requests."),
}
