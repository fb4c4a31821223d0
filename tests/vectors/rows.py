"""Vectors that are written by hand, of pods in a row and of pods that ask for extended resources.

In a row there is one right choice for each pod, so that what the next finds is the same whatever
order an allocator takes devices in.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from tests.vectors.written import (
    API,
    DRIVER,
    Json,
    Written,
    allocated_on,
    alternatives,
    by_name,
    cel,
    claim,
    counters,
    device,
    exactly,
    held,
    node,
    question,
    shared,
    slice_of,
    uses,
    wants,
)

GPU: Final = "example.com/gpu"
IMPLICIT: Final = "deviceclass.resource.kubernetes.io/gpu"
_EXTENDED: Final = "k8s.io/api core/v1 ResourceRequirements.requests; resource.k8s.io/v1 "
_BY_CLASS: Final = f"{_EXTENDED}DeviceClassSpec.extendedResourceName"
_AFTER: Final = "resource.k8s.io/v1 ResourceClaimStatus.allocation"


def after(*pods: Json) -> Json:
    """The pods that follow, each with one claim or as it is."""
    return {"following": [item if "claims" in item else {"claims": [item]} for item in pods]}


def container(name: str = "ctr0", **more: Any) -> Json:
    """A container that asks for amounts of ``example.com/gpu``, or of what is named."""
    asked: Mapping[str, str] = more.pop("wants", {GPU: "1"})
    return {"name": name, "image": "none", "resources": {"requests": dict(asked)}, **more}


def pod(*containers: Json, init: Iterable[Json] = ()) -> Json:
    """A pod with containers, those that run before them first."""
    spec: Json = {"containers": list(containers)}
    if init:
        spec["initContainers"] = list(init)
    metadata = {"name": "pod", "namespace": "default"}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}


def asks(asked: Json, *slices: Json, resource: str = GPU, **more: Any) -> Json:
    """A question of a pod with extended resources, which one class provides."""
    made = question(*slices, **more)
    if resource:
        made["deviceClasses"][0]["spec"]["extendedResourceName"] = resource
    if "claims" not in more:
        made["claims"] = []
    return {**made, "pod": asked}


def with_own(amount: str) -> Json:
    """A node that has some of the resource itself, from a device plugin."""
    return {**node(), "status": {"allocatable": {GPU: amount}}}


_ONE = slice_of(device("gpu-0"))
_TWO = slice_of(device("gpu-0"), device("gpu-1"))


def _rows() -> Iterable[Written]:
    yield Written(
        "second-pod-finds-the-device-in-use",
        "What the first pod is given is in use when the second is looked at.",
        _AFTER,
        True,
        question(_ONE, **after(claim(name="d"))),
        following=(False,),
    )
    yield Written(
        "second-pod-finds-another-device",
        "The second pod gets a device that the first left.",
        _AFTER,
        True,
        question(_TWO, **after(claim(name="d"), claim(name="e"))),
        following=(True, False),
    )
    yield Written(
        "pod-that-waits-takes-nothing",
        "A pod that does not fit takes nothing from the one after it.",
        _AFTER,
        False,
        question(_ONE, claims=[claim(exactly(count=2))], **after(claim(name="d"))),
        following=(True,),
    )
    yield Written(
        "pod-whose-second-claim-does-not-fit-takes-nothing",
        "A pod gets devices for all of its claims or for none.",
        "v1 PodSpec.resourceClaims",
        False,
        question(_ONE, claims=[claim(name="a"), claim(name="b")], **after(claim(name="d"))),
        following=(True,),
    )
    yield Written(
        "claim-that-two-pods-share",
        "A claim that the first pod was given devices for is not allocated again for the second.",
        "v1 PodResourceClaim.resourceClaimName",
        True,
        question(_ONE, **after(claim())),
        following=(True,),
    )
    yield Written(
        "shared-claim-beside-one-that-does-not-fit",
        "A pod whose shared claim has its devices still needs some for its own.",
        "v1 PodSpec.resourceClaims",
        True,
        question(_ONE, **after({"claims": [claim(), claim(name="own")]})),
        following=(False,),
    )
    yield Written(
        "counters-of-the-pod-before",
        "The second pod finds what the first pod's device draws on counters.",
        f"{API}Device.consumesCounters",
        True,
        question(
            slice_of(
                device("whole", {"type": "gpu"}, **uses("s", memory="40Gi")),
                device("part", {"type": "mig"}, **uses("s", memory="5Gi")),
                count=2,
            ),
            counters({"s": {"memory": "40Gi"}}),
            claims=[claim(exactly(**cel(f'device.attributes["{DRIVER}"].type == "gpu"')))],
            **after(claim(name="d")),
        ),
        following=(False,),
    )
    yield Written(
        "capacity-of-the-pod-before",
        "The second pod finds a shared device's capacity less what the first pod consumes of it.",
        f"{API}DeviceRequestAllocationResult.consumedCapacity",
        True,
        question(
            slice_of(shared()),
            claims=[claim(exactly(**wants(bw="6")))],
            **after(
                claim(exactly(**wants(bw="6")), name="d"), claim(exactly(**wants(bw="4")), name="e")
            ),
        ),
        following=(False, True),
    )
    yield Written(
        "all-after-a-pod-that-has-one",
        "A request for all devices does not fit where a pod before has one of them.",
        f"{API}ExactDeviceRequest.allocationMode",
        True,
        question(_TWO, **after(claim(exactly(allocationMode="All"), name="d"))),
        following=(False,),
    )
    yield Written(
        "admin-access-takes-nothing-from-the-next",
        "A pod with adminAccess leaves its device to the next.",
        f"{API}ExactDeviceRequest.adminAccess",
        True,
        question(_ONE, claims=[claim(exactly(adminAccess=True))], **after(claim(name="d"))),
        following=(True,),
    )
    yield Written(
        "second-pod-takes-the-second-alternative",
        "Where the first alternative is in use by then, the next pod gets the second.",
        f"{API}DeviceRequest.firstAvailable",
        True,
        question(
            slice_of(device("a", {"x": "1"}), device("b", {"x": "2"})),
            claims=[claim(exactly(**cel(f'device.attributes["{DRIVER}"].x == "1"')))],
            **after(
                claim(
                    alternatives(
                        cel(f'device.attributes["{DRIVER}"].x == "1"') | {"count": 1},
                        cel(f'device.attributes["{DRIVER}"].x == "2"') | {"count": 1},
                    ),
                    name="d",
                )
            ),
        ),
        following=(True,),
    )
    yield Written(
        "claim-of-another-node-in-a-row",
        "A pod that follows is kept from nodes that a claim of its own cannot be used on.",
        f"{API}AllocationResult.nodeSelector; v1 NodeSelectorTerm.matchFields",
        True,
        question(
            _TWO,
            slice_of(device("gpu-0"), name="s1", pool="node-1", where={"nodeName": "node-1"}),
            **after(
                {"claims": [allocated_on("d", by_name("node-1"), pool="node-1")]}, claim(name="e")
            ),
        ),
        following=(False, True),
    )
    yield Written(
        "device-that-a-later-pod-has-already",
        "What a later pod's claim has already is in use before that pod comes, too.",
        _AFTER,
        False,
        question(_ONE, **after(allocated_on("d", by_name("node-0")))),
        following=(True,),
    )


def _extended() -> Iterable[Written]:
    yield Written(
        "extended-resource-of-a-class",
        "A container's extended resource that a class provides is a device of that class.",
        _BY_CLASS,
        True,
        asks(pod(container()), _ONE),
    )
    yield Written(
        "extended-resource-without-a-free-device",
        "An extended resource that a class provides does not fit where its devices are in use.",
        _BY_CLASS,
        False,
        asks(pod(container()), _ONE, allocated=[held("gpu-0")]),
    )
    yield Written(
        "extended-resource-by-the-name-of-the-class",
        "deviceclass.resource.kubernetes.io/NAME asks for a device of the class NAME.",
        f"{_EXTENDED}DeviceClass",
        True,
        asks(pod(container(wants={IMPLICIT: "1"})), _ONE, resource=""),
    )
    yield Written(
        "extended-resource-that-nobody-provides",
        "A resource that neither a class nor the node provides does not fit.",
        _BY_CLASS,
        False,
        asks(pod(container(wants={"example.com/other": "1"})), _ONE),
    )
    yield Written(
        "extended-resource-of-the-node",
        "Where the node itself has the resource, the pod needs no device.",
        f"{_EXTENDED}NodeStatus.allocatable",
        True,
        asks(pod(container()), nodes=[with_own("1")]),
    )
    yield Written(
        "extended-resource-that-the-node-has-none-of",
        "A node that lists the resource with nothing of it leaves the pod to devices.",
        f"{_EXTENDED}NodeStatus.allocatable",
        False,
        asks(pod(container()), nodes=[with_own("0")]),
    )
    yield Written(
        "extended-resource-of-nothing",
        "A request for none of a resource asks for nothing.",
        _BY_CLASS,
        True,
        asks(pod(container(wants={GPU: "0"}))),
    )
    yield Written(
        "extended-resources-of-two-containers",
        "Containers that run together have devices of their own.",
        _BY_CLASS,
        False,
        asks(pod(container("a"), container("b")), _ONE),
    )
    yield Written(
        "extended-resource-of-a-container-that-ends",
        "An init container that ends leaves its device to the containers after it.",
        "v1 PodSpec.initContainers",
        True,
        asks(pod(container("b"), init=[container("a")]), _ONE),
    )
    yield Written(
        "extended-resource-of-a-container-that-stays",
        "An init container that restarts always has a device of its own.",
        "v1 Container.restartPolicy",
        False,
        asks(pod(container("b"), init=[container("a", restartPolicy="Always")]), _ONE),
    )
    yield Written(
        "extended-resources-of-two-containers-that-end",
        "Of init containers that run one after the other, the one that wants most counts.",
        "v1 PodSpec.initContainers",
        True,
        asks(
            pod(
                {"name": "main", "image": "none"},
                init=[container("a", wants={GPU: "2"}), container("b")],
            ),
            _TWO,
        ),
    )
    yield Written(
        "more-for-a-container-that-ends",
        "An init container that wants more than those after it needs what is missing.",
        "v1 PodSpec.initContainers",
        False,
        asks(pod(container("b"), init=[container("a", wants={GPU: "3"})]), _TWO),
    )
    yield Written(
        "extended-resource-beside-a-claim",
        "A pod's claims and its extended resources do not have the same device.",
        f"{_EXTENDED}ResourceClaimStatus.allocation",
        False,
        asks(pod(container()), _ONE, claims=[claim()]),
    )
    yield Written(
        "extended-resource-and-a-taint",
        "Nobody can tolerate the taint of a device for an extended resource.",
        f"{API}DeviceTaint.effect",
        False,
        asks(
            pod(container()),
            slice_of(device("gpu-0", taints=[{"key": "bad", "effect": "NoSchedule"}])),
        ),
    )
    yield Written(
        "extended-resource-selected-by-the-class",
        "The selectors of the class choose the devices of an extended resource.",
        f"{API}DeviceClassSpec.selectors",
        False,
        asks(
            pod(container()),
            {**_ONE, "spec": {**_ONE["spec"], "driver": "nic.example.com"}},
        ),
    )
    yield Written(
        "extended-resource-in-a-row",
        "The device of one pod's extended resource is in use for the next pod.",
        _BY_CLASS,
        True,
        asks(pod(container()), _TWO, **after({"claims": [], "pod": pod(container())}, claim())),
        following=(True, False),
    )


ROWS: Final = (*_rows(), *_extended())
