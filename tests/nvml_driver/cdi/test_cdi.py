"""CDI specs of the driver: what is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from nvml_driver.cdi import specs as cdi
from nvml_driver.errors import CdiError
from tests.kube.cdi.test_reading import spec


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
        cdi.encode_spec(bad)


def test_a_file_that_is_no_spec_is_named(tmp_path: Path) -> None:
    (tmp_path / "one.json").write_text("{")
    with pytest.raises(CdiError, match=r"one\.json: cannot be read"):
        cdi.read_spec(tmp_path / "one.json")


@pytest.mark.parametrize("uid", ["", ".", "..", "a/b", "../a", "a\n", "-a", "x" * 200])
def test_a_uid_that_is_no_file_name_is_refused(tmp_path: Path, uid: str) -> None:
    with pytest.raises(CdiError, match="file name"):
        cdi.spec_path(tmp_path, "d.io", uid)
