"""Defects of extended resources that devices stand for."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from kube.values import Obj, Ref
from kubesim.scheduling.filtering import Filter
from kubesim.store import clone
from kubesim.world import World
from reference_allocator.extended import IMPLICIT_PREFIX
from tests.mutants.replacing import Defects, Mutation, instead, replace


def ignores_extended_resources(world: World) -> None:
    replace(world.scheduler.filter.extended_resources, lambda _: {})


@instead(Filter.extended_claim)
def ignores_device_plugins(
    _: World, original: Callable[..., Any], pod: Obj, node: Obj, *args: Any
) -> Any:
    return original(pod, {**node, "status": {}}, *args)


@instead(Filter.extended_claim)
def one_extended_device(_: World, original: Callable[..., Any], *args: Any) -> Any:
    claim, mappings = original(*args)
    for request in claim["spec"]["devices"]["requests"] if claim else ():
        request["exactly"]["count"] = 1
    return claim, mappings


@instead(Filter.extended_resources)
def no_implicit_resources(_: World, original: Callable[[], Mapping[str, str]]) -> Mapping[str, str]:
    return {n: c for n, c in original().items() if not n.startswith(IMPLICIT_PREFIX)}


@instead(Filter.extended_claim)
def zero_is_one(_: World, original: Callable[..., Any], pod: Obj, *args: Any) -> Any:
    asks = clone(pod)
    for container in asks["spec"]["containers"]:
        for amounts in (container.get("resources") or {}).values():
            for name in amounts if isinstance(amounts, dict) else ():
                amounts[name] = "1" if amounts[name] == "0" else amounts[name]
    return original(asks, *args)


def remembers_plugins(world: World) -> None:
    had = set()

    def extended_claim(original: Callable[..., Any], pod: Obj, node: Obj, *args: Any) -> Any:
        status = node.get("status") or {}
        for name in status.get("allocatable") or {}:
            if name.partition("/")[2]:
                had.add((node["metadata"]["name"], name))
        known = {name: "100" for place, name in had if place == node["metadata"]["name"]}
        allocatable = {**(status.get("allocatable") or {}), **known}
        return original(pod, {**node, "status": {**status, "allocatable": allocatable}}, *args)

    replace(world.scheduler.filter.extended_claim, extended_claim)


@instead(Filter.extended_claim)
def init_containers_keep_theirs(
    _: World, original: Callable[..., Any], pod: Obj, *args: Any
) -> Any:
    asks = clone(pod)
    asks["spec"]["containers"] = asks["spec"].pop("initContainers", []) + asks["spec"]["containers"]
    return original(asks, *args)


def loses_resources(
    on_delete: Callable[[Obj], set[str]], on_change: Callable[[Obj, Obj], set[str]]
) -> Mutation:
    """Return what lets the scheduler forget for ever which class provides a resource.

    Each function returns the resources that are lost when a class goes, or from old to new.
    """

    def mutation(world: World) -> None:
        lost: set[str] = set()

        def change(original: Callable[..., Obj], ref: Ref, *args: Any) -> Obj:
            old = world.api.get(ref, "") if ref.kind == "DeviceClass" else None
            new = original(ref, *args)
            if old is not None:
                lost.update(on_change(old, new))
            return new

        def delete_stored(original: Callable[..., None], obj: Obj, *args: Any) -> None:
            if obj["kind"] == "DeviceClass":
                lost.update(on_delete(obj))
            original(obj, *args)

        replace(world.api.change, change)
        replace(world.api.delete_stored, delete_stored)
        replace(
            world.scheduler.filter.extended_resources,
            lambda original: {n: c for n, c in original().items() if n not in lost},
        )

    return mutation


def resources_of(device_class: Obj) -> set[str]:
    name = device_class["spec"].get("extendedResourceName")
    return {name} if name else set()


DEFECTS: Defects = {
    "changed-classes-provide-nothing": loses_resources(
        lambda _: set(), lambda old, new: resources_of(old) & resources_of(new)
    ),
    "deleted-classes-take-their-resource-along": loses_resources(resources_of, lambda *_: set()),
    "renamed-classes-take-their-resource-along": loses_resources(
        lambda _: set(), lambda old, new: resources_of(old) - resources_of(new)
    ),
    "ignores-device-plugins": ignores_device_plugins,
    "ignores-extended-resources": ignores_extended_resources,
    "ignores-implicit-extended-resources": no_implicit_resources,
    "init-containers-keep-extended-devices": init_containers_keep_theirs,
    "remembers-device-plugins": remembers_plugins,
    "zero-of-an-extended-resource-is-one": zero_is_one,
    "one-device-for-extended-resources": one_extended_device,
}
