"""Defects of device files: of which number they are, and who may open them."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable
from typing import Any

from kube.cdi.edits import ContainerEdits
from kubesim.nodes.driver import NodeDriver
from kubesim.world import World
from tests.mutants.replacing import Defects, Mutation, instead, replace


def given_with(**changed: Any) -> Mutation:
    """The driver's device files are given to containers otherwise."""

    @instead(NodeDriver.edits)
    def mutate(
        _: Any, original: Callable[..., ContainerEdits], ids: Iterable[str]
    ) -> ContainerEdits:
        found = original(ids)
        nodes = tuple(
            dataclasses.replace(node, **changed) if node.path[-1:].isdigit() else node
            for node in found.device_nodes
        )
        return dataclasses.replace(found, device_nodes=nodes)

    return mutate


def open_every_device(world: World) -> None:
    for kubelet in world.kubelets:
        replace(kubelet.device_cgroup.permits, lambda *_: True)


DEFECTS: Defects = {
    "containers-open-every-device": open_every_device,
    "device-files-cannot-be-opened": given_with(permissions="m"),
    "device-files-of-one-number": given_with(minor=0),
}
