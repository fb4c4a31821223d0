"""Which devices a target has for the pods of scenarios, and on which of its nodes.

Our own allocator is asked, which knows all that decides it: how many claims for one device of the
profile's class could a node satisfy, one after another? So the class's selectors count, and so do
taints, counters that devices share, old generations and what others have allocated. On a node that
is cordoned or not ready, or has a taint that the profile does not tolerate, nothing is free.

Devices of a node are mostly alike, and of those a scheduler that ignores a selector takes a right
one, too. An attribute of which each device has a value of its own, a uuid say, makes it visible.
"""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from conformance.scenario.driver.profile import DriverProfile
from conformance.scenario.driver.variables import worker_of
from conformance.seam.abilities import Ability
from conformance.seam.scope import Target
from conformance.seam.values import (
    Capabilities,
    FreeDevices,
    OneDevice,
)
from kube.base.errors import TargetError
from reference_allocator.allocator import Allocator
from reference_allocator.api.defaulting import default_claim
from reference_allocator.api.reading import InputError
from reference_allocator.errors import AllocationError
from reference_allocator.index import Index
from reference_allocator.rules.node_eligibility import node_problem
from reference_allocator.snapshot import Snapshot

Object = Mapping[str, Any]

ENOUGH_NODES: Final = 64
"""Of more nodes only those with the most devices are looked at: no scenario can need more."""

COUNTED_CLASS: Final = "gpu"
"""The class of the profile whose devices count; its first where it has none of that name."""

ENOUGH_SHARES: Final = 16
"""Of a device that claims share no more count: without a capacity that they consume, there is no
end, and no scenario needs more."""

Device = tuple[str, str]  # Pool and name.
Counted = tuple[Device, int]  # A device, or a share of it: the first, the second ...

_KINDS: Final = ("int", "string")
"""Of DeviceAttribute (resource.k8s.io/v1): those with a literal in CEL that is never ambiguous."""


def with_devices(
    target: Target, profile: DriverProfile | None, other: DriverProfile | None = None
) -> Capabilities:
    """Return what a target can do, with the nodes and devices for pods of the profile now.

    The devices of another driver that runs all the time are counted, too; one that is started for
    scenarios has as many as the target says.

    Raises:
        ApiError: what must be known for it may not be read.
        TargetError: there was no answer, or the devices cannot be counted.
    """
    capabilities = target.capabilities()
    stable = "resource.k8s.io/v1" in capabilities.served_apis
    if profile is None or profile.driver != capabilities.driver or not stable:
        return capabilities
    scope = target.scope("default")
    try:
        snapshot = Snapshot.from_dict(scope.snapshot())
        free_devices = _list_free_devices(snapshot, capabilities.nodes, profile)
        other_devices_on = dict(capabilities.free.other_by_node)
        if other is not None and not other_devices_on:
            counted = _list_free_devices(snapshot, tuple(free_devices), other)
            other_devices_on = {name: len(devices) for name, devices in counted.items()}
    except (AllocationError, InputError) as error:
        raise TargetError(f"the devices of {profile.driver} cannot be counted: {error}") from None
    finally:
        scope.close()
    distinct_devices = set().union(*free_devices.values())
    free = FreeDevices(
        total=len(distinct_devices),
        by_node={name: len(devices) for name, devices in free_devices.items() if devices},
        different_by_node={
            name: len({device for device, _ in devices})
            for name, devices in free_devices.items()
            if any(share for _, share in devices)
        },
        other_by_node={
            name: count
            for name, count in other_devices_on.items()
            if count and free_devices.get(name)
        },
        why_none=""
        if distinct_devices
        else _explain_no_devices(snapshot, capabilities.nodes, profile),
    )
    return replace(
        capabilities,
        nodes=tuple(free_devices),
        free=_add_selectable_devices(free, free_devices, snapshot.slices, profile.driver),
    )


def _add_selectable_devices(
    free: FreeDevices,
    free_devices: Mapping[str, Sequence[Counted]],
    slices: Sequence[Object],
    driver: str,
) -> FreeDevices:
    """Add the devices that can be selected alone, and what scenarios can do with them.

    It is the last one of each node: a scheduler that ignores a selector takes the first.
    """
    node = worker_of(free.by_node)
    lacking = {
        Ability.DISTINCT_DEVICES: "no device is free",
        Ability.SHARED_DEVICES: "the device that can be asked for alone has no two free shares",
        Ability.PARTITIONS: "no two free devices of a node draw on one set of counters",
    }
    last = {name: free_devices[name][-1] for name in free.by_node}
    selectors = selectors_of(slices, driver, [device for device, _ in last.values()])
    last_by_node = {
        name: OneDevice(device[1], selectors[device], bool(share))
        for name, (device, share) in last.items()
        if device in selectors
    }
    abilities = set[Ability]()
    if node is not None:
        pool, device = last[node][0]
        lacking[Ability.DISTINCT_DEVICES] = (
            f"no attribute tells {device} of pool {pool} from all others of {driver}"
        )
        if one_device := last_by_node.get(node):
            abilities = (
                {Ability.DISTINCT_DEVICES, Ability.SHARED_DEVICES}
                if one_device.shared
                else {Ability.DISTINCT_DEVICES}
            )
    if _has_partitions(slices, driver, free_devices):
        abilities.add(Ability.PARTITIONS)
    return replace(
        free,
        last_by_node=last_by_node,
        abilities=frozenset(abilities),
        lacking={name: why for name, why in lacking.items() if name not in abilities},
    )


def _has_partitions(
    slices: Sequence[Object], driver: str, free_devices: Mapping[str, Sequence[Counted]]
) -> bool:
    """Return whether some node has two free devices that draw on one set of counters."""
    counter_sets = {
        (spec["pool"]["name"], device["name"]): {
            (spec["pool"]["name"], use["counterSet"]) for use in device["consumesCounters"]
        }
        for spec in (item["spec"] for item in slices if item["spec"]["driver"] == driver)
        for device in spec.get("devices") or ()
        if device.get("consumesCounters")
    }
    for shares in free_devices.values():
        devices = {device for device, _ in shares}
        users = Counter(name for device in devices for name in counter_sets.get(device, ()))
        if max(users.values(), default=0) > 1:
            return True
    return False


def _list_free_devices(
    snapshot: Snapshot, nodes: Collection[str], profile: DriverProfile
) -> dict[str, list[Counted]]:
    """Return node -> the devices that pods could have there, for nodes where pods may go."""
    classes = profile.spec.classes
    counted_class = classes.get(COUNTED_CLASS) or next(iter(classes.values()))
    profile_class = {"metadata": {"name": counted_class.name}, "spec": counted_class.spec}
    classes_by_name = {
        item["metadata"]["name"]: item for item in (profile_class, *snapshot.device_classes)
    }
    index = Index(
        snapshot.features,
        snapshot.slices,
        list(classes_by_name.values()),
        snapshot.allocated,
        kubernetes=snapshot.kubernetes,
    )
    problems = _list_node_problems(snapshot, nodes, profile)
    usable = {
        name: node
        for node in snapshot.nodes
        if (name := str(node["metadata"]["name"])) in problems and not problems[name]
    }
    published = dict.fromkeys(usable, 0)
    for item in snapshot.slices:
        name = item["spec"].get("nodeName")
        if name in published:
            published[name] += len(item["spec"].get("devices") or ())
    counted = sorted(usable, key=lambda name: (-published[name], name))[:ENOUGH_NODES]
    return {
        name: _take_devices(index, usable[name], counted_class.name) for name in sorted(counted)
    }


def _list_node_problems(
    snapshot: Snapshot, nodes: Collection[str], profile: DriverProfile
) -> dict[str, str | None]:
    """Return node -> why no pod of the profile may go there, claims aside; None if one may."""
    pod = {"tolerations": list(profile.spec.tolerations)}
    nodes_by_name = {str(node["metadata"]["name"]): node for node in snapshot.nodes}
    return {name: node_problem(nodes_by_name[name], pod) for name in nodes if name in nodes_by_name}


def _explain_no_devices(snapshot: Snapshot, nodes: Collection[str], profile: DriverProfile) -> str:
    problems = _list_node_problems(snapshot, nodes, profile)
    if problems and all(problems.values()):
        first = min(problems)
        return f"of {len(problems)} node(s) none takes pods, for {first}: {problems[first]}"
    published = [item for item in snapshot.slices if item["spec"]["driver"] == profile.driver]
    if not published:
        return f"there is no ResourceSlice of {profile.driver}"
    return "what it publishes is in use, tainted, of an incomplete pool or not of the class"


def _take_devices(index: Index, node: Object, device_class: str) -> list[Counted]:
    """Return what claims for one device each get on a node, in order; then free it again."""
    allocator = Allocator(index)
    request = {"name": "one", "exactly": {"deviceClassName": device_class}}
    claim_names: dict[Counted, str] = {}
    shares: Counter[Device] = Counter()
    while True:
        name = f"claim-{len(claim_names)}"
        claim = default_claim(
            {
                "metadata": {"name": name, "namespace": "default", "uid": name},
                "spec": {"devices": {"requests": [request]}},
            }
        )
        outcome = allocator.allocate(node, [claim])
        if outcome.kind != "allocated":
            break
        [result] = outcome.allocations[0]["devices"]["results"]
        device = (result["pool"], result["device"])
        if shares[device] == ENOUGH_SHARES:
            break
        claim_names[device, shares[device]] = name
        shares[device] += 1
        index.put_claim({**claim, "status": {"allocation": outcome.allocations[0]}})
    for name in claim_names.values():
        index.remove_claim("default", name)
    return list(claim_names)


def selectors_of(
    slices: Iterable[Object], driver: str, devices: Iterable[Device]
) -> dict[Device, str]:
    """Return device -> CEL that is true for it alone, for those that an attribute identifies.

    ``slices``: all of the cluster, in resource.k8s.io/v1.
    """
    attributes_of = _collect_attributes(slices, driver)
    values: defaultdict[tuple[str, str], Counter[Any]] = defaultdict(Counter)
    for attributes in attributes_of.values():
        for name, value in attributes.items():
            [(kind, literal_value)] = value.items()
            if kind in _KINDS:
                values[name, kind][literal_value] += 1
    # A device without the attribute, or with another kind of it, would be an error in CEL.
    usable = {key for key, counts in values.items() if counts.total() == len(attributes_of)}
    selectors: dict[Device, str] = {}
    for device in devices:
        for name, value in sorted(attributes_of[device].items()):
            [(kind, literal_value)] = value.items()
            if (name, kind) in usable and values[name, kind][literal_value] == 1:
                domain, _, plain = name.rpartition("/")
                literal = json.dumps(literal_value, ensure_ascii=False)
                selectors[device] = (
                    f'device.attributes["{domain or driver}"]["{plain}"] == {literal}'
                )
                break
    return selectors


def _collect_attributes(slices: Iterable[Object], driver: str) -> dict[Device, Object]:
    """Return device -> its attributes in the newest generation of its pool that has it."""
    specs = [item["spec"] for item in slices if item["spec"]["driver"] == driver]
    return {
        (spec["pool"]["name"], device["name"]): device.get("attributes") or {}
        for spec in sorted(specs, key=lambda spec: int(spec["pool"].get("generation", 0)))
        for device in spec.get("devices") or ()
    }
