"""How many devices scenarios may count on: what pods could really have, and where."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from conformance.scenario.shape import ShapeNode
from conformance.seam.abilities import Ability
from conformance.seam.values import Capabilities
from conformance.targets.opening.offer import with_devices
from conformance.targets.reference.device_source import DescribedDevices
from conformance.targets.reference.scope import ReferenceScope
from conformance.targets.reference.target import ReferenceOptions, ReferenceTarget
from kube.values import Obj, Ref
from tests.targets.devices import (
    PARTITIONS,
    PROFILE,
    TAINT,
    TWO_NODES,
    change_node,
    gpus,
    not_ready,
    published,
    used_by_somebody,
)

NODES = ("n0", "n1")
THREE_SHARES = {"memory": {"value": "3Gi", "requestPolicy": {"default": "1Gi"}}}
SHARED = {"name": "a", "allowMultipleAllocations": True, "capacity": THREE_SHARES}


def offered(
    *slices: Obj, given: Callable[[ReferenceScope], object] = lambda scope: None, **profile: Any
) -> Capabilities:
    """What there is for the profile, changed as told, after something was done to the cluster."""
    spec = PROFILE.spec.model_copy(update=profile)
    used = PROFILE.model_copy(update={"spec": spec})
    source = DescribedDevices(used, slices)
    nodes = [ShapeNode(name=name) for name in NODES]
    with ReferenceTarget(ReferenceOptions(nodes=nodes, devices=source)) as target:
        scope = target.scope("others")
        labels = {"resource.kubernetes.io/admin-access": "true"}
        meta = {"name": "others", "labels": labels}
        scope.create({"apiVersion": "v1", "kind": "Namespace", "metadata": meta})
        given(scope)
        return with_devices(target, used)


@pytest.mark.parametrize(
    ("slices", "given", "devices", "on"),
    [
        pytest.param(TWO_NODES, None, 3, {"n0": 2, "n1": 1}, id="all free"),
        pytest.param(TWO_NODES, used_by_somebody, 2, {"n0": 1, "n1": 1}, id="somebody has one"),
        pytest.param(
            TWO_NODES,
            lambda scope: used_by_somebody(scope, adminAccess=True),
            3,
            {"n0": 2, "n1": 1},
            id="somebody looks at one",
        ),
        pytest.param(TWO_NODES, change_node(unschedulable=True), 1, {"n1": 1}, id="cordoned"),
        pytest.param(TWO_NODES, change_node(taints=[TAINT]), 1, {"n1": 1}, id="tainted node"),
        pytest.param(TWO_NODES, not_ready, 1, {"n1": 1}, id="not ready"),
        pytest.param([gpus("n0", "a", taints=[TAINT])], None, 0, {}, id="tainted device"),
        pytest.param(
            [published("rack", {"name": "a"}, {"name": "b"}, allNodes=True)],
            None,
            2,
            {"n0": 2, "n1": 2},
            id="network-attached",
        ),
        pytest.param(PARTITIONS, None, 2, {"n0": 2}, id="partitions"),
        pytest.param(
            [gpus("n0", "a", allowMultipleAllocations=True)],
            None,
            16,
            {"n0": 16},
            id="no last share",
        ),
        pytest.param(
            [gpus("n0", "a", "b", allowMultipleAllocations=True, capacity=THREE_SHARES)],
            None,
            6,
            {"n0": 6},
            id="shares of a capacity",
        ),
        pytest.param(
            [published("rack", SHARED, allNodes=True)],
            None,
            3,
            {"n0": 3, "n1": 3},
            id="shares on the network",
        ),
        pytest.param(
            [
                published("n0", {"name": "a"}, {"name": "b"}, nodeName="n0"),
                published("n0", {"name": "a"}, generation=2, nodeName="n0"),
            ],
            None,
            1,
            {"n0": 1},
            id="an old generation",
        ),
    ],
)
def test_what_pods_could_have_is_counted(
    slices: list[Obj],
    given: Callable[[ReferenceScope], object] | None,
    devices: int,
    on: dict[str, int],
) -> None:
    found = offered(*slices, given=given or (lambda scope: None))
    assert (found.free.total, found.free.by_node) == (devices, on)


def test_one_request_gets_different_devices_not_shares_of_one() -> None:
    found = offered(published("n0", SHARED, {"name": "b"}, nodeName="n0"), gpus("n1", "c"))
    assert (found.free.by_node, found.free.different_by_node) == ({"n0": 4, "n1": 1}, {"n0": 2})


@pytest.mark.parametrize(
    ("slices", "given", "why"),
    [
        pytest.param(
            [gpus("n0", "a")],
            lambda scope: [
                scope.patch(Ref("v1", "Node", name), {"spec": {"unschedulable": True}})
                for name in NODES
            ],
            "of 2 node(s) none takes pods, for n0: node(s) were unschedulable",
            id="cordoned",
        ),
        pytest.param([], None, f"there is no ResourceSlice of {PROFILE.driver}", id="no slice"),
        pytest.param(
            [gpus("n0", "a")],
            used_by_somebody,
            "what it publishes is in use, tainted, of an incomplete pool or not of the class",
            id="in use",
        ),
        pytest.param(TWO_NODES, used_by_somebody, "", id="one is free"),
    ],
)
def test_why_no_device_is_free(
    slices: list[Obj], given: Callable[[ReferenceScope], object] | None, why: str
) -> None:
    found = offered(*slices, given=given or (lambda scope: None))
    assert found.free.why_none == why


def test_only_devices_of_the_profiles_class_are_counted() -> None:
    one = PROFILE.spec.classes["gpu"]
    selectors = [{"cel": {"expression": "device.attributes['gpu.example.com'].size == 'big'"}}]
    classes = {"gpu": one.model_copy(update={"spec": {"selectors": selectors}})}
    sizes = (("a", "big"), ("b", "small"), ("c", "big"))
    devices = [{"name": name, "attributes": {"size": {"string": size}}} for name, size in sizes]
    found = offered(published("n0", *devices, nodeName="n0"), classes=classes)
    assert (found.free.total, found.free.by_node) == (2, {"n0": 2})


def test_nodes_that_the_profile_tolerates_are_counted() -> None:
    tolerations = ({"key": "k", "operator": "Exists"},)
    found = offered(*TWO_NODES, given=change_node(taints=[TAINT]), tolerations=tolerations)
    assert (found.free.total, found.nodes) == (3, NODES)


def test_the_device_that_is_had_last_can_be_asked_for_alone() -> None:
    told = [
        {**device, "attributes": {"serial": {"int": place}}}
        for place, device in enumerate(TWO_NODES[0]["spec"]["devices"])
    ]
    first = {**TWO_NODES[0], "spec": {**TWO_NODES[0]["spec"], "devices": told}}
    found = offered(first)
    driver = PROFILE.driver
    expected = f'device.attributes["{driver}"]["serial"] == {len(told) - 1}'
    assert found.free.last_by_node == {"n0": (told[-1]["name"], expected, False)}
    assert Ability.DISTINCT_DEVICES in found.free.abilities


@pytest.mark.parametrize(
    ("slices", "why"),
    [(TWO_NODES, "no attribute tells b of pool n0 from all others"), ((), "no device is free")],
    ids=["alike", "none"],
)
def test_why_no_device_can_be_asked_for_alone_is_said(slices: tuple[Obj, ...], why: str) -> None:
    found = offered(*slices)
    assert Ability.DISTINCT_DEVICES not in found.free.abilities
    assert why in found.free.lacking[Ability.DISTINCT_DEVICES]


ONE_OF_TWO = {**SHARED, "attributes": {"serial": {"int": 1}}}


@pytest.mark.parametrize(
    ("slices", "ability", "there"),
    [
        (PARTITIONS, Ability.PARTITIONS, True),
        (TWO_NODES, Ability.PARTITIONS, False),
        ([published("n0", ONE_OF_TWO, nodeName="n0")], Ability.SHARED_DEVICES, True),
        ([published("n0", SHARED, nodeName="n0")], Ability.SHARED_DEVICES, False),  # none is chosen
        ([gpus("n0", "a")], Ability.SHARED_DEVICES, False),
    ],
)
def test_shares_and_partitions_are_abilities(slices: list[Obj], ability: str, there: bool) -> None:
    found = offered(*slices)
    assert ((ability in found.free.abilities), (ability not in found.free.lacking)) == (
        there,
        there,
    )
