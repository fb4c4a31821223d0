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
from conformance.scenario.scheduler import KUBE_SCHEDULER
from conformance.seam.abilities import Ability, fault_ability, metrics_ability
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
    """What a target can do, with the nodes and devices that pods of the profile could have now.

    Of another driver that runs all the time the devices are counted, too; one that is started for
    scenarios has those that the target says.

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
        found = _found(snapshot, capabilities.nodes, profile)
        beside = dict(capabilities.free.other_by_node)
        if other is not None and not beside:
            counted = _found(snapshot, tuple(found), other)
            beside = {name: len(devices) for name, devices in counted.items()}
    except (AllocationError, InputError) as error:
        raise TargetError(f"the devices of {profile.driver} cannot be counted: {error}") from None
    finally:
        scope.close()
    free = set().union(*found.values())
    lacking = {} if free else {"devices": _why_none(snapshot, capabilities.nodes, profile)}
    offered = replace(
        capabilities,
        lacking={**capabilities.lacking, **lacking},
        nodes=tuple(found),
        free=FreeDevices(
            total=len(free),
            by_node={name: len(devices) for name, devices in found.items() if devices},
            different_by_node={
                name: len({device for device, _ in devices})
                for name, devices in found.items()
                if any(share for _, share in devices)
            },
            other_by_node={
                name: count for name, count in beside.items() if count and found.get(name)
            },
        ),
    )
    return _with_one_device(offered, found, snapshot.slices, profile.driver)


def _with_one_device(
    offered: Capabilities,
    found: Mapping[str, Sequence[Counted]],
    slices: Sequence[Object],
    driver: str,
) -> Capabilities:
    """Devices that can be selected alone: the last, as ignoring a selector gives the first."""
    node = worker_of(offered.free.by_node)
    lacking = {
        Ability.DISTINCT_DEVICES: "no device is free",
        Ability.SHARED_DEVICES: "the device that can be asked for alone has no two free shares",
        Ability.PARTITIONS: "no two free devices of a node draw on one set of counters",
    }
    last = {name: found[name][-1] for name in offered.free.by_node}
    selectors = selectors_of(slices, driver, [device for device, _ in last.values()])
    last_by_node = {
        name: OneDevice(device[1], selectors[device], bool(share))
        for name, (device, share) in last.items()
        if device in selectors
    }
    there = set[Ability]()
    if node is not None:
        pool, device = last[node][0]
        lacking[Ability.DISTINCT_DEVICES] = (
            f"no attribute tells {device} of pool {pool} from all others of {driver}"
        )
        if one := last_by_node.get(node):
            there = (
                {Ability.DISTINCT_DEVICES, Ability.SHARED_DEVICES}
                if one.shared
                else {Ability.DISTINCT_DEVICES}
            )
    if _partitions(slices, driver, found):
        there.add(Ability.PARTITIONS)
    return replace(
        offered,
        abilities=offered.abilities | there,
        lacking={**offered.lacking, **{name: lacking[name] for name in lacking.keys() - there}},
        free=replace(offered.free, last_by_node=last_by_node),
    )


def _partitions(
    slices: Sequence[Object], driver: str, found: Mapping[str, Sequence[Counted]]
) -> bool:
    """Whether some node has two different free devices that draw on one set of counters."""
    sets = {
        (spec["pool"]["name"], device["name"]): {
            (spec["pool"]["name"], each["counterSet"]) for each in device["consumesCounters"]
        }
        for spec in (item["spec"] for item in slices if item["spec"]["driver"] == driver)
        for device in spec.get("devices") or ()
        if device.get("consumesCounters")
    }
    return any(
        max(Counter(one for device, _ in taken for one in sets.get(device, ())).values(), default=0)
        > 1
        for taken in (dict.fromkeys((device, 0) for device, _ in each) for each in found.values())
    )


def _found(
    snapshot: Snapshot, nodes: Collection[str], profile: DriverProfile
) -> dict[str, list[Counted]]:
    """Node -> the devices that pods could have there, of those nodes where pods may go."""
    classes = profile.spec.classes
    wanted = classes.get(COUNTED_CLASS) or next(iter(classes.values()))
    ours = {"metadata": {"name": wanted.name}, "spec": wanted.spec}
    there = {item["metadata"]["name"]: item for item in (ours, *snapshot.device_classes)}
    index = Index(
        snapshot.features,
        snapshot.slices,
        list(there.values()),
        snapshot.allocated,
        kubernetes=snapshot.kubernetes,
    )
    problems = _problems(snapshot, nodes, profile)
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
    return {name: _taken(index, usable[name], wanted.name) for name in sorted(counted)}


def _problems(
    snapshot: Snapshot, nodes: Collection[str], profile: DriverProfile
) -> dict[str, str | None]:
    """Node -> why no pod of the profile may go there, whatever it claims; None if one may."""
    pod = {"tolerations": list(profile.spec.tolerations)}
    there = {str(node["metadata"]["name"]): node for node in snapshot.nodes}
    return {name: node_problem(there[name], pod) for name in nodes if name in there}


def _why_none(snapshot: Snapshot, nodes: Collection[str], profile: DriverProfile) -> str:
    problems = _problems(snapshot, nodes, profile)
    if problems and all(problems.values()):
        first = min(problems)
        return f"of {len(problems)} node(s) none takes pods, for {first}: {problems[first]}"
    published = [item for item in snapshot.slices if item["spec"]["driver"] == profile.driver]
    if not published:
        return f"there is no ResourceSlice of {profile.driver}"
    return "what it publishes is in use, tainted, of an incomplete pool or not of the class"


def _taken(index: Index, node: Object, device_class: str) -> list[Counted]:
    """What claims for one device each get on a node, in this order; then it is free."""
    allocator = Allocator(index)
    request = {"name": "one", "exactly": {"deviceClassName": device_class}}
    found: dict[Counted, str] = {}
    shares: Counter[Device] = Counter()
    while True:
        name = f"claim-{len(found)}"
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
        found[device, shares[device]] = name
        shares[device] += 1
        index.put_claim({**claim, "status": {"allocation": outcome.allocations[0]}})
    for name in found.values():
        index.remove_claim("default", name)
    return list(found)


def selectors_of(
    slices: Iterable[Object], driver: str, devices: Iterable[Device]
) -> dict[Device, str]:
    """Of devices, CEL that is true for this one alone; nothing where no attribute identifies it.

    ``slices``: of the whole cluster, in resource.k8s.io/v1.
    """
    every = _attributes(slices, driver)
    values: defaultdict[tuple[str, str], Counter[Any]] = defaultdict(Counter)
    for attributes in every.values():
        for name, value in attributes.items():
            [(kind, own)] = value.items()
            if kind in _KINDS:
                values[name, kind][own] += 1
    # A device without the attribute, or with another kind of it, would be an error in CEL.
    usable = {key for key, counts in values.items() if counts.total() == len(every)}
    found: dict[Device, str] = {}
    for device in devices:
        for name, value in sorted(every[device].items()):
            [(kind, own)] = value.items()
            if (name, kind) in usable and values[name, kind][own] == 1:
                domain, _, plain = name.rpartition("/")
                literal = json.dumps(own, ensure_ascii=False)
                found[device] = f'device.attributes["{domain or driver}"]["{plain}"] == {literal}'
                break
    return found


def _attributes(slices: Iterable[Object], driver: str) -> dict[Device, Object]:
    """Device -> its attributes in the newest generation of its pool that has it."""
    specs = [item["spec"] for item in slices if item["spec"]["driver"] == driver]
    return {
        (spec["pool"]["name"], device["name"]): device.get("attributes") or {}
        for spec in sorted(specs, key=lambda spec: int(spec["pool"].get("generation", 0)))
        for device in spec.get("devices") or ()
    }


def with_scheduler(found: Capabilities, name: str) -> Capabilities:
    """What a target can where this scheduler has the pods that name none; "" is the default one.

    What kube-scheduler counts, and what its restart does, says nothing of another. But a pod may
    name kube-scheduler, so that both are there.
    """
    if name in {"", KUBE_SCHEDULER}:
        why = "--scheduler names none beside the default one"
        return replace(found, lacking={**found.lacking, Ability.ANOTHER_SCHEDULER: why})
    of_it = {fault_ability("kube-scheduler"), metrics_ability("kube-scheduler")} & found.abilities
    why = f"the pods are those of scheduler {name}"
    return replace(
        found,
        abilities=found.abilities - of_it | {Ability.ANOTHER_SCHEDULER},
        lacking={**found.lacking, **dict.fromkeys(of_it, why)},
    )
