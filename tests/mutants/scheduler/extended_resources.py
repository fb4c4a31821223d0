"""Defects of the claims that the scheduler makes for extended resources (KEP-5004)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from kube.observations import CREATES
from kube.values import Obj, Ref
from kubesim.cluster import Counts
from kubesim.scheduling.filtering import Filter
from kubesim.scheduling.nodefit import Misfit
from kubesim.store import clone, name_of
from kubesim.world import World
from reference_allocator.extended import ANNOTATION, IMPLICIT_PREFIX, is_extended_resource
from tests.mutants.replacing import Defects, Mutation, Original, instead, replace

Made = tuple[Obj | None, list[Obj]]


def made(change: Callable[[Obj, Obj, list[Obj]], None]) -> Mutation:
    """Something is wrong in what is made: told the pod, the claim, and the request mappings."""

    @instead(Filter.extended_claim)
    def mutate(_: World, original: Callable[..., Made], pod: Obj, *args: Any) -> Made:
        claim, mappings = original(pod, *args)
        if claim is not None:
            change(pod, claim, mappings)
        return claim, mappings

    return mutate


def of_pod(change: Callable[[Obj], None]) -> Mutation:
    """The claim is made for the pod as it would be with a change."""

    @instead(Filter.extended_claim)
    def mutate(_: World, original: Callable[..., Made], pod: Obj, *args: Any) -> Made:
        other = clone(pod)
        change(other)
        return original(other, *args)

    return mutate


def meta(change: Callable[[Obj, Obj], None]) -> Mutation:
    return made(lambda pod, claim, _: change(pod, claim["metadata"]))


def renamed(name: Callable[[Obj, int, int], str]) -> Mutation:
    """Requests have other names; told the pod, and the numbers of container and request."""

    def change(pod: Obj, claim: Obj, mappings: list[Obj]) -> None:
        requests = claim["spec"]["devices"]["requests"]
        for key, items in (("name", requests), ("requestName", mappings)):
            for item in items:
                _, container, __, request = item[key].split("-")
                item[key] = name(pod, int(container), int(request))

    return made(change)


def among_extended(pod: Obj, container: int, request: int) -> str:
    all_of_them = [*(pod["spec"].get("initContainers") or []), *pod["spec"]["containers"]]
    names = sorted((all_of_them[container].get("resources") or {}).get("requests") or {})
    before = sum(1 for name in names[:request] if is_extended_resource(name))
    return f"container-{container}-request-{before}"


def sidecars_share(pod: Obj) -> None:
    for container in pod["spec"].get("initContainers") or []:
        container.pop("restartPolicy", None)


def tolerate_everything(_: Obj, claim: Obj, __: list[Obj]) -> None:
    for request in claim["spec"]["devices"]["requests"]:
        request["exactly"]["tolerations"] = [{"operator": "Exists"}]


def first_mapping_only(_: Obj, __: Obj, mappings: list[Obj]) -> None:
    del mappings[1:]


def smallest_init_container_counts(_: Obj, claim: Obj, mappings: list[Obj]) -> None:
    """Of the short-lived containers that share a request the first decides on its size."""
    for request in claim["spec"]["devices"]["requests"]:
        users = [one for one in mappings if one["requestName"] == request["name"]]
        if len({one["containerName"] for one in users}) > 1:
            request["exactly"]["count"] = 1


def one_resource_per_container(pod: Obj) -> None:
    """Of the extended resources of a container the first by name is looked at."""
    for container in pod["spec"]["containers"]:
        requests = (container.get("resources") or {}).get("requests") or {}
        for name in sorted(filter(is_extended_resource, requests))[1:]:
            del requests[name]


@instead(Filter.extended_resources)
def oldest_class(world: World, original: Callable[[], Mapping[str, str]]) -> Mapping[str, str]:
    """Of several classes for a resource the oldest provides it."""
    found = dict(original())
    classes = world.scheduler.filter.listers.device_classes()
    classes.sort(key=lambda one: (one["metadata"]["creationTimestamp"], name_of(one)))
    for item in reversed(classes):
        if item["spec"].get("extendedResourceName") in found:
            found[item["spec"]["extendedResourceName"]] = name_of(item)
    return found


@instead(Filter.extended_resources)
def last_class_by_name(
    world: World, original: Callable[[], Mapping[str, str]]
) -> Mapping[str, str]:
    """Of equally old classes for a resource the last by name provides it."""
    found = dict(original())
    classes = world.scheduler.filter.listers.device_classes()
    classes.sort(key=lambda one: (one["metadata"]["creationTimestamp"], name_of(one)))
    for item in classes:
        if item["spec"].get("extendedResourceName") in found:
            found[item["spec"]["extendedResourceName"]] = name_of(item)
    return found


@instead(Filter.extended_resources)
def implicit_only_without_name(
    _: World, original: Callable[[], Mapping[str, str]]
) -> Mapping[str, str]:
    """A class that gives an extended resource its own name has no implicit one."""
    found = original()
    named = {c for n, c in found.items() if not n.endswith(f"/{c}") or "deviceclass." not in n}
    return {n: c for n, c in found.items() if c not in named or "deviceclass." not in n}


@instead(Filter.allocate)
def apart(_: World, original: Original, allocator: Any, node: Obj, claims: Any) -> Any:
    """The claim for extended resources is allocated as if the pod had no other claim."""
    special = [claim for claim in claims if name_of(claim).startswith("<")]
    if not special or len(claims) == 1:
        return original(allocator, node, claims)
    first = original(allocator, node, [claim for claim in claims if claim not in special])
    then = original(allocator, node, special)
    return (*first[0], *then[0]), (*first[1], *then[1])


def ignores_extended_resources(world: World) -> None:
    replace(world.scheduler.filter.extended_resources, lambda _: {})


@instead(Filter.extended_claim)
def ignores_device_plugins(_: World, original: Original, pod: Obj, node: Obj, *args: Any) -> Any:
    return original(pod, {**node, "status": {}}, *args)


@instead(Filter.extended_claim)
def one_extended_device(_: World, original: Original, *args: Any) -> Any:
    claim, mappings = original(*args)
    for request in claim["spec"]["devices"]["requests"] if claim else ():
        request["exactly"]["count"] = 1
    return claim, mappings


@instead(Filter.extended_resources)
def no_implicit_resources(_: World, original: Callable[[], Mapping[str, str]]) -> Mapping[str, str]:
    return {n: c for n, c in original().items() if not n.startswith(IMPLICIT_PREFIX)}


@instead(Filter.extended_claim)
def zero_is_one(_: World, original: Original, pod: Obj, *args: Any) -> Any:
    asks = clone(pod)
    for container in asks["spec"]["containers"]:
        for amounts in (container.get("resources") or {}).values():
            for name in amounts if isinstance(amounts, dict) else ():
                amounts[name] = "1" if amounts[name] == "0" else amounts[name]
    return original(asks, *args)


def remembers_plugins(world: World) -> None:
    had = set()

    def extended_claim(original: Original, pod: Obj, node: Obj, *args: Any) -> Any:
        status = node.get("status") or {}
        for name in status.get("allocatable") or {}:
            if name.partition("/")[2]:
                had.add((node["metadata"]["name"], name))
        known = {name: "100" for place, name in had if place == node["metadata"]["name"]}
        allocatable = {**(status.get("allocatable") or {}), **known}
        return original(pod, {**node, "status": {**status, "allocatable": allocatable}}, *args)

    replace(world.scheduler.filter.extended_claim, extended_claim)


@instead(Filter.extended_claim)
def init_containers_keep_theirs(_: World, original: Original, pod: Obj, *args: Any) -> Any:
    asks = clone(pod)
    asks["spec"]["containers"] = asks["spec"].pop("initContainers", []) + asks["spec"]["containers"]
    return original(asks, *args)


@instead(Filter.extended_claim)
def plugins_serve_everywhere(
    world: World, original: Original, pod: Obj, _node: Obj, *args: Any
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


def _sidecars_last(spec_of: Obj) -> None:
    """As if sidecars started after all other init containers, which then use their devices."""
    init = spec_of["spec"].get("initContainers") or []
    init.sort(key=lambda container: container.get("restartPolicy") == "Always")


def _own_requests(pod: Obj, _: Obj, mappings: list[Obj]) -> None:
    """An init container is said to have its own request, though another one's is made."""
    init = pod["spec"].get("initContainers") or []
    short = {c["name"]: n for n, c in enumerate(init) if c.get("restartPolicy") != "Always"}
    for mapping in mappings:
        _, number, *rest = mapping["requestName"].split("-")
        own = short.get(mapping["containerName"])
        if own is not None and int(number) in short.values():
            mapping["requestName"] = "-".join(("container", str(own), *rest))


def forgets(component: str, metric: str, operation: str = "") -> Mutation:
    """A component of a role does not count something."""

    @instead(Counts.count)
    def mutate(_: World, original: Original, of: str, name: str, **labels: str) -> None:
        same = of.endswith(component) and name == metric
        if not same or labels.get("operation_name", "") != operation:
            original(of, name, **labels)

    return mutate


def loses_resources(
    on_delete: Callable[[Obj], set[str]], on_change: Callable[[Obj, Obj], set[str]]
) -> Mutation:
    """Return what lets the scheduler forget for ever which class provides a resource.

    Each function returns the resources that are lost when a class goes, or from old to new.
    """

    def mutation(world: World) -> None:
        lost: set[str] = set()

        def change(original: Callable[..., Obj], ref: Ref, *args: Any, **how: Any) -> Obj:
            old = world.api.get(ref, "") if ref.kind == "DeviceClass" else None
            new = original(ref, *args, **how)
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
    "extended-claims-are-allocated-apart": apart,
    "extended-claims-are-not-marked": meta(lambda _, meta: meta["annotations"].pop(ANNOTATION)),
    "extended-claims-belong-to-nobody": meta(lambda _, meta: meta.pop("ownerReferences")),
    "extended-claims-are-named-like-pods": meta(
        lambda pod, meta: meta.update(generateName=f"{name_of(pod)}-")
    ),
    "extended-claims-pass-quotas": lambda world: replace(world.scheduler._refused, lambda *_: None),
    "extended-claims-tolerate-taints": made(tolerate_everything),
    "extended-requests-count-extended-resources": renamed(among_extended),
    "extended-resources-by-the-last-class": last_class_by_name,
    "extended-resources-by-the-oldest-class": oldest_class,
    "extended-resources-map-the-first-container": made(first_mapping_only),
    "first-init-container-decides-on-devices": made(smallest_init_container_counts),
    "named-classes-have-no-implicit-resource": implicit_only_without_name,
    "one-extended-resource-per-container": of_pod(one_resource_per_container),
    "sidecars-share-extended-devices": of_pod(sidecars_share),
    "ignores-device-plugins": ignores_device_plugins,
    "ignores-extended-resources": ignores_extended_resources,
    "ignores-implicit-extended-resources": no_implicit_resources,
    "init-containers-keep-extended-devices": init_containers_keep_theirs,
    "remembers-device-plugins": remembers_plugins,
    "zero-of-an-extended-resource-is-one": zero_is_one,
    "one-device-for-extended-resources": one_extended_device,
    "device-plugins-serve-every-node": plugins_serve_everywhere,
    "pods-with-claims-take-nothing-from-plugins": users_of_claims_take_none,
    "sidecars-lend-to-later-init-containers": of_pod(_sidecars_last),
    "init-containers-name-requests-that-are-not-made": made(_own_requests),
    "extended-claims-are-not-counted": forgets("kube-scheduler", CREATES),
}
