"""What else runs in correct clusters, and changes or refuses what the suite makes."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any, Final

from conformance import probe
from kube.errors import ApiError
from kube.values import Obj
from kubesim.controllers.node_lifecycle import NodeLifecycleController
from kubesim.world import World
from tests.mutants.replacing import part, replace

HOLLOW: Final = "dra-conformance.dev/hollow"
Create = Callable[[Obj, str], Obj]


def _hollow(obj: Obj) -> bool:
    taints = obj.get("spec", {}).get("taints") or ()
    return obj["kind"] == "Node" and any(one["key"] == HOLLOW for one in taints)


def mesh(world: World) -> None:
    """A service mesh gives each pod a sidecar, whose name sorts before all others."""

    def create(original: Create, obj: Obj, *args: Any) -> Obj:
        if obj["kind"] == "Pod":
            obj = copy.deepcopy(obj)
            proxy = {"name": "a-proxy", "image": "mesh", "command": list(probe.HOLD)}
            first = {**proxy, "restartPolicy": "Always"}
            obj["spec"]["initContainers"] = [first, *(obj["spec"].get("initContainers") or ())]
            obj["metadata"].setdefault("annotations", {})["mesh.example.com/injected"] = "true"
        return original(obj, *args)

    replace(world.api.create, create)


def policy(world: World) -> None:
    """A webhook refuses nodes that no cloud has."""

    def create(original: Create, obj: Obj, *args: Any) -> Obj:
        if _hollow(obj):
            said = 'admission webhook "nodes.policy.example.com" denied the request: not ours'
            raise ApiError(403, "Forbidden", said)
        return original(obj, *args)

    replace(world.api.create, create)


def readiness_taint(world: World) -> None:
    """Something taints each new node until an agent has started on it; on hollow ones none does."""

    def create(original: Create, obj: Obj, *args: Any) -> Obj:
        if _hollow(obj):
            obj = copy.deepcopy(obj)
            taint = {"key": "node.cilium.io/agent-not-ready", "effect": "NoSchedule"}
            obj["spec"]["taints"].append(taint)
        return original(obj, *args)

    replace(world.api.create, create)


def cloud(reads: Callable[[str], bool]) -> Callable[[World], None]:
    """A cloud controller manager deletes nodes that are not ready and have no instance.

    ``reads``: whether it can read a provider id; a node whose id it cannot read is kept.
    """

    def install(world: World) -> None:
        def sync(original: Callable[[], None]) -> None:
            original()
            for node in world.cluster.store.all("Node"):
                conditions = node["status"].get("conditions") or ()
                ready = any((c["type"], c["status"]) == ("Ready", "True") for c in conditions)
                known = reads(str((node.get("spec") or {}).get("providerID", "")))
                if not ready and known and _hollow(node):
                    world.api.delete_stored(node)

        replace(part(world, NodeLifecycleController).sync, sync)

    return install


def no_scheme(provider_id: str) -> bool:
    """As most clouds: an id of another scheme is an error, none is asked for by the node's name."""
    return provider_id == ""


def any_scheme(_: str) -> bool:
    return True


OTHERS: Final[dict[str, Callable[[World], Any]]] = {
    "a service mesh": mesh,
    "a policy": policy,
    "a readiness taint": readiness_taint,
    "a cloud": cloud(no_scheme),
    "a cloud that reads any id": cloud(any_scheme),
}
