"""CDI specs: what is refused, and what a container runtime makes of them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from nvml_driver.cdi import specs as cdi
from nvml_driver.errors import CdiError


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


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        ([], "is an object"),
        (spec("a") | {"cdiVersion": "9.9.9"}, "cdiVersion '9.9.9'"),
        (spec("a") | {"kind": "gpu"}, "not vendor/class"),
        (spec("a") | {"kind": "a/b/c"}, "not vendor/class"),
        (spec(), "at least one device"),
        (spec("a", "a"), r"devices\[1\]: device name 'a' is there twice"),
        (spec("a b"), "not a device name"),
        (spec("a/b"), "not a device name"),
        (spec("a-"), "not a device name"),
        (spec("a") | {"devices": [{"name": "a"}]}, "containerEdits must not be empty"),
        (spec("a", containerEdits={"env": ["X"]}), "'X' is not NAME=value"),
        (spec("a", containerEdits={"deviceNodes": [{"path": "x"}]}), "no absolute path"),
    ],
)
def test_a_spec_that_breaks_a_rule_is_refused(bad: Any, message: str) -> None:
    with pytest.raises(CdiError, match=message):
        cdi.encode(bad)


def test_common_edits_come_once_and_first_and_later_devices_win(tmp_path: Path) -> None:
    common = {
        "env": ["COMMON=1", "DEVICE=none", "HAS_1=no"],
        "deviceNodes": [{"path": "/dev/ctl", "hostPath": "/x/ctl"}],
    }
    (tmp_path / "one.json").write_text(json.dumps(spec("a", "b", containerEdits=common)))
    edits = cdi.resolve(tmp_path, ["example.com/gpu=b", "example.com/gpu=a"])
    assert edits.env == {"COMMON": "1", "DEVICE": "a", "HAS_1": "yes", "HAS_0": "yes"}
    assert edits.device_nodes == (cdi.DeviceNode("/dev/ctl", "/x/ctl"),)


def test_yaml_specs_are_read_too(tmp_path: Path) -> None:
    (tmp_path / "one.yaml").write_text(
        "cdiVersion: 0.6.0\nkind: e.com/x\n"
        "devices: [{name: a, containerEdits: {deviceNodes: [{path: /dev/a}]}}]\n"
    )
    assert cdi.resolve(tmp_path, ["e.com/x=a"]).device_nodes == (cdi.DeviceNode("/dev/a"),)


def test_a_device_that_no_spec_defines_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(CdiError, match=r"unresolvable CDI device example\.com/gpu=z"):
        cdi.resolve(tmp_path, ["example.com/gpu=z"])
    assert cdi.resolve(tmp_path / "absent", []).env == {}


def test_two_specs_for_one_device_are_a_conflict(tmp_path: Path) -> None:
    for name in ("one.json", "two.json"):
        (tmp_path / name).write_text(json.dumps(spec("a")))
    with pytest.raises(CdiError, match=r"two\.json: .* another file"):
        cdi.read_specs(tmp_path)


def test_a_file_that_is_no_spec_is_named(tmp_path: Path) -> None:
    (tmp_path / "one.json").write_text("{")
    (tmp_path / "ignored.txt").write_text("{")
    with pytest.raises(CdiError, match=r"one\.json: cannot be read"):
        cdi.read_specs(tmp_path)


@pytest.mark.parametrize("uid", ["", ".", "..", "a/b", "../a", "a\n", "-a", "x" * 200])
def test_a_uid_that_is_no_file_name_is_refused(tmp_path: Path, uid: str) -> None:
    with pytest.raises(CdiError, match="file name"):
        cdi.spec_path(tmp_path, "d.io", uid)
