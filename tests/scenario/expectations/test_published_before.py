"""A driver need not publish a device that a pod has: what it had published tells which it is."""

from __future__ import annotations

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any, cast

import pytest

from conformance.scenario.driver.profile import load_profile
from conformance.scenario.expectations.base import Cluster, Evaluation
from conformance.scenario.expectations.container_devices import DevicesExpectation
from conformance.scenario.expectations.container_identity import Device, is_shareable
from kube.observations import ContainerView, PublishedDevice
from kube.values import Obj
from tests.scenario.shipped import ROOT

PROFILE = load_profile("dra.net", ROOT / "drivers")
MAC = "02:00:00:00:00:0"


def nic(number: int, **more: Any) -> Obj:
    attributes = {"ifName": {"string": f"nic{number}"}, "mac": {"string": f"{MAC}{number}"}}
    return {"name": f"nic{number}", "attributes": attributes, **more}


def cluster(
    line: str, now: Sequence[Obj], before: Sequence[PublishedDevice], has: str = "nic1"
) -> Cluster:
    """A pod was allocated a device of n0; its container prints a line."""
    outputs = {f"dra.net/{way}": line for way in PROFILE.spec.probe.ways}
    spec = {"driver": "dra.net", "nodeName": "n0", "pool": {"name": "n0"}, "devices": now}
    result = {"request": "gpu", "driver": "dra.net", "pool": "n0", "device": has}
    claim = {"status": {"allocation": {"devices": {"results": [result]}}}}
    found = SimpleNamespace(
        profile=PROFILE,
        observe=SimpleNamespace(
            container=lambda *_: ContainerView({}, (), outputs),
            published_before=lambda driver: before if driver == "dra.net" else (),
        ),
        get=lambda _kind, name: {
            "metadata": {"name": name},
            "spec": {
                "nodeName": "n0",
                "resourceClaims": [{"name": "gpu"}],
                "containers": [{"name": "c", "resources": {"claims": [{"name": "gpu"}]}}],
            },
        },
        claim_of=lambda _pod, _claim: claim,
        find=lambda _selector: [{"spec": spec}],
    )
    return cast("Cluster", found)


def seen(*said: Any, **more: Any) -> Evaluation:
    wanted = {"seenBy": ["p/c"], "count": 1, "allocatedTo": {"podClaim": "gpu"}}
    expectation = DevicesExpectation.model_validate({"devices": wanted})
    return expectation.evaluate(cluster(*said, **more))


def before(*devices: Obj, node: str = "n0") -> list[PublishedDevice]:
    return [PublishedDevice(node, "n0", one) for one in devices]


def test_a_device_that_is_published_no_more_is_known_by_its_address() -> None:
    assert seen(f"nic1 mac {MAC}1", [nic(0)], before(nic(0), nic(1))).holds


@pytest.mark.parametrize(
    ("line", "earlier", "says"),
    [
        pytest.param(f"nic1 mac {MAC}1", [], "ifName=nic1", id="never published"),
        pytest.param(f"nic1 mac {MAC}2", before(nic(1)), f"mac={MAC}2", id="another address"),
        pytest.param(f"nic2 mac {MAC}2", before(nic(2)), "sees n0/nic2, allocated", id="another"),
        pytest.param(
            f"nic1 mac {MAC}1", before(nic(1), node="n1"), "ifName=nic1", id="of another node"
        ),
    ],
)
def test_only_the_devices_that_its_node_had_count(
    line: str, earlier: list[PublishedDevice], says: str
) -> None:
    found = seen(line, [nic(0)], earlier)
    assert not found.holds
    assert says in found.finding


def test_what_is_published_now_counts_before_what_was() -> None:
    old = nic(1) | {"attributes": nic(3)["attributes"]}
    assert seen(f"nic1 mac {MAC}1", [nic(1)], before(old)).holds
    assert not seen(f"nic3 mac {MAC}3", [nic(1)], before(old)).holds


def test_whether_pods_may_share_a_device_is_known_of_one_that_is_published_no_more() -> None:
    shareable = before(nic(1, allowMultipleAllocations=True))
    device = Device("nic1", frozenset({"n0"}))
    assert is_shareable(device, cluster("", [], shareable))
    assert not is_shareable(device, cluster("", [nic(1)], shareable))
