"""Defects of what components count."""

from __future__ import annotations

from collections.abc import Callable

from kube.observations import CREATES, OPERATIONS
from kubesim.cluster import Counts
from kubesim.world import World
from tests.mutants.replacing import Defects, Mutation, instead


def forgets(component: str, metric: str, operation: str = "") -> Mutation:
    """A component of a role does not count something."""

    @instead(Counts.count)
    def mutate(_: World, original: Callable[..., None], of: str, name: str, **labels: str) -> None:
        same = of.endswith(component) and name == metric
        if not same or labels.get("operation_name", "") != operation:
            original(of, name, **labels)

    return mutate


@instead(Counts.count)
def count_success_as_error(
    _: World, original: Callable[..., None], of: str, name: str, **labels: str
) -> None:
    """As kubelets before 1.36 (pkg/kubelet/cm/dra/manager.go)."""
    if name == OPERATIONS:
        labels["is_error"] = {"true": "false", "false": "true"}[labels["is_error"]]
    original(of, name, **labels)


DEFECTS: Defects = {
    "extended-claims-are-not-counted": forgets("kube-scheduler", CREATES),
    "preparations-count-as-errors": count_success_as_error,
    "unpreparing-is-not-counted": forgets("kubelet", OPERATIONS, "UnprepareResources"),
}
