"""``python -m tests.mutants.real_driver.following FILE``: a driver whose defect can be changed.

A cluster takes longer to start than a driver. The file has the name of a defect and a number; when
it is written anew, the driver is ended, what it left is removed, and one with the new defect
begins. A restart of this process is one of the driver, which goes on with what it had.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from types import FrameType

_LOOK_SECONDS = 0.1


def main(file: Path) -> None:
    """Run until SIGTERM."""
    signal.signal(signal.SIGTERM, _stop)
    wanted = ""
    driver: subprocess.Popen[bytes] | None = None
    try:
        while True:
            found = file.read_text(encoding="utf-8").strip()
            if found != wanted:
                if driver is not None:
                    _end(driver)
                    _forget()
                wanted, driver = found, _start(found, file)
            elif driver is not None and driver.poll() is not None:
                raise SystemExit(f"the driver with {wanted} has ended: {driver.returncode}")
            time.sleep(_LOOK_SECONDS)
    finally:
        if driver is not None:
            _end(driver)


def _start(wanted: str, file: Path) -> subprocess.Popen[bytes]:
    fault, _, number = wanted.partition(" ")
    print(f"now with {wanted}", flush=True)
    return subprocess.Popen(
        [
            *(sys.executable, "-m", "tests.mutants.real_driver", fault, "run"),
            *("--simulate", "t4x4", "--state-dir", str(file.with_name(f"state-{number}"))),
        ]
    )


def _end(driver: subprocess.Popen[bytes]) -> None:
    driver.terminate()
    driver.wait(30)


def _forget() -> None:
    """Remove the CDI specs that the driver left: they are its own, and nothing runs any more."""
    for path in Path(os.environ["CDI_ROOT"]).glob("*.json"):
        path.unlink()


def _stop(_number: int, _frame: FrameType | None) -> None:
    raise SystemExit(0)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
