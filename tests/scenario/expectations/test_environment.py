"""A configuration that shows in containers, and one that must not, for it is of another request."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest
from pydantic import ValidationError

from conformance.scenario.driver.profile import load_profile
from conformance.scenario.expectations.base import Cluster, Seen
from conformance.scenario.expectations.containers.environment import (
    Environment,
    EnvironmentExpectation,
)
from conformance.scenario.observation import ContainerView
from tests.scenario.shipped import ROOT

PROFILE = load_profile("gpu.example.com", ROOT / "drivers")
CONFIGURED = {
    "GPU_DEVICE_0_SHARING_STRATEGY": "TimeSlicing",
    "GPU_DEVICE_0_TIMESLICE_INTERVAL": "Long",
}
DEFAULT = {**CONFIGURED, "GPU_DEVICE_0_TIMESLICE_INTERVAL": "Default"}


def seen(environment: dict[str, str], **wanted: Any) -> Seen:
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
    assert "pod0/ctr0 shows config timeSlicing" in seen(CONFIGURED, absent=True).found


def test_a_claim_is_not_said_to_be_absent() -> None:
    with pytest.raises(ValidationError, match="absent is said of a config"):
        Environment.model_validate({"seenBy": ["pod0/ctr0"], "claim": "gpu", "absent": True})
