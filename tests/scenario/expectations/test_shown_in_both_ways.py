"""A profile with an environment and device nodes: a container must show its devices in both."""

from __future__ import annotations

from types import SimpleNamespace
from typing import cast

import pytest

from conformance.scenario.driver.profile import load_profile
from conformance.scenario.expectations.base import Cluster
from conformance.scenario.expectations.container_devices import DevicesExpectation
from kube.observations import ContainerView
from tests.scenario.shipped import ROOT

PROFILE = load_profile("nvml-dra-driver", ROOT / "drivers")
ENV = {"GPU_DEVICE_0": "gpu-0"}
SLICE = {
    "spec": {
        "driver": PROFILE.driver,
        "nodeName": "n0",
        "pool": {"name": "n0"},
        "devices": [{"name": "gpu-0"}],
    }
}
POD = {"metadata": {"name": "pod0"}, "spec": {"nodeName": "n0", "containers": [{"name": "ctr0"}]}}


@pytest.mark.parametrize(
    ("environment", "nodes", "found"),
    [
        (ENV, ("/dev/null", "/dev/nvidia0"), "as described"),
        (ENV, ("/dev/null",), "gpu-0 by its environment variables; none by its device nodes"),
        ({}, ("/dev/nvidia0",), "none by its environment variables; gpu-0 by its device nodes"),
        (ENV, ("/dev/nvidia1",), "gpu-0 by its environment variables; gpu-1 by its device nodes"),
    ],
)
def test_half_a_device_is_none(
    environment: dict[str, str], nodes: tuple[str, ...], found: str
) -> None:
    cluster = SimpleNamespace(
        profile=PROFILE,
        observe=SimpleNamespace(
            container=lambda *_: ContainerView(environment, nodes),
            published_before=lambda _driver: (),
        ),
        get=lambda _kind, _name: POD,
        find=lambda _selector: [SLICE],
    )
    expectation = DevicesExpectation.model_validate(
        {"devices": {"seenBy": ["pod0/ctr0"], "count": 1}}
    )
    seen = expectation.evaluate(cast("Cluster", cluster))
    assert seen.holds == (found == "as described")
    assert found in seen.finding
