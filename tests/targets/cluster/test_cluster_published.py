"""A cluster's target remembers what its drivers have published, for as long as it is open."""

from __future__ import annotations

from conformance.targets.cluster.published import PublishedDevices
from kube.observations import PublishedDevice
from kube.values import Obj
from tests.kube.fake_api import FakeApi
from tests.targets.cluster.conftest import MakeTarget, until


def published(*devices: str, driver: str = "nic.test", node: str | None = "n0") -> Obj:
    where = {"nodeName": node} if node else {"allNodes": True}
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceSlice",
        "metadata": {"name": f"{driver}-{node}"},
        "spec": {
            "driver": driver,
            "pool": {"name": "p", "generation": 1, "resourceSliceCount": 1},
            "devices": [{"name": name} for name in devices],
            **where,
        },
    }


def names(found: list[PublishedDevice]) -> list[tuple[str, str, str]]:
    return [(one.node, one.pool, one.device["name"]) for one in found]


def test_a_device_that_is_published_no_more_is_remembered_as_it_was_last() -> None:
    known = PublishedDevices(["nic.test", None])
    known.hear("ADDED", published("a", "b"))
    changed = published("a")
    changed["spec"]["devices"][0]["attributes"] = {"mac": {"string": "02:00:00:00:00:01"}}
    known.hear("MODIFIED", changed)
    known.hear("DELETED", published("c"))
    known.hear("TROUBLE", {})
    known.hear("LISTED", {"items": [published("d", node=None), published("e", driver="other")]})
    assert names(known.of("nic.test")) == [("n0", "p", "a"), ("n0", "p", "b"), ("", "p", "d")]
    assert known.of("nic.test")[0].device == changed["spec"]["devices"][0]
    assert not known.of("other")


def test_what_was_published_before_a_scenario_began_is_known_to_it(
    api: FakeApi, make_target: MakeTarget
) -> None:
    api.put("resourceslices", published("a", "b"))
    target = make_target(driver="nic.test", other_driver="other")
    first = target.scope("first")
    assert len(first.observe.published_before("nic.test")) == 2
    api.put("resourceslices", published("b"))
    api.put("resourceslices", published("c", driver="other"))
    until(lambda: first.observe.published_before("other"))
    first.close()
    second = target.scope("second")
    found = [one.device["name"] for one in second.observe.published_before("nic.test")]
    assert found == ["a", "b"]
