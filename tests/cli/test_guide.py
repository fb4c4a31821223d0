"""docs/vendor-guide.md as far as no cluster is needed; the rest: test_real_guide.py."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.guide import follow, make_the_change


@pytest.mark.everything
def test_what_needs_no_cluster_goes_as_the_guide_says(tmp_path: Path) -> None:
    follow(2, tmp_path)
    follow(3, tmp_path)
    make_the_change(tmp_path / "gpu.acme.example.com.yaml")
    follow(4, tmp_path)
    assert json.loads((tmp_path / "driver-check.json").read_text())["driver"] == (
        "gpu.acme.example.com"
    )
