"""What using the package costs a process: nothing of lark before it is needed."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path


def test_using_the_package_changes_nothing_for_the_process() -> None:
    program = """
import sys
limit = sys.getrecursionlimit()
from reference_allocator.cel import CelDevice, compile_selector
assert "lark" not in sys.modules
assert compile_selector("device.driver == 'd'").matches(CelDevice.from_api("d", {}))
assert "lark" in sys.modules
assert sys.getrecursionlimit() == limit
assert "celpy" not in sys.modules
"""
    root = Path(__file__).parents[4]
    result = subprocess.run(
        [sys.executable, "-c", program],
        cwd=root,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (result.returncode, result.stderr) == (0, "")
