"""``${...}`` stands for a name and computes nothing."""

from __future__ import annotations

import pytest

from conformance import probe
from conformance.data import scenarios_dir
from conformance.scenario.driver.profile import load_profile
from conformance.scenario.driver.variables import Variables, make_suffix, substitute
from kube.base.errors import UsageError

SYNTHETIC = Variables(None, "0badcafe", "busybox")


def test_a_text_that_is_one_variable_becomes_its_value() -> None:
    assert substitute("${probe.hold}", SYNTHETIC.look_up) == list(probe.HOLD)


def test_inside_a_text_the_value_is_inserted() -> None:
    text = substitute('device.driver == "${driver}"', SYNTHETIC.look_up)
    assert text == 'device.driver == "d-0badcafe.dra-conformance.dev"'


def test_a_synthetic_class_has_a_name_of_its_own() -> None:
    assert SYNTHETIC.look_up("class.gpu") == "gpu-0badcafe.dra-conformance.dev"


def test_a_replaced_value_is_not_searched_again() -> None:
    assert substitute("${driver}", lambda _: "${driver}") == "${driver}"


def test_scenarios_and_runs_never_share_a_suffix() -> None:
    assert len({make_suffix("a", "x"), make_suffix("a", "y"), make_suffix("b", "x")}) == 3


def test_a_class_that_the_profile_lacks_is_unknown() -> None:
    profile = load_profile("gpu.nvidia.com", scenarios_dir() / "drivers")
    variables = Variables(profile, "0badcafe", "busybox")
    assert variables.look_up("class.gpu") == "gpu.nvidia.com"
    with pytest.raises(UsageError, match="known are attribute"):
        variables.look_up("class.nothing")


def test_observations_lose_what_differs_from_run_to_run() -> None:
    assert SYNTHETIC.make_canonical("dra-x-0badcafe") == "dra-x-*"


def test_observations_lose_the_name_of_the_worker_where_it_stands_alone() -> None:
    profile = load_profile("gpu.nvidia.com", scenarios_dir() / "drivers")
    variables = Variables(profile, "0badcafe", "busybox", {"node-1": 1})
    text = "ResourceSlice of node-1 with s.spec.nodeName == 'node-1', not node-10 or a.node-1"
    assert variables.make_canonical(text) == (
        "ResourceSlice of ${worker.name} with s.spec.nodeName == '${worker.name}',"
        " not node-10 or a.node-1"
    )


@pytest.mark.parametrize(
    ("devices_on", "worker", "majority"),
    [
        ({"a": 1}, "a", 1),
        ({"a": 1, "b": 4, "c": 3}, "b", 3),
        # A claim has at most 32 devices.
        ({"a": 64, "b": 2, "c": 63}, "c", 32),
        ({"a": 64, "b": 128}, "b", 32),
    ],
)
def test_a_worker_is_where_most_devices_are_of_which_one_claim_can_have_the_majority(
    devices_on: dict[str, int], worker: str, majority: int
) -> None:
    profile = load_profile("gpu.nvidia.com", scenarios_dir() / "drivers")
    variables = Variables(profile, "0badcafe", "busybox", devices_on)
    assert variables.look_up("worker.name") == worker
    assert substitute("${worker.majority}", variables.look_up) == majority


def test_one_device_of_the_worker_can_be_named() -> None:
    profile = load_profile("gpu.nvidia.com", scenarios_dir() / "drivers")
    variables = Variables(profile, "0badcafe", "busybox", {"a": 2}, {"a": ("gpu-1", "true")})
    assert substitute("${worker.device} ${worker.selector}", variables.look_up) == "gpu-1 true"


def test_pods_tolerate_what_the_profile_says() -> None:
    profile = load_profile("gpu.nvidia.com", scenarios_dir() / "drivers")
    variables = Variables(profile, "0badcafe", "busybox")
    tolerations = substitute("${tolerations}", variables.look_up)
    assert tolerations == [{"key": "nvidia.com/gpu", "operator": "Exists"}]
