from __future__ import annotations

import threading
import time
from typing import Any

import pytest

from conformance import probe
from conformance.targets.cluster.scope import ClusterScope
from kube.base.errors import TargetError
from kube.values import Ref
from tests.kube.fake_api import FakeApi

LOG = f"{probe.BEGIN}\nHOME=/\nGPU=a\ndra-conformance-device-node /dev/gpu0\n{probe.END}\n"


def pod(container_id: str = "containerd://1", state: str = "running") -> dict[str, Any]:
    status = {"name": "ctr0", "containerID": container_id, "state": {state: {}}}
    return {
        "metadata": {"name": "pod0", "namespace": "demo"},
        "spec": {"nodeName": "n1"},
        "status": {"containerStatuses": [status]},
    }


def test_a_container_shows_what_its_probe_printed(api: FakeApi, scope: ClusterScope) -> None:
    api.put("pods", pod())
    api.logs["demo/pod0/ctr0"] = LOG
    view = scope.observe.container("pod0", "ctr0")
    assert view is not None
    assert view.environment == {"HOME": "/", "GPU": "a"}
    assert view.device_nodes == ("/dev/gpu0",)
    scope.observe.container("pod0", "ctr0")
    assert api.count("GET", "/log") == 1  # one run of a container is read to its end once


def test_a_restarted_container_is_read_again(api: FakeApi, scope: ClusterScope) -> None:
    api.put("pods", pod())
    api.logs["demo/pod0/ctr0"] = LOG
    scope.observe.container("pod0", "ctr0")
    api.put("pods", pod("containerd://2"))
    api.logs["demo/pod0/ctr0"] = LOG.replace("GPU=a", "GPU=b")
    view = scope.observe.container("pod0", "ctr0")
    assert view is not None
    assert view.environment["GPU"] == "b"


@pytest.mark.parametrize("what", ["no pod", "waiting", "other container", "not printed yet"])
def test_nothing_is_known_of_a_container_that_has_not_run_its_probe(
    api: FakeApi, scope: ClusterScope, what: str
) -> None:
    if what != "no pod":
        api.put("pods", pod("" if what == "waiting" else "containerd://1"))
    api.logs["demo/pod0/ctr0"] = f"{probe.BEGIN}\nHOME=/\n" if "printed" in what else LOG
    assert scope.observe.container("pod0", "other" if "other" in what else "ctr0") is None


def test_a_waiting_check_sees_the_log_soon_after_it_is_complete(
    api: FakeApi, scope: ClusterScope
) -> None:
    api.put("pods", pod())

    def act() -> None:
        time.sleep(0.3)
        api.logs["demo/pod0/ctr0"] = LOG

    thread = threading.Thread(target=act)
    began = time.monotonic()
    thread.start()
    assert scope.wait(lambda: scope.observe.container("pod0", "ctr0"), 10) is not None
    assert time.monotonic() - began < 2
    assert api.count("GET", "/log") < 12
    thread.join()


def test_a_container_that_ended_without_a_probe_is_not_read_forever(
    api: FakeApi, scope: ClusterScope, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("conformance.targets.cluster.observer._LONGEST", 0.02)
    api.put("pods", pod(state="terminated"))
    assert scope.wait(lambda: scope.observe.container("pod0", "ctr0"), 0.6) is None
    assert 5 < api.count("GET", "/log") < 14


def test_a_log_that_the_kubelet_refuses_is_an_error_of_the_target(
    api: FakeApi, scope: ClusterScope
) -> None:
    api.put("pods", pod())
    api.fail("GET", "/log", 403)
    with pytest.raises(TargetError, match="log of container ctr0 of pod pod0 cannot be read"):
        scope.observe.container("pod0", "ctr0")


def test_a_kubelet_that_is_away_is_waited_for_and_named_only_if_it_stays_away(
    api: FakeApi, scope: ClusterScope, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("conformance.targets.cluster.observer._PATIENCE", 0.05)
    api.put("pods", pod())
    api.logs["demo/pod0/ctr0"] = LOG
    api.fail("GET", "/log", 500, times=6)
    assert scope.wait(lambda: scope.observe.container("pod0", "ctr0"), 10) is not None
    api.drop("pods", "demo", "pod0")
    ref = Ref("v1", "Pod", "pod0")
    assert scope.wait(lambda: scope.get(ref) is None or None, 5)
    api.put("pods", pod("containerd://2"))
    api.fail("GET", "/log", 500, times=99)
    with pytest.raises(TargetError, match="reaches the kubelet of n1"):
        scope.wait(lambda: scope.observe.container("pod0", "ctr0"), 0.3)
