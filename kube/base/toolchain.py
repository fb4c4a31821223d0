"""The C compiler of this machine, or of PyPI."""

from __future__ import annotations

import importlib.util
import shutil
import sys


def find_c_compiler() -> tuple[str, ...]:
    """Return the command line of a C compiler: ``cc``, else ziglang's; () where neither is."""
    path = shutil.which("cc")
    if path:
        return (path,)
    if importlib.util.find_spec("ziglang") is not None:
        return (sys.executable, "-m", "ziglang", "cc")
    return ()
