"""Defects of the kubelet's PodResources API."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from kube.values import Obj
from tests.mutants.replacing import Defects, instead


@instead("kubelets.pod_resources.claims_of")
def all_for_each_container(kubelet: Any, _original: object, pod: Obj, _container: Obj) -> list[Obj]:
    manager = kubelet.dra_manager
    return [claim for _, claim in manager.claims_of(pod) if claim is not None]


@instead("kubelets.pod_resources.claims_of")
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
