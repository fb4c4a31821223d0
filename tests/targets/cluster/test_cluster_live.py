"""A cluster that is followed: what changed, what went unseen meanwhile, what is kept."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from conformance.targets.cluster import ClusterTarget
from conformance.targets.cluster.live import Changed, LiveCluster
from kube.base.errors import TargetError
from tests.kube.fake_api import FakeApi
from tests.targets.cluster.test_cluster_capture import SECRET, fill, names


@pytest.fixture
def live(target: ClusterTarget) -> Iterator[LiveCluster]:
    made = LiveCluster(target.api)
    yield made
    made.stop()


def until(live: LiveCluster, *wanted: tuple[str, str]) -> Changed:
    found: dict[tuple[str, str], object] = {}
    while not found.keys() >= set(wanted):
        more = live.changes(10)
        assert more, f"nothing came; so far {found.keys()}"
        found |= more
    return found  # type: ignore[return-value]


def test_all_is_told_first_then_what_changes_and_no_secret_is_kept(
    api: FakeApi, live: LiveCluster
) -> None:
    fill(api)
    said: list[str] = []
    live.start(said.append)
    first = live.changes(0)
    kinds = [kind for kind, _ in first]
    assert {kind: kinds.count(kind) for kind in kinds} == {
        "ResourceSlice": 2,
        "DeviceClass": 1,
        "ResourceClaim": 2,
        "Node": 2,
        "Pod": 3,
    }
    text = str(first.values()).replace(f"'owner': '{SECRET}'", "")
    assert SECRET not in text
    assert any("limit=500" in path for _, path, *_ in api.requests)
    claim = api.objects["resourceclaims", "ns", "picky"]
    changed = api.put("resourceclaims", {**claim, "spec": {"devices": {}}})
    key = ("ResourceClaim", changed["metadata"]["uid"])
    obj = until(live, key)[key]
    assert obj is not None
    assert (obj["spec"], "note" in str(obj)) == ({"devices": {}}, False)
    assert (said, set(live.troubles().values())) == ([], {None})


def test_what_went_while_the_server_forgot_the_watch_is_told_as_gone(
    api: FakeApi, live: LiveCluster
) -> None:
    fill(api)
    live.start(print)
    [uid] = [key[1] for key, obj in live.changes(0).items() if obj and names([obj]) == ["holder"]]
    api.mute = True
    api.drop("pods", "ns", "holder")
    api.forget()
    assert until(live, ("Pod", uid))["Pod", uid] is None


def test_pods_that_may_not_be_followed_are_named_and_anything_else_is_an_error(
    api: FakeApi, target: ClusterTarget, live: LiveCluster
) -> None:
    said: list[str] = []
    api.fail("GET", "/pods", 403)
    live.start(said.append)
    assert not live.sees_pods
    assert "(403)" in said[0]
    live.stop()  # else its watch of nodes may be what is refused
    api.fail("GET", "/nodes", 403)
    other = LiveCluster(target.api)
    with pytest.raises(TargetError, match=r"\(403\).*--rbac"):
        other.start(print)
    other.stop()
