"""docs/vendor-guide.md to its end: on a real cluster, to a report that is verified."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest

from tests.cli.guide import follow, make_the_change

pytestmark = [
    pytest.mark.needs_root,
    pytest.mark.needs_go,
    pytest.mark.slow,
    pytest.mark.everything,
]


def test_the_guide_ends_with_a_report_that_is_verified(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The sockets of a node's components lie deep in it, and a socket's path must be short.
    with tempfile.TemporaryDirectory(prefix="dra-", dir="/tmp") as state:
        monkeypatch.setenv("XDG_STATE_HOME", state)
        follow(3, tmp_path)
        make_the_change(tmp_path / "gpu.acme.example.com.yaml")
        follow(5, tmp_path)
        follow(6, tmp_path)
    [report] = (tmp_path / "reports").glob("*/acme-acme-gpu-driver/report.yaml")
    assert "organization: Acme" in report.read_text()
