"""Claims that share a GPU of our driver, on a real node."""

from __future__ import annotations

import os
import shlex
import sys
from pathlib import Path

import pytest

from tests.cli.simulated_nodes import FULL, run_compared, running_cluster

pytestmark = [pytest.mark.needs_root, pytest.mark.slow, pytest.mark.everything]

SCENARIO = "extended/consumable-capacity/shares-reach-containers"


def test_shares_reach_containers(tmp_path: Path) -> None:
    own = ("-m", "nvml_driver", "run", "--simulate", "t4x4", "--consumable-shares", "3")
    folders = ("--device-root", str(tmp_path / "dev"), "--state-dir", str(tmp_path / "state"))
    driver = ("--driver-command", shlex.join((sys.executable, *own, *folders)))
    name = f"shares{os.getpid()}"
    with running_cluster(name, tmp_path, "--driver", FULL, *driver):
        run_compared(name, {SCENARIO}, tmp_path / "out", "--driver", FULL, "-k", SCENARIO)
