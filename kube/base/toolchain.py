"""The C compiler of this machine, or of PyPI."""

from __future__ import annotations

import importlib.util
import shutil
import sys


def find_c_compiler() -> tuple[str, ...]:
    """The command line of a C compiler: ``cc``, else ziglang's; () where there is neither."""
    found = shutil.which("cc")
    if found:
        return (found,)
    if importlib.util.find_spec("ziglang") is not None:
        return (sys.executable, "-m", "ziglang", "cc")
    return ()
