"""A driver may show a container its requests instead of its devices, as Kubernetes' own does."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from conformance.scenario.driver.profile import load_profile
from conformance.scenario.expectations.base import Cluster
from conformance.scenario.expectations.container_identity import Device, identify_requested_devices
from tests.scenario.shipped import ROOT

PROFILE = load_profile("test-driver.cdi.k8s.io", ROOT / "drivers")
DRIVER = PROFILE.driver


def claim(name: str, **devices: list[str]) -> dict[str, Any]:
    """A claim whose requests (without an alternative) have these devices of pool n0."""
    results = [
        {"request": request, "driver": driver, "pool": "n0", "device": device}
        for request, names in devices.items()
        for device in names
        for driver in (DRIVER, "another.example.com")
    ]
    return {
        "metadata": {"name": name},
        "spec": {"devices": {"requests": [{"name": request} for request in devices]}},
        "status": {"allocation": {"devices": {"results": results}}},
    }


CLAIMS = {
    "own": claim("pod0-own-x2b.c", gpu=["device-00", "device-01"], nic=["device-03"]),
    "released": {**claim("released", gpu=[]), "status": {}},
}
POD = {
    "metadata": {"name": "pod0"},
    "spec": {
        "nodeName": "n0",
        "resourceClaims": [{"name": "own"}, {"name": "released"}, {"name": "not-made-yet"}],
        "containers": [],
    },
}
CLUSTER = cast(
    "Cluster", SimpleNamespace(profile=PROFILE, claim_of=lambda _pod, name: CLAIMS.get(name))
)

GONE = cast(
    "Cluster",
    SimpleNamespace(
        profile=PROFILE, claim_of=lambda _pod, _name: None, get=lambda _kind, _name: None
    ),
)


def device(name: str) -> Device:
    return Device(name, frozenset({"n0"}))


@pytest.mark.parametrize(
    ("variables", "devices"),
    [
        ({}, []),
        ({"PATH": "/bin", "claim_x_y": "false"}, []),
        ({"claim_pod0_own_x2b_c_gpu": "true"}, ["device-00", "device-01"]),
        (
            {"claim_pod0_own_x2b_c_gpu": "true", "claim_pod0_own_x2b_c_nic": "true"},
            ["device-00", "device-01", "device-03"],
        ),
        ({"claim_released_gpu": "true"}, ["claim_released_gpu"]),
    ],
)
def test_devices_of_the_requests_that_a_container_shows(
    variables: dict[str, str], devices: list[str]
) -> None:
    shown = PROFILE.spec.probe.read_requests(variables)
    assert identify_requested_devices(shown, POD, CLUSTER) == set(map(device, devices))


def test_a_request_of_no_claim_of_the_pod_has_no_device() -> None:
    shown = PROFILE.spec.probe.read_requests({"claim_of_another_pod_gpu": "true"})
    assert identify_requested_devices(shown, POD, CLUSTER) == {
        Device("claim_of_another_pod_gpu", frozenset())
    }


def test_a_driver_that_shows_devices_shows_no_requests() -> None:
    probe = load_profile("gpu.example.com", ROOT / "drivers").spec.probe
    assert probe.read_requests({"claim_a_b": "true", "GPU_DEVICE_0": "gpu-0"}) == frozenset()


def test_requests_of_claims_that_are_gone_are_those_of_the_pod_that_had_them() -> None:
    pod = {
        **POD,
        "status": {"resourceClaimStatuses": [{"name": "own", "resourceClaimName": "pod0-own-z"}]},
    }
    found = identify_requested_devices(["pod0_own_z_gpu", "other_gpu"], pod, GONE)
    assert found == {device("claim_pod0_own_z_gpu"), Device("claim_other_gpu", frozenset())}


def test_the_claim_of_an_ended_pod_may_have_been_generated_again() -> None:
    """Its status then names a claim that its containers never had (kubernetes#141274)."""
    entry = {"name": "own", "resourceClaimTemplateName": "template"}
    ended: dict[str, Any] = {
        "metadata": {"name": "pod0"},
        "spec": {"nodeName": "n0", "containers": [], "resourceClaims": [entry]},
        "status": {
            "phase": "Succeeded",
            "resourceClaimStatuses": [{"name": "own", "resourceClaimName": "pod0-own-new01"}],
        },
    }
    shown = ["pod0_own_old01_gpu", "pod1_own_old01_gpu"]
    found = identify_requested_devices(shown, ended, GONE)
    assert found == {
        device("claim_pod0_own_old01_gpu"),
        Device("claim_pod1_own_old01_gpu", frozenset()),
    }
    running = {**ended, "status": {**ended["status"], "phase": "Running"}}
    assert identify_requested_devices(shown[:1], running, GONE) == {
        Device(f"claim_{shown[0]}", frozenset())
    }
