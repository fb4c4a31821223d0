"""Opaque configuration: which applies, what it does, and what is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from kube.cdi.reading import resolve
from nvml_driver.config.kinds import KINDS, GpuConfig, decode_config
from nvml_driver.config.opaque import settings_for
from nvml_driver.errors import ConfigError, PrepareError
from nvml_driver.model.inventory import Kind
from tests.nvml_driver.helpers import DRIVER, gpu_config, make_claim, make_core, opaque, result

API = "resource.nvidia.com/v1beta1"


def environment(
    configs: list[dict[str, Any]], request: str = "gpu", kind: Kind = "full"
) -> dict[str, str]:
    [settings] = settings_for(DRIVER, configs, [(request, kind)], simulated=True)
    return dict(settings)


def interval(configs: list[dict[str, Any]], request: str = "gpu") -> str | None:
    return environment(configs, request).get("TIMESLICE_INTERVAL")


def sharing(**fields: Any) -> dict[str, Any]:
    return {"apiVersion": API, "kind": "GpuConfig", "sharing": fields}


def test_time_slicing_shows_in_the_environment(tmp_path: Path) -> None:
    claim = make_claim(result("gpu-3"), config=[opaque(gpu_config("Default"))])
    [device] = make_core(tmp_path).prepare(claim)
    env = resolve([tmp_path / "cdi"], device.cdi_device_ids).env
    assert env["GPU_DEVICE_3_SHARING_STRATEGY"] == "TimeSlicing"
    assert env["GPU_DEVICE_3_TIMESLICE_INTERVAL"] == "Default"


@pytest.mark.parametrize(
    ("configs", "request_name", "expected"),
    [
        ([], "gpu", None),
        ([opaque(gpu_config("Short"))], "gpu", "Short"),
        ([opaque(gpu_config("Short"), driver="other.io")], "gpu", None),
        (
            [opaque(gpu_config("Long"), source="FromClass"), opaque(gpu_config("Short"))],
            "gpu",
            "Short",
        ),
        (
            [opaque(gpu_config("Short")), opaque(gpu_config("Long"), source="FromClass")],
            "gpu",
            "Short",
        ),
        ([opaque(gpu_config("Short")), opaque(gpu_config("Medium"))], "gpu", "Medium"),
        ([opaque(gpu_config("Short"), "other")], "gpu", None),
        ([opaque(gpu_config("Short"), "gpu")], "gpu/large", "Short"),
        ([opaque(gpu_config("Short"), "gpu/large")], "gpu/large", "Short"),
        ([opaque(gpu_config("Short"), "gpu/large")], "gpu/small", None),
        (
            [opaque(gpu_config("Short"), "gpu/l"), opaque(gpu_config("Long"), "gpu")],
            "gpu/l",
            "Long",
        ),
    ],
    ids=[
        "none",
        "unscoped",
        "of another driver",
        "claim after class",
        "claim after class however listed",
        "later wins",
        "for another request",
        "for the request of a subrequest",
        "for the subrequest",
        "for another subrequest",
        "later wins over more specific",
    ],
)
def test_which_configuration_applies(
    configs: list[dict[str, Any]], request_name: str, expected: str | None
) -> None:
    assert interval(configs, request_name) == expected


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        (sharing(strategy="TimeSlicing", timeSlicingConfg={}), "sharing.timeSlicingConfg: unknown"),
        (
            sharing(strategy="TimeSlicing", timeSlicingConfig={"interval": "Tiny"}),
            "sharing.timeSlicingConfig.interval: .*'Short'",
        ),
        (sharing(strategy="Chaos"), "sharing.strategy"),
        (sharing(strategy="TimeSlicing", mpsConfig={}), "mpsConfig: not allowed with"),
        (sharing(strategy="MPS", timeSlicingConfig={}), "timeSlicingConfig: not allowed with"),
        (
            sharing(strategy="MPS", mpsConfig={"defaultActiveThreadPercentage": 101}),
            "sharing.mpsConfig.defaultActiveThreadPercentage",
        ),
        (
            sharing(strategy="MPS", mpsConfig={"defaultPinnedDeviceMemoryLimit": "lots"}),
            "sharing.mpsConfig.defaultPinnedDeviceMemoryLimit",
        ),
        ({"apiVersion": API, "kind": "GpuConfig", "Sharing": {}}, "Sharing: unknown field"),
        ({"apiVersion": "v1", "kind": "GpuConfig"}, "unknown apiVersion 'v1'"),
        ({"apiVersion": API, "kind": "Gpu"}, "kind 'Gpu'; expected .*GpuConfig"),
    ],
)
def test_a_configuration_is_decoded_strictly(parameters: dict[str, Any], message: str) -> None:
    configs = [opaque(gpu_config("Long")), opaque(parameters, "gpu", source="FromClass")]
    with pytest.raises(ConfigError, match=message) as caught:
        environment(configs)
    assert str(caught.value).startswith("configuration 1 (from the class for requests gpu): ")


def test_a_kind_for_other_devices_is_skipped_unless_it_names_the_request() -> None:
    mig = {"apiVersion": API, "kind": "MigDeviceConfig", "sharing": {"strategy": "MPS"}}
    assert interval([opaque(gpu_config("Long")), opaque(mig)]) == "Long"
    with pytest.raises(ConfigError, match="MigDeviceConfig is not for the full GPUs"):
        interval([opaque(mig, "gpu")])


def test_mps_settings_are_read() -> None:
    config = GpuConfig.model_validate(
        sharing(
            strategy="MPS",
            mpsConfig={
                "defaultActiveThreadPercentage": 50,
                "defaultPinnedDeviceMemoryLimit": "10Gi",
                "defaultPerDevicePinnedMemoryLimit": {"0": "5Gi"},
            },
        )
    )
    assert dict(config.list_settings()) == {
        "SHARING_STRATEGY": "MPS",
        "MPS_ACTIVE_THREAD_PERCENTAGE": "50",
        "MPS_PINNED_DEVICE_MEMORY_LIMIT": "10Gi",
        "MPS_PER_DEVICE_PINNED_MEMORY_LIMIT": "0=5Gi",
    }


def test_what_a_real_gpu_would_not_be_given_is_refused_for_it() -> None:
    default = GpuConfig.model_validate(gpu_config("Default"))
    assert default.explain_unsupported() is None
    assert GpuConfig.model_validate(gpu_config("Short")).explain_unsupported() is None
    asked = sharing(strategy="MPS")
    assert "real GPUs" in str(GpuConfig.model_validate(asked).explain_unsupported())
    with pytest.raises(ConfigError, match=r"^configuration 0 \(from the claim\): .*real GPUs"):
        settings_for(DRIVER, [opaque(asked)], [("gpu", "full")], simulated=False)


def mig(**sharing: Any) -> dict[str, Any]:
    document = {"apiVersion": API, "kind": "MigDeviceConfig"}
    return {**document, "sharing": sharing} if sharing else document


def vfio(**iommu: Any) -> dict[str, Any]:
    return {"apiVersion": API, "kind": "VfioDeviceConfig", "iommu": iommu}


@pytest.mark.parametrize("kind", ["mig", "mig-partition"])
def test_each_kind_of_device_takes_its_kind_of_configuration(kind: Kind) -> None:
    everything = [
        opaque(gpu_config("Long")),
        opaque(mig(strategy="MPS", mpsConfig={"multiUser": True})),
        opaque(vfio(backendPolicy="PreferIommuFD", enableAPIDevice=False)),
    ]
    assert environment(everything)["TIMESLICE_INTERVAL"] == "Long"
    assert environment(everything, kind=kind) == {
        "SHARING_STRATEGY": "MPS",
        "MPS_MULTI_USER": "true",
    }
    assert environment(everything, kind="vfio") == {
        "IOMMU_BACKEND_POLICY": "PreferIommuFD",
        "IOMMU_API_DEVICE": "false",
    }


@pytest.mark.parametrize("kind", ["full", "mig", "mig-partition", "vfio"])
@pytest.mark.parametrize("config_kind", KINDS)
def test_a_configuration_of_the_wrong_kind_that_names_the_request_is_an_error(
    kind: Kind, config_kind: str
) -> None:
    parameters = {"apiVersion": API, "kind": config_kind}
    if kind in KINDS[config_kind].device_kinds:
        assert environment([opaque(parameters, "gpu")], kind=kind) == {}
    else:
        with pytest.raises(ConfigError, match=f"{config_kind} is not for the "):
            environment([opaque(parameters, "gpu")], kind=kind)
        assert environment([opaque(parameters, "gpu")], request="other", kind=kind) == {}


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        (mig(strategy="TimeSlicing", timeSlicingConfig={}), "timeSlicingConfig: unknown field"),
        (mig(strategy="TimeSlicing", mpsConfig={}), "mpsConfig: not allowed with"),
        (mig(mpsConfig={}), "sharing.strategy"),
        (vfio(backendPolicy="Whatever"), "iommu.backendPolicy"),
        (vfio(enableApiDevice=True), "iommu.enableApiDevice: unknown field"),
        (vfio(enableAPIDevice="yes"), "iommu.enableAPIDevice"),
        (
            sharing(strategy="MPS", mpsConfig={"defaultPerDevicePinnedMemoryLimit": {"x": "1Gi"}}),
            "mpsConfig.defaultPerDevicePinnedMemoryLimit.x",
        ),
        ([], "parameters must be an object"),
        (None, "parameters must be an object"),
        ({"apiVersion": API, "kind": ["GpuConfig"]}, "unknown apiVersion"),
    ],
)
def test_every_kind_is_decoded_strictly(parameters: Any, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        decode_config(parameters)


def test_a_refused_configuration_names_the_claim_and_leaves_nothing(tmp_path: Path) -> None:
    driver = make_core(tmp_path)
    claim = make_claim(result("gpu-0"), config=[opaque(gpu_config("Tiny"))])
    with pytest.raises(PrepareError, match=r"^claim default/claim-uid-1 \(uid uid-1\): config"):
        driver.prepare(claim)
    assert driver.list_prepared() == {}
    assert list((tmp_path / "cdi").iterdir()) == []
