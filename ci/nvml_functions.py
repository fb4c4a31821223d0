"""The table of NVML's functions that the simulated library has, from the header that go-nvml ships.

    python -m ci.nvml_functions

writes `nvml_driver/simulated/library/functions.h` again; needs the go command. Facts only are taken
from the header: a function's name and what its parameters are.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Final

from ci.testing.part import ROOT
from localkube.gocommand import find_go

HEADER: Final = ("github.com/NVIDIA/go-nvml@v0.13.0-1", "gen/nvml/nvml.h")
"""The header of NVML 580."""
TABLE: Final = ROOT / "nvml_driver/simulated/library/functions.h"
_LIBRARY: Final = TABLE.parent
_DECLARED: Final = re.compile(r"\bDECLDIR\s+(?:char\s*\*\s*)?(nvml\w+)\s*\(([^;]*?)\)\s*;")
_WRITTEN: Final = re.compile(r"^API [\w ]+?\*?(nvml\w+)\(", re.MULTILINE)
_HANDLES: Final = {
    "nvmlDevice_t": "DEVICE",
    "nvmlGpuInstance_t": "INSTANCE",
    "nvmlComputeInstance_t": "INSTANCE",
}
_NONE: Final = ("nvmlUnitGetCount", "nvmlGetExcludedDeviceCount")
"""They say that there are none."""
_HEAD: Final = """\
/*
 * All functions of NVML {version}: what each does here, its name, the handle that it begins with,
 * and its parameters. Written by `python -m ci.nvml_functions`.
 */
"""


def read_functions(header: str) -> dict[str, str]:
    """Return name -> parameters, with one space between words, of all functions of a header."""
    code = re.sub(r"/\*.*?\*/|//[^\n]*", " ", header, flags=re.DOTALL)
    return {
        name: re.sub(r"\s*\*\s*", " *", " ".join(parameters.split())).replace("* *", "**")
        for name, parameters in _DECLARED.findall(code)
    }


def make_table(functions: dict[str, str], written: set[str], version: str) -> str:
    """Return the table as C."""
    rows = [
        f"FUNCTION({_behaviour(name, written)}, {name}, {_handle(parameters)}, ({parameters}))\n"
        for name, parameters in sorted(functions.items())
    ]
    return _HEAD.format(version=version) + "".join(rows)


def read_written() -> set[str]:
    """Return the names of functions that the library's own files have."""
    return {
        name
        for file in _LIBRARY.glob("*.c")
        for name in _WRITTEN.findall(file.read_text(encoding="utf-8"))
    }


def _behaviour(name: str, written: set[str]) -> str:
    if name in written:
        return "WRITTEN"
    if name in _NONE:
        return "COUNT_NONE"
    return "NO_PROCESSES" if "RunningProcesses" in name else "UNSUPPORTED"


def _handle(parameters: str) -> str:
    return _HANDLES.get(parameters.partition(" ")[0], "SYSTEM")


def read_header() -> str:
    """Return the header's text, from Go's module cache or the module proxy."""
    module, path = HEADER
    command = [str(find_go()), "mod", "download", "-json", module]
    done = subprocess.run(command, capture_output=True, check=True, cwd=ROOT / "ci/upstream")
    return Path(json.loads(done.stdout)["Dir"], path).read_text(encoding="utf-8")


def main() -> int:
    functions = read_functions(read_header())
    TABLE.write_text(make_table(functions, read_written(), "580"), encoding="utf-8")
    sys.stdout.write(f"{len(functions)} functions in {TABLE.relative_to(ROOT)}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
