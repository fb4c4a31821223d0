"""A profile whose expressions match anything proves nothing: what is shown must be a device."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from conformance.scenario.driver.profile import load_profile
from conformance.scenario.expectations.base import Cluster
from conformance.scenario.expectations.container_devices import DevicesExpectation
from kube.observations import ContainerView
from tests.scenario.expectations.test_shown_in_both_ways import SLICE
from tests.scenario.shipped import ROOT

PROFILE = load_profile("nvml-dra-driver", ROOT / "drivers")


def seen_with(probe: dict[str, Any], wanted: dict[str, Any]) -> tuple[bool, str]:
    """What two containers of each of two pods see, of which none has a device."""
    changed = PROFILE.spec.probe.model_validate(probe)
    spec = PROFILE.spec.model_copy(update={"probe": changed})
    cluster = SimpleNamespace(
        profile=PROFILE.model_copy(update={"spec": spec}),
        observe=SimpleNamespace(
            container=lambda pod, _: ContainerView({"HOSTNAME": pod}, ("/dev/null",)),
            published_before=lambda _driver: (),
        ),
        get=lambda _kind, name: {
            "metadata": {"name": name},
            "spec": {"nodeName": "n0", "containers": [{"name": "ctr0"}, {"name": "ctr1"}]},
        },
        find=lambda _selector: [SLICE],
    )
    expectation = DevicesExpectation.model_validate({"devices": wanted})
    seen = expectation.evaluate(cast("Cluster", cluster))
    return seen.holds, seen.finding


SAME = {"seenBy": ["p/ctr0", "p/ctr1"], "relation": "same", "count": 1}
DIFFERENT = {"seenBy": ["p/ctr0", "q/ctr0"], "relation": "different", "count": 1}


@pytest.mark.parametrize("wanted", [SAME, DIFFERENT])
@pytest.mark.parametrize(
    "probe",
    [
        {"env": "^HOSTNAME=(?P<device>.+)$"},
        {"env": "(?P<device>.*)"},
        {"deviceNodes": "^/dev/(?P<device>null)$"},
        {"deviceNodes": ".*", "deviceName": "made-up"},
        {"requestEnv": "^HOSTNAME=(?P<request>.+)$"},
    ],
)
def test_what_is_no_device_is_not_seen_as_one(
    probe: dict[str, Any], wanted: dict[str, Any]
) -> None:
    holds, found = seen_with(probe, wanted)
    assert not holds
    assert "which no driver has published" in found


def test_a_device_that_there_is_must_still_be_the_one_that_was_allocated() -> None:
    """What a profile can still claim: a published device. `allocatedTo` asks for the right one."""
    lax = {"deviceNodes": ".*", "deviceName": "gpu-0"}
    assert seen_with(lax, SAME) == (True, "as described")
    assert not seen_with(lax, DIFFERENT)[0]
