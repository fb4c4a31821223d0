"""What the profile nvml-dra-driver says of the driver is what the driver does."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from conformance.scenario.driver.profile import DriverProfile, load_profile
from kube.cdi.reading import resolve
from kube.observations import ContainerView
from nvml_driver.simulated import list_shipped_profiles
from tests.nvml_driver.helpers import make_claim, make_core, opaque, result

DRIVERS = Path(__file__).parents[2] / "scenarios" / "drivers"


@pytest.fixture
def described() -> DriverProfile:
    return load_profile("nvml-dra-driver", DRIVERS)


@pytest.mark.parametrize("shown", list_shipped_profiles())
def test_every_device_has_the_attributes_that_the_profile_names(
    tmp_path: Path, described: DriverProfile, shown: str
) -> None:
    named = set(described.spec.attributes.values())
    for gpu in make_core(tmp_path, shown=shown).inventory:
        assert named <= set(gpu.attributes)


@pytest.mark.parametrize("through", ["env", "device_nodes", "both"])
def test_the_probe_reads_the_devices_that_were_prepared(
    tmp_path: Path, described: DriverProfile, through: str
) -> None:
    devices = make_core(tmp_path).prepare(make_claim(result("gpu-1"), result("gpu-3", "b")))
    edits = resolve([tmp_path / "cdi"], [i for d in devices for i in d.cdi_device_ids])
    env = dict(edits.env) if through != "device_nodes" else {}
    nodes = tuple(node.path for node in edits.device_nodes) if through != "env" else ()
    seen = described.spec.probe.read_devices(ContainerView(env, nodes), described.driver, {})
    assert frozenset().union(*seen.values()) == {"gpu-1", "gpu-3"}


def test_a_configuration_shows_as_the_profile_says_and_only_if_it_was_given(
    tmp_path: Path, described: DriverProfile
) -> None:
    expected = described.spec.probe.config_env["timeSlicing"]
    given = opaque(described.spec.config["timeSlicing"], "with")
    driver = make_core(tmp_path)
    claim = make_claim(result("gpu-0", "with"), result("gpu-1", "without"), config=[given])
    for device in driver.prepare(claim):
        env = resolve([tmp_path / "cdi"], device.cdi_device_ids).env
        shown = {
            pattern: value
            for pattern in expected
            for name, value in env.items()
            if re.match(pattern, name)
        }
        assert shown == (expected if device.request_names == ("with",) else {})


def test_the_profile_of_the_example_driver_can_be_read() -> None:
    example = load_profile("gpu.example.com", DRIVERS)
    assert example.driver == "gpu.example.com"
    environment = {"GPU_DEVICE_3": "gpu-3", "GPU_DEVICE_3_RESOURCE_CLAIM": "uid"}
    seen = example.spec.probe.read_devices(
        ContainerView(environment, ("/dev/null",)), example.driver, {}
    )
    assert seen == {"environment variables": {"gpu-3"}}
