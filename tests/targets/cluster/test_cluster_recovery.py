from __future__ import annotations

import json
import time

import pytest

from conformance.targets.cluster.scope import ClusterScope
from conformance.targets.cluster.target import ClusterTarget
from kube.base.errors import TargetError
from kube.values import Query, Ref
from kubesim.apiserver.patches import merge
from tests.kube.fake_api import FakeApi
from tests.targets.cluster.conftest import MakeTarget, until
from tests.targets.cluster.test_cluster_recording import ALLOCATED, CLAIM, inventory

POD0 = Ref("v1", "Pod", "pod0")


def pod(phase: str) -> dict[str, object]:
    return {"metadata": {"name": "pod0", "namespace": "demo"}, "status": {"phase": phase}}


def runs(scope: ClusterScope) -> bool | None:
    found = scope.get(POD0)
    return True if found is not None and found["status"]["phase"] == "Running" else None


def test_a_list_whose_connection_is_reset_in_the_middle_is_read_again(
    api: FakeApi, scope: ClusterScope
) -> None:
    api.put("pods", pod("Pending"))
    api.fail("GET", "/pods", -2)
    assert [item["metadata"]["name"] for item in scope.find(Query("v1", "Pod"))] == ["pod0"]
    assert api.count("GET", "/pods") == 2


def test_the_first_list_of_a_wait_survives_a_reset(api: FakeApi, scope: ClusterScope) -> None:
    api.put("pods", pod("Running"))
    api.fail("GET", "/pods", -2, times=2)
    assert scope.wait(lambda: runs(scope), 10)


def test_a_watch_that_is_reset_in_the_middle_of_a_change_still_brings_it(
    api: FakeApi, scope: ClusterScope
) -> None:
    api.put("pods", pod("Pending"))
    api.fail("GET", "pods?watch=true", -2)
    assert scope.wait(lambda: scope.get(POD0), 5)
    until(lambda: api.count("GET", "pods?watch=true"))
    began = time.monotonic()
    api.put("pods", pod("Running"))
    assert scope.wait(lambda: runs(scope), 20)
    assert time.monotonic() - began < 10  # told by a watch, not by the last look
    assert api.count("GET", "pods?watch=true") == 2


@pytest.mark.parametrize("how", ["cut", "forget"])
def test_a_record_misses_nothing_while_its_watches_are_away(
    api: FakeApi, make_target: MakeTarget, how: str
) -> None:
    inventory(api)
    scope = make_target(record=True).scope("demo")
    with api.changed:
        api.mute = True
        api.put("resourceclaims", merge(CLAIM, ALLOCATED))
        getattr(api, how)()
        api.mute = False
    (decision,) = scope.decisions()
    assert decision.snapshot["slices"]
    scope.close()


@pytest.mark.parametrize("answer", [[], {"resources": 5}, {"resources": [{"name": 5}]}])
def test_discovery_of_another_shape_is_an_error_that_says_so(
    target: ClusterTarget, monkeypatch: pytest.MonkeyPatch, answer: object
) -> None:
    monkeypatch.setattr(
        target.api.connection, "read_text", lambda *_args, **_kwargs: json.dumps(answer).encode()
    )
    with pytest.raises(TargetError, match="is this the address of an API server"):
        target.api.discovery.find("v1", "Pod")
