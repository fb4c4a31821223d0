"""Device metadata files, as a container reads them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from kube.cdi.reading import device_ids
from nvml_driver.core import DriverCore
from nvml_driver.nvml.library import NvmlLibrary
from tests.nvml_driver.helpers import make_claim, options_below, result


def driver(root: Path) -> DriverCore:
    options = options_below(root, device_metadata=True)
    return DriverCore(options, NvmlLibrary.load_simulated("t4x4"))


def stream(text: str) -> list[dict[str, Any]]:
    """All JSON documents of a stream."""
    decoder, found, at = json.JSONDecoder(), [], 0
    while text[at:].strip():
        document, end = decoder.raw_decode(text[at:].lstrip())
        at += end + len(text[at:]) - len(text[at:].lstrip())
        found.append(document)
    return found


def mounts(root: Path, ids: tuple[str, ...]) -> dict[str, str]:
    """Container path to host path, of what these CDI devices mount read-only."""
    defined = device_ids([root / "cdi"])
    found = {}
    for name in ids:
        for mount in defined[name].container_edits.mounts:
            assert mount.options == ("ro", "bind")
            found[mount.container_path] = mount.host_path
    return found


def test_each_request_has_one_file_with_its_devices(tmp_path: Path) -> None:
    core = driver(tmp_path)
    claim = make_claim(
        result("gpu-0", "pair"), result("gpu-1", "pair"), result("gpu-2", "other/small")
    )
    first, second, third = core.prepare(claim)
    assert [len(d.cdi_device_ids) for d in (first, second, third)] == [2, 1, 2]
    directory = "/var/run/kubernetes.io/dra-device-attributes/resourceclaims/claim-uid-1"
    [(path, host)] = mounts(tmp_path, first.cdi_device_ids).items()
    assert path == f"{directory}/pair/gpu.nvidia.com-metadata.json"
    newest, older = stream(Path(host).read_text())
    assert newest.pop("apiVersion") == "metadata.resource.k8s.io/v1beta1"
    assert older.pop("apiVersion") == "metadata.resource.k8s.io/v1alpha1"
    assert newest == older
    assert newest["kind"] == "DeviceMetadata"
    assert newest["metadata"] == {
        "name": "claim-uid-1",
        "namespace": "default",
        "uid": "uid-1",
        "generation": 1,
    }
    [request] = newest["requests"]
    assert (request["name"], [d["name"] for d in request["devices"]]) == (
        "pair",
        ["gpu-0", "gpu-1"],
    )
    [slice_] = core.resource_slices()
    published = {d["name"]: d["attributes"] for d in slice_["spec"]["devices"]}
    for device in request["devices"]:
        assert (device["driver"], device["pool"]) == ("gpu.nvidia.com", "node-a")
        assert device["attributes"] == published[device["name"]]
    [(path, host)] = mounts(tmp_path, third.cdi_device_ids).items()
    assert path == f"{directory}/other/gpu.nvidia.com-metadata.json"
    assert stream(Path(host).read_text())[0]["requests"][0]["name"] == "other/small"


def test_a_claim_of_a_template_is_found_by_the_pods_name_for_it(tmp_path: Path) -> None:
    claim = make_claim(result("gpu-0"))
    claim["metadata"]["annotations"] = {"resource.kubernetes.io/pod-claim-name": "my-gpu"}
    [device] = driver(tmp_path).prepare(claim)
    [(path, host)] = mounts(tmp_path, device.cdi_device_ids).items()
    assert "/resourceclaimtemplates/my-gpu/gpu/" in path
    assert stream(Path(host).read_text())[0]["podClaimName"] == "my-gpu"


def test_the_files_go_with_the_claim_and_come_back_when_lost(tmp_path: Path) -> None:
    core = driver(tmp_path)
    claim = make_claim(result("gpu-0"))
    [device] = core.prepare(claim)
    [host] = mounts(tmp_path, device.cdi_device_ids).values()
    content = Path(host).read_bytes()
    Path(host).unlink()
    assert driver(tmp_path).prepare(claim) == [device]
    assert Path(host).read_bytes() == content
    core.unprepare("uid-1")
    assert not Path(host).exists()


@pytest.mark.parametrize("uid", ["old", "new"])
def test_claims_of_one_name_do_not_share_a_file(tmp_path: Path, uid: str) -> None:
    core = driver(tmp_path)
    for each, gpu in (("old", "gpu-0"), ("new", "gpu-1")):
        claim = make_claim(result(gpu), uid=each)
        claim["metadata"]["name"] = "same"
        core.prepare(claim)
    core.unprepare("old" if uid == "new" else "new")
    [device] = core.list_prepared()[uid]
    [host] = mounts(tmp_path, device.cdi_device_ids).values()
    assert stream(Path(host).read_text())[0]["metadata"]["uid"] == uid
