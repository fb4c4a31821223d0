"""Defects of the kubelet's PodResources API."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from conformance.targets.reference.world import World
from conformance.targets.seam.values import Obj
from tests.mutants.replacing import Defects, replace


def all_for_each_container(world: World) -> None:
    for kubelet in world.kubelets:
        manager = kubelet.dra_manager

        def claims_of(
            _original: object, pod: Obj, _container: Obj, manager: Any = manager
        ) -> list[Obj]:
            return [claim for _, claim in manager.claims_of(pod) if claim is not None]

        replace(kubelet.pod_resources, "claims_of", claims_of)


def none_of_templates(world: World) -> None:
    """Claims are looked up by what the pod's spec says, which names no generated one."""

    def claims_of(original: Callable[..., list[Obj]], pod: Obj, container: Obj) -> list[Obj]:
        found = original(pod, container)
        return [claim for claim in found if not claim["metadata"].get("ownerReferences")]

    for kubelet in world.kubelets:
        replace(kubelet.pod_resources, "claims_of", claims_of)


DEFECTS: Defects = {
    "lists-all-claims-of-the-pod": all_for_each_container,
    "lists-no-generated-claims": none_of_templates,
}
