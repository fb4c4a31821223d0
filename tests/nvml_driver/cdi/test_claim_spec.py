"""The CDI spec of a claim on a node whose device files are the node's own."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from nvml_driver.cdi.claim_spec import SpecBuilder
from nvml_driver.errors import PrepareError
from nvml_driver.model.inventory import Device, Inventory
from nvml_driver.model.prepared import ClaimRecord, ClaimState, PreparedDevice

RECORD = ClaimRecord(
    uid="u",
    namespace="n",
    name="c",
    state=ClaimState.PREPARE_COMPLETED,
    devices=(
        PreparedDevice(
            request_names=("gpu",),
            pool_name="node-a",
            device_name="gpu-1",
            cdi_device_ids=("k8s.d.io/claim=u-gpu-1",),
        ),
    ),
)


def builder(device_root: Path) -> SpecBuilder:
    gpu = Device(name="gpu-1", minor=1, uuid=None, attributes={}, capacity={})
    return SpecBuilder(
        Inventory(devices=(gpu,), simulated=False),
        driver_name="d.io",
        node_name="node-a",
        device_root=device_root,
        declared_only=False,
    )


def make_files(root: Path, *names: str) -> None:
    """Character devices, without needing root: links to the null device."""
    for name in names:
        (root / name).symlink_to("/dev/null")


def test_the_files_that_all_gpus_share_are_named_if_they_are_there(tmp_path: Path) -> None:
    make_files(tmp_path, "nvidia1", "nvidiactl", "nvidia-uvm")
    spec = builder(tmp_path).build(RECORD)
    assert [node["hostPath"] for node in spec["containerEdits"]["deviceNodes"]] == [
        f"{tmp_path}/nvidiactl",
        f"{tmp_path}/nvidia-uvm",
    ]
    [device] = spec["devices"]
    assert device["name"] == "u-gpu-1"
    assert device["containerEdits"] == {
        "env": ["GPU_DEVICE_1=gpu-1", "GPU_DEVICE_1_RESOURCE_CLAIM=u"],
        "deviceNodes": [
            {"path": "/dev/nvidia1", "hostPath": f"{tmp_path}/nvidia1", "permissions": "rw"}
        ],
    }


@pytest.mark.parametrize("missing", ["nvidia1", "nvidiactl"])
def test_a_missing_device_file_is_an_error_and_no_container_without_its_gpu(
    tmp_path: Path, missing: str
) -> None:
    make_files(tmp_path, *{"nvidia1", "nvidiactl"} - {missing})
    with pytest.raises(PrepareError, match=f"{missing} is missing"):
        builder(tmp_path).build(RECORD)


def test_a_plain_file_is_no_device(tmp_path: Path) -> None:
    make_files(tmp_path, "nvidiactl")
    (tmp_path / "nvidia1").write_text("")
    with pytest.raises(PrepareError, match="nvidia1 is missing"):
        builder(tmp_path).build(RECORD)


@pytest.mark.parametrize(
    ("settings", "there", "expected"),
    [
        ({}, True, ["vfio/42", "vfio/vfio"]),
        ({"IOMMU_API_DEVICE": "false"}, True, ["vfio/42"]),
        ({"IOMMU_BACKEND_POLICY": "LegacyOnly"}, True, ["vfio/42", "vfio/vfio"]),
        (
            {"IOMMU_BACKEND_POLICY": "PreferIommuFD", "IOMMU_API_DEVICE": "true"},
            True,
            ["vfio/devices/vfio3", "iommu", "vfio/vfio"],
        ),
        (
            {"IOMMU_BACKEND_POLICY": "PreferIommuFD", "IOMMU_API_DEVICE": "false"},
            True,
            ["vfio/devices/vfio3"],
        ),
        ({"IOMMU_BACKEND_POLICY": "PreferIommuFD"}, False, ["vfio/42", "vfio/vfio"]),
    ],
    ids=["default", "no-control", "legacy", "iommufd", "iommufd-no-control", "not-there"],
)
def test_a_gpu_of_vfio_pci_comes_with_the_interface_that_is_preferred_and_there(
    tmp_path: Path, settings: dict[str, str], there: bool, expected: list[str]
) -> None:
    (tmp_path / "vfio" / "devices").mkdir(parents=True)
    make_files(tmp_path, "vfio/42", "vfio/vfio", "vfio/devices/vfio3", "iommu")
    gpu = Device(
        kind="vfio",
        name="gpu-vfio-0",
        minor=None,
        uuid=None,
        attributes={},
        capacity={},
        iommu_group=42,
        iommufd="vfio3" if there else None,
    )
    made = SpecBuilder(
        Inventory(devices=(gpu,), simulated=False),
        driver_name="d.io",
        node_name="node-a",
        device_root=tmp_path,
        declared_only=False,
    )
    prepared = replace(
        RECORD.devices[0], device_name="gpu-vfio-0", kind="vfio", settings=tuple(settings.items())
    )
    spec = made.build(replace(RECORD, devices=(prepared,)))
    [device] = spec["devices"]
    nodes = device["containerEdits"]["deviceNodes"]
    assert [node["path"] for node in nodes] == [f"/dev/{name}" for name in expected]
    assert "deviceNodes" not in spec["containerEdits"]


def test_two_instances_hide_nothing_of_each_other() -> None:
    """With a prefix all that one gives has another name, and its files another number."""
    gpu = Device(name="gpu-1", minor=1, uuid=None, attributes={}, capacity={})

    def shown(prefix: str) -> tuple[set[str], dict[str, tuple[int, int]]]:
        made = SpecBuilder(
            Inventory(devices=(gpu,), simulated=True),
            driver_name="d.io",
            node_name="node-a",
            device_root=Path("/dev"),
            declared_only=True,
            prefix=prefix,
        ).build(RECORD)
        edits = [made["containerEdits"], *(one["containerEdits"] for one in made["devices"])]
        env = {text.partition("=")[0] for one in edits for text in one["env"]}
        nodes = [node for one in edits for node in one["deviceNodes"]]
        return env, {node["path"]: (node["major"], node["minor"]) for node in nodes}

    (plain, files), (other, its_files) = shown(""), shown("other")
    assert other == {f"OTHER_{name}" for name in plain}
    assert {*its_files} == {path.replace("/dev/", "/dev/other/") for path in files}
    assert not {*files.values()} & {*its_files.values()}
