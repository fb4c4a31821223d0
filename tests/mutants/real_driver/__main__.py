"""``python -m tests.mutants.real_driver FAULT ARGUMENT...``: the driver's command with a defect."""

from __future__ import annotations

import ctypes
import signal
import sys

from nvml_driver.cli import main
from tests.mutants.real_driver.faults import FAULTS

if len(sys.argv) < 2 or sys.argv[1] not in FAULTS:
    raise SystemExit(f"the first argument is one of: {', '.join(FAULTS)}")
_PR_SET_PDEATHSIG = 1  # linux/prctl.h: the driver ends with the process that gave it the defect
ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
fault = FAULTS[sys.argv.pop(1)]
fault.put_in()
main()
