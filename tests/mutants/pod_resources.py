"""Defects of the kubelet's PodResources API."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from kube.values import Obj
from kubesim.nodes.podstatus import PodResources
from tests.mutants.replacing import Defects, instead


@instead(PodResources.claims_of)
def all_for_each_container(
    own: PodResources, _original: object, pod: Obj, _container: Obj
) -> list[Obj]:
    return [claim for _, claim in own._manager.claims_of(pod) if claim is not None]


@instead(PodResources.claims_of)
def none_of_templates(
    _: Any, original: Callable[..., list[Obj]], pod: Obj, container: Obj
) -> list[Obj]:
    """Claims are looked up by what the pod's spec says, which names no generated one."""
    found = original(pod, container)
    return [claim for claim in found if not claim["metadata"].get("ownerReferences")]


DEFECTS: Defects = {
    "lists-all-claims-of-the-pod": all_for_each_container,
    "lists-no-generated-claims": none_of_templates,
}
