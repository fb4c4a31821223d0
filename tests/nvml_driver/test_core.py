"""Prepare and unprepare, and what is left on disk whatever happens."""

from __future__ import annotations

import json
import os
import stat
from pathlib import Path
from typing import Any

import pytest

from kube.cdi.edits import UnresolvableError
from kube.cdi.reading import resolve
from kube.cdi.spec import DeviceNode
from nvml_driver.cdi import specs as cdi
from nvml_driver.errors import CheckpointError, PrepareError
from nvml_driver.simulated.node import MAJOR
from tests.nvml_driver.helpers import (
    gpu_config,
    make_claim,
    make_core,
    makes_device_files,
    opaque,
    result,
    with_gpu,
)


def specs(root: Path) -> list[str]:
    return sorted(path.name for path in (root / "cdi").iterdir())


def spec_name(uid: str) -> str:
    return f"k8s.gpu.nvidia.com-claim_{uid}.json"


def test_a_prepared_device_reaches_the_container(tmp_path: Path) -> None:
    driver = make_core(tmp_path)
    [device] = driver.prepare(make_claim(result("gpu-2")))
    assert device.request_names == ("gpu",)
    assert (device.pool_name, device.device_name) == ("node-a", "gpu-2")
    assert device.cdi_device_ids == ("k8s.gpu.nvidia.com/claim=uid-1-gpu-2",)
    edits = resolve([tmp_path / "cdi"], device.cdi_device_ids)
    gpu = driver.inventory.get("gpu-2")
    assert gpu is not None
    assert edits.env == {
        "DRA_RESOURCE_DRIVER_NAME": "gpu.nvidia.com",
        "KUBERNETES_NODE_NAME": "node-a",
        "NVIDIA_VISIBLE_DEVICES": "void",
        "GPU_DEVICE_2": "gpu-2",
        "GPU_DEVICE_2_RESOURCE_CLAIM": "uid-1",
        "GPU_DEVICE_2_UUID": gpu.uuid,
    }
    assert [node.path for node in edits.device_nodes] == ["/dev/nvidiactl", "/dev/nvidia2"]


def test_several_nodes_live_in_one_process(tmp_path: Path) -> None:
    nodes = {
        name: make_core(tmp_path / name, node=name, shown=shown)
        for name, shown in (("node-a", "t4x4"), ("node-b", "t4x4"), ("node-c", "a100-40x8"))
    }
    for name, driver in nodes.items():
        driver.prepare(make_claim({**result("gpu-0"), "pool": name}, uid=f"of-{name}"))
    assert [list(driver.list_prepared()) for driver in nodes.values()] == [
        ["of-node-a"],
        ["of-node-b"],
        ["of-node-c"],
    ]
    assert [len(driver.inventory) for driver in nodes.values()] == [4, 4, 8]
    uuids = [gpu.uuid for driver in nodes.values() for gpu in driver.inventory]
    assert len(set(uuids)) == 16
    [slice_] = nodes["node-b"].resource_slices(generation=3)
    assert slice_["metadata"]["name"] == "00000-gpu.nvidia.com-node-b"
    assert slice_["spec"]["pool"] == {"name": "node-b", "generation": 3, "resourceSliceCount": 1}


def test_declared_device_nodes_say_that_they_are(tmp_path: Path) -> None:
    driver = make_core(tmp_path, device_nodes="declare")
    [device] = driver.prepare(make_claim(result("gpu-0")))
    spec = cdi.read_spec(tmp_path / "cdi" / spec_name("uid-1"))
    assert spec["annotations"]["dra-conformance.dev/device-nodes"] == "declared"
    node = resolve([tmp_path / "cdi"], device.cdi_device_ids).device_nodes[1]
    assert node == DeviceNode(path="/dev/nvidia0", type="c", major=MAJOR, minor=0, permissions="rw")
    assert not list((tmp_path / "state" / "dev").iterdir())


@pytest.mark.needs_root
@makes_device_files
def test_created_device_nodes_are_character_devices(tmp_path: Path) -> None:
    driver = make_core(tmp_path, device_nodes="create")
    [device] = driver.prepare(make_claim(result("gpu-3")))
    nodes = resolve([tmp_path / "cdi"], device.cdi_device_ids).device_nodes
    for node, minor in zip(nodes, (0xFF, 3), strict=True):
        assert node.host_path == f"{tmp_path}/state{node.path}"
        found = Path(node.host_path).stat()
        assert stat.S_ISCHR(found.st_mode)
        assert (os.major(found.st_rdev), os.minor(found.st_rdev)) == (MAJOR, minor)
        assert stat.S_IMODE(found.st_mode) == 0o666


@pytest.mark.needs_root
@makes_device_files
def test_a_lost_device_file_is_made_again_at_prepare(tmp_path: Path) -> None:
    driver = make_core(tmp_path, device_nodes="create")
    (tmp_path / "state" / "dev" / "nvidia1").unlink()
    driver.prepare(make_claim(result("gpu-1")))
    assert (tmp_path / "state" / "dev" / "nvidia1").is_char_device()


def test_preparing_again_gives_the_same_and_changes_nothing(tmp_path: Path) -> None:
    driver = make_core(tmp_path)
    claim = make_claim(result("gpu-0"), result("gpu-1", "other"))
    first = driver.prepare(claim)
    before = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*.json")}
    assert driver.prepare(claim) == first
    assert {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*.json")} == before
    assert make_core(tmp_path).prepare(claim) == first


@pytest.mark.parametrize("admin_first", [True, False])
def test_admin_access_shares_a_device_with_its_user(tmp_path: Path, admin_first: bool) -> None:
    driver = make_core(tmp_path)
    admin = make_claim(result("gpu-0", adminAccess=True), uid="admin")
    user = make_claim(result("gpu-0"), uid="user")
    for claim in (admin, user) if admin_first else (user, admin):
        driver.prepare(claim)
    assert set(driver.list_prepared()) == {"admin", "user"}
    ids = driver.list_prepared()["admin"][0].cdi_device_ids
    assert resolve([tmp_path / "cdi"], ids).env["DRA_ADMIN_ACCESS"] == "true"


def test_one_device_twice_in_an_admin_claim_gives_two_cdi_names(tmp_path: Path) -> None:
    driver = make_core(tmp_path)
    claim = make_claim(result("gpu-0", "use"), result("gpu-0", "watch", adminAccess=True))
    ids = [device.cdi_device_ids[0] for device in driver.prepare(claim)]
    assert len(set(ids)) == 2
    resolve([tmp_path / "cdi"], ids)


def test_shares_of_one_device_have_names_of_their_own(tmp_path: Path) -> None:
    driver = make_core(tmp_path)
    [one] = driver.prepare(make_claim(result("gpu-0", shareID="s1"), uid="u1"))
    [two] = driver.prepare(make_claim(result("gpu-0", shareID="s2"), uid="u2"))
    assert (one.share_id, two.share_id) == ("s1", "s2")
    assert one.cdi_device_ids == ("k8s.gpu.nvidia.com/claim=u1-gpu-0-s1",)
    with pytest.raises(PrepareError, match="still prepared"):
        driver.prepare(make_claim(result("gpu-0", shareID="s1"), uid="u3"))
    with pytest.raises(PrepareError, match="still prepared"):
        driver.prepare(make_claim(result("gpu-0"), uid="u4"))


def test_a_subrequest_is_known_to_the_kubelet_by_its_base_name(tmp_path: Path) -> None:
    [device] = make_core(tmp_path).prepare(make_claim(result("gpu-1", "gpu/large")))
    assert device.request_names == ("gpu",)


@pytest.mark.parametrize(
    ("claim", "message"),
    [
        ({"metadata": {"name": "c", "namespace": "n", "uid": "u"}}, "n/c .* is not allocated"),
        ({"metadata": {"name": "c", "namespace": "n"}}, "no metadata.uid"),
        (make_claim(result("gpu-9")), "no device gpu-9"),
        (make_claim({**result("gpu-0"), "pool": "node-b"}), "is of pool node-b"),
        (make_claim(result("gpu-0"), uid="../../etc/x"), "cannot be used in a file name"),
    ],
    ids=["unallocated", "no uid", "no such device", "other pool", "uid is a path"],
)
def test_a_claim_that_cannot_be_prepared_leaves_nothing(
    tmp_path: Path, claim: dict[str, Any], message: str
) -> None:
    driver = make_core(tmp_path)
    with pytest.raises(PrepareError, match=message):
        driver.prepare(claim)
    assert specs(tmp_path) == []
    assert driver.list_prepared() == {}
    assert list(make_core(tmp_path).list_prepared()) == []


def test_a_claim_allocated_anew_gives_its_old_device_up(tmp_path: Path) -> None:
    driver = make_core(tmp_path)
    driver.prepare(make_claim(result("gpu-0")))
    [device] = driver.prepare(make_claim(result("gpu-1")))
    assert device.device_name == "gpu-1"
    driver.prepare(make_claim(result("gpu-0"), uid="uid-2"))
    with pytest.raises(UnresolvableError, match="unresolvable"):
        resolve([tmp_path / "cdi"], ["k8s.gpu.nvidia.com/claim=uid-1-gpu-0"])


def test_a_failed_write_of_the_spec_is_rolled_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    driver = make_core(tmp_path)

    def full(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr("nvml_driver.prepare.claim_files.write_atomic", full)
        with pytest.raises(PrepareError, match="No space left on device"):
            driver.prepare(make_claim(result("gpu-0")))
    assert driver.list_prepared() == {}
    driver.prepare(make_claim(result("gpu-0"), uid="uid-2"))
    assert list(make_core(tmp_path).list_prepared()) == ["uid-2"]


@pytest.mark.parametrize("restart", [True, False])
def test_a_lost_spec_is_written_again(tmp_path: Path, restart: bool) -> None:
    driver = make_core(tmp_path)
    claim = make_claim(result("gpu-0"), config=[opaque(gpu_config("Long"))])
    driver.prepare(claim)
    path = tmp_path / "cdi" / spec_name("uid-1")
    content = path.read_bytes()
    path.unlink()
    path.parent.rmdir()
    if restart:
        make_core(tmp_path)
    else:
        driver.prepare(claim)
    assert path.read_bytes() == content


def test_a_spec_without_a_claim_is_removed_at_start(tmp_path: Path) -> None:
    make_core(tmp_path).prepare(make_claim(result("gpu-0")))
    orphan = tmp_path / "cdi" / spec_name("gone")
    orphan.write_bytes((tmp_path / "cdi" / spec_name("uid-1")).read_bytes())
    foreign = tmp_path / "cdi" / "k8s.gpu.nvidia.com-other_gone.json"
    foreign.write_text("{}")
    other_node = tmp_path / "cdi" / spec_name("elsewhere")
    other_node.write_text(orphan.read_text().replace("node-a", "node-b"))
    make_core(tmp_path)
    assert specs(tmp_path) == sorted([spec_name("uid-1"), foreign.name, other_node.name])


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda text: text[:-20], "is corrupt"),
        (lambda text: text.replace("gpu-0", "gpu-1"), "checksum does not match"),
        (lambda text: text.replace('"version":2', '"version":9'), "is of version 9"),
        (lambda _: "[]", "is corrupt"),
        (lambda _: "", "is corrupt"),
        (lambda _: "[" * 200_000, "is corrupt"),
    ],
    ids=["truncated", "altered", "newer", "not an object", "empty", "nested"],
)
def test_a_checkpoint_that_cannot_be_trusted_is_refused_and_kept(
    tmp_path: Path, damage: Any, message: str
) -> None:
    make_core(tmp_path).prepare(make_claim(result("gpu-0")))
    path = tmp_path / "state" / "checkpoint.json"
    path.write_text(damage(path.read_text()))
    kept = path.read_bytes()
    with pytest.raises(CheckpointError, match=message) as caught:
        make_core(tmp_path)
    assert str(path) in str(caught.value)
    assert "drain the node" in str(caught.value)
    assert path.read_bytes() == kept
    assert specs(tmp_path) == [spec_name("uid-1")]


def test_a_checkpoint_of_another_node_is_refused(tmp_path: Path) -> None:
    make_core(tmp_path).prepare(make_claim(result("gpu-0")))
    with pytest.raises(CheckpointError, match=r"belongs to driver gpu\.nvidia\.com on node node-a"):
        make_core(tmp_path, node="node-b")


def test_a_device_that_vanished_keeps_its_claim_until_it_is_unprepared(tmp_path: Path) -> None:
    claim = make_claim(result("gpu-0"))
    make_core(tmp_path).prepare(claim)
    (tmp_path / "cdi" / spec_name("uid-1")).unlink()
    driver = make_core(tmp_path, shown=with_gpu(faults={"*": 15}))
    with pytest.raises(PrepareError, match="gpu-0 is gone"):
        driver.prepare(claim)
    driver.unprepare("uid-1")
    assert driver.list_prepared() == {}


def test_the_checkpoint_is_readable_by_its_owner_only_and_names_claims(tmp_path: Path) -> None:
    make_core(tmp_path).prepare(make_claim(result("gpu-0")))
    path = tmp_path / "state" / "checkpoint.json"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    [(uid, claim)] = json.loads(path.read_text())["data"]["claims"].items()
    assert (uid, claim["namespace"], claim["name"]) == ("uid-1", "default", "claim-uid-1")
    assert claim["state"] == "PrepareCompleted"
