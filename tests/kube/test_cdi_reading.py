"""What a container runtime makes of CDI specs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from kube.cdi.edits import UnresolvableError
from kube.cdi.reading import read_devices, resolve


def spec(*names: str, **more: Any) -> dict[str, Any]:
    return {
        "cdiVersion": "0.6.0",
        "kind": "example.com/gpu",
        "devices": [
            {"name": name, "containerEdits": {"env": [f"DEVICE={name}", f"HAS_{i}=yes"]}}
            for i, name in enumerate(names)
        ],
        **more,
    }


def test_common_edits_come_once_and_first_and_later_devices_win(tmp_path: Path) -> None:
    common = {
        "env": ["COMMON=1", "DEVICE=none", "HAS_1=no"],
        "deviceNodes": [{"path": "/dev/ctl", "hostPath": "/x/ctl"}],
        "mounts": [{"hostPath": "/x/lib", "containerPath": "/lib"}],
    }
    (tmp_path / "one.json").write_text(json.dumps(spec("a", "b", containerEdits=common)))
    edits = resolve(tmp_path, ["example.com/gpu=b", "example.com/gpu=a"])
    assert edits.env == {"COMMON": "1", "DEVICE": "a", "HAS_1": "yes", "HAS_0": "yes"}
    [node] = edits.device_nodes
    assert (node.path, node.host_path) == ("/dev/ctl", "/x/ctl")
    assert edits.mounts == {"/lib": "/x/lib"}


def test_yaml_specs_are_read_too(tmp_path: Path) -> None:
    (tmp_path / "one.yaml").write_text(
        "cdiVersion: 0.6.0\nkind: e.com/x\n"
        "devices: [{name: a, containerEdits: {deviceNodes: [{path: /dev/a}]}}]\n"
    )
    [node] = resolve(tmp_path, ["e.com/x=a"]).device_nodes
    assert node.path == "/dev/a"


def test_a_device_that_no_spec_defines_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(UnresolvableError, match=r"CDI device example\.com/gpu=z: 0 specs in"):
        resolve(tmp_path, ["example.com/gpu=z"])
    assert resolve(tmp_path / "absent", []).env == {}


def test_of_two_specs_for_one_device_a_runtime_takes_neither(tmp_path: Path) -> None:
    for name, devices in (("one.json", ("a", "b")), ("two.json", ("a",))):
        (tmp_path / name).write_text(json.dumps(spec(*devices)))
    with pytest.raises(UnresolvableError, match="2 specs in"):
        resolve(tmp_path, ["example.com/gpu=a"])
    assert resolve(tmp_path, ["example.com/gpu=b"]).env["DEVICE"] == "b"
    assert read_devices([tmp_path])[1] == ["two.json: another file defines example.com/gpu=a, too"]


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ("{", "Expecting property name"),
        (json.dumps(spec("a") | {"cdiVersion": "0.3.0", "annotations": {"a": "b"}}), "needs 0.6.0"),
        (json.dumps(spec("a") | {"container_edits": {}}), "Extra inputs"),
    ],
)
def test_a_file_that_is_no_spec_is_left_out_and_named(
    tmp_path: Path, content: str, says: str
) -> None:
    (tmp_path / "good.json").write_text(json.dumps(spec("b")))
    (tmp_path / "bad.json").write_text(content)
    (tmp_path / "ignored.txt").write_text("{")
    assert resolve(tmp_path, ["example.com/gpu=b"]).env["DEVICE"] == "b"
    with pytest.raises(UnresolvableError, match=rf"bad\.json: .*{says}"):
        resolve(tmp_path, ["example.com/gpu=a"])
