"""Defects of preemption: who has to go for a pod of higher priority."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from kube.values import Obj
from kubesim import pods
from kubesim.scheduling.nodefit import Misfit
from kubesim.scheduling.preemption import Preemption
from kubesim.world import World
from tests.mutants.replacing import Defects, instead, replace


def preempts_nobody(world: World) -> None:
    replace(world.scheduler.preemption.preempt, lambda *_: "")


@instead(Preemption.preempt)
def preempts_for_devices(
    world: World,
    original: Callable[..., str],
    pod: Obj,
    claims: Sequence[Obj],
    unfit: Mapping[str, Sequence[Misfit]],
) -> str:
    """Every claimant of lower priority on a node without a device has to go."""
    for other in world.cluster.store.all("Pod"):
        lower = pods.priority_of(other) < pods.priority_of(pod)
        if lower and claims and other["spec"].get("nodeName") in unfit:
            world.api.delete_stored(other)
    return original(pod, claims, unfit)


DEFECTS: Defects = {
    "preempts-for-devices": preempts_for_devices,
    "preempts-nobody": preempts_nobody,
}
