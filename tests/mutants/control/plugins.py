"""Defects of a scheduler where device plugins serve an extended resource, too."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from kube.values import Obj
from kubesim.scheduling.filtering import Filter
from kubesim.scheduling.nodefit import Misfit
from kubesim.store import clone
from kubesim.world import World
from reference_allocator.extended import is_extended_resource
from tests.mutants.replacing import Defects, instead


@instead(Filter.extended_claim)
def plugins_serve_everywhere(
    world: World, original: Callable[..., Any], pod: Obj, _node: Obj, *args: Any
) -> Any:
    """A resource that a plugin provides on some node is left to plugins on all of them."""
    nodes = world.cluster.store.all("Node")
    found = [(node.get("status") or {}).get("allocatable") or {} for node in nodes]
    anywhere = {n: a for node in found for n, a in node.items() if is_extended_resource(n)}
    provided = {name: amount for name, amount in anywhere.items() if amount != "0"}
    return original(pod, {**_node, "status": {"allocatable": provided}}, *args)


@instead(Filter.check_node)
def users_of_claims_take_none(
    _: World,
    original: Callable[..., Sequence[Misfit]],
    pod: Obj,
    plan: Any,
    node: Obj,
    others: Sequence[Obj],
    *args: Any,
) -> Sequence[Misfit]:
    """Of a pod with claims all extended resources are taken for such as its claims satisfy."""
    return original(pod, plan, node, [*map(without_plugins, others)], *args)


def without_plugins(pod: Obj) -> Obj:
    if not pod["spec"].get("resourceClaims"):
        return pod
    other = clone(pod)
    for container in other["spec"]["containers"]:
        amounts = (container.get("resources") or {}).get("requests") or {}
        for name in [name for name in amounts if is_extended_resource(name)]:
            del amounts[name]
    return other


DEFECTS: Defects = {
    "device-plugins-serve-every-node": plugins_serve_everywhere,
    "pods-with-claims-take-nothing-from-plugins": users_of_claims_take_none,
}
