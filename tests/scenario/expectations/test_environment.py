"""A configuration that shows in containers, and metadata by which a driver describes devices."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any, cast

import pytest
from pydantic import ValidationError

from conformance.probe import METADATA
from conformance.scenario.driver.profile import load_profile
from conformance.scenario.expectations.base import Cluster, Evaluation
from conformance.scenario.expectations.container_environment import (
    Environment,
    EnvironmentExpectation,
    MetadataExpectation,
)
from kube.observations import ContainerView
from tests.scenario.shipped import ROOT

PROFILE = load_profile("gpu.example.com", ROOT / "drivers")
CONFIGURED = {
    "GPU_DEVICE_0_SHARING_STRATEGY": "TimeSlicing",
    "GPU_DEVICE_0_TIMESLICE_INTERVAL": "Long",
}
DEFAULT = {**CONFIGURED, "GPU_DEVICE_0_TIMESLICE_INTERVAL": "Default"}


def seen(environment: dict[str, str], **wanted: Any) -> Evaluation:
    cluster = SimpleNamespace(
        profile=PROFILE,
        observe=SimpleNamespace(container=lambda *_: ContainerView(environment, ())),
    )
    said = {"environment": {"seenBy": ["pod0/ctr0"], "config": "timeSlicing", **wanted}}
    return EnvironmentExpectation.model_validate(said).evaluate(cast("Cluster", cluster))


@pytest.mark.parametrize(
    ("environment", "shows"), [(CONFIGURED, True), (DEFAULT, False), ({}, False)]
)
def test_a_configuration_shows_where_all_of_its_values_do(
    environment: dict[str, str], shows: bool
) -> None:
    assert seen(environment).holds == shows
    assert seen(environment, absent=True).holds != shows


def test_what_shows_where_it_must_not_is_told() -> None:
    assert "pod0/ctr0 shows config timeSlicing" in seen(CONFIGURED, absent=True).finding


def test_a_claim_is_not_said_to_be_absent() -> None:
    with pytest.raises(ValidationError, match="absent is said of a config"):
        Environment.model_validate({"seenBy": ["pod0/ctr0"], "claim": "gpu", "absent": True})


DESCRIBING = load_profile("nvml-dra-driver", ROOT / "drivers")
RESULT = {"driver": DESCRIBING.driver, "pool": "n0", "device": "gpu-0", "request": "gpu"}
CLAIM = {
    "metadata": {"name": "one", "uid": "u"},
    "status": {"allocation": {"devices": {"results": [RESULT]}}},
}
SLICE = {
    "spec": {
        "driver": DESCRIBING.driver,
        "pool": {"name": "n0"},
        "devices": [{"name": "gpu-0", "attributes": {"uuid": {"string": "GPU-a"}}}],
    }
}
PATH = f"{METADATA}/resourceclaims/one/gpu/{DESCRIBING.driver}-metadata.json"


def document(*, uid: str = "u", device: str = "gpu-0", uuid: str = "GPU-a") -> str:
    told = {"pool": "n0", "name": device, "attributes": {"uuid": {"string": uuid}}}
    return json.dumps({"metadata": {"uid": uid}, "requests": [{"name": "gpu", "devices": [told]}]})


@pytest.mark.parametrize(
    ("files", "found"),
    [
        ({PATH: document() + document(uid="of an older version")}, "as described"),
        ({}, "there is no file"),
        ({PATH.replace("/one/", "/two/"): document()}, "there is no file"),
        ({PATH: ""}, "is not DeviceMetadata"),
        ({PATH: "[]"}, "is not DeviceMetadata"),
        ({PATH: '{"metadata": {"uid": "u"}, "requests": []}'}, "is not DeviceMetadata"),
        ({PATH: document(uid="other")}, "of claim 'other'"),
        ({PATH: document(device="gpu-1")}, "allocated are [('n0', 'gpu-0')]"),
        ({PATH: document(uuid="GPU-b")}, "its ResourceSlice {'string': 'GPU-a'}"),
    ],
)
def test_it_says_what_was_allocated(files: dict[str, str], found: str) -> None:
    cluster: Any = SimpleNamespace(
        profile=DESCRIBING,
        observe=SimpleNamespace(container=lambda _pod, _container: ContainerView({}, (), files)),
        claim_of=lambda _pod, _claim: CLAIM,
        find=lambda _selector: [SLICE],
    )
    wanted = {"seenBy": ["p/c"], "claim": "gpu", "request": "gpu", "attributes": ["uuid"]}
    expectation = MetadataExpectation.model_validate({"metadata": wanted})
    seen = expectation.evaluate(cast("Cluster", cluster))
    assert seen.holds == (found == "as described")
    assert found in seen.finding
