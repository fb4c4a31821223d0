"""A part of `make test` or of `make everything`, and the commands that parts are made of."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

ROOT: Final = Path(__file__).resolve().parents[2]
BIN: Final = ROOT / ".venv/bin"
OUT: Final = ROOT / "build"

Command = tuple[str, ...]


@dataclass(frozen=True)
class Part:
    """One thing that can be run, and asked for by its name.

    Attributes:
        notices: what no other part notices.
        commands: in this order, until one fails.
        seconds: about how long it takes on two idle cores, until it has run here.
        paths: patterns of what it is about; a change there, or in what that imports, affects it.
        prepare: run in the background before the part's turn comes.
        missing: prints a line for each thing that this machine lacks for it.
        optional: may be left out with CI=true, too, where this machine lacks something.
    """

    name: str
    ring: Literal["test", "everything"]
    notices: str
    commands: tuple[Command, ...]
    seconds: int
    paths: tuple[str, ...] = ("*",)
    prepare: Command | None = None
    missing: Command | None = None
    optional: bool = False


def python(*arguments: str) -> Command:
    """A program of this repository."""
    return (str(BIN / "python"), *arguments)


def suite(*arguments: str) -> Command:
    """A command of the suite."""
    return (str(BIN / "dra-conformance"), *arguments)


def pytest(name: str, *arguments: str) -> Command:
    """Tests, counted in the part's file."""
    # The older family says the file of a test, by which it can be run again.
    counted = (f"--junitxml={OUT}/logs/{name}.xml", "-o", "junit_family=xunit1")
    return (str(BIN / "pytest"), *arguments, *counted, "--durations=50", "-q")


_REAL_WORKERS: Final = 3
"""As many real clusters at once, of which each waits most of the time."""

_BEGIN: Final = (
    *("test_real_nodes.py", "test_real_profiles.py", "test_real_cluster.py"),
    *("test_real_driver.py", "test_reported_failures.py"),
)
"""The longest files begin first, one on each worker. A worker whose file has one or two tests is
given a second file at once (``_reschedule`` in xdist's loadscope.py), which waits for the first
one to end: the corpus, one test of many minutes, is given a file of seconds."""


def real(name: str, which: str) -> Command:
    """Tests on real clusters, of which each worker has its own."""
    by_file = ("-n", str(_REAL_WORKERS), "--dist", "loadfile", "--no-loadscope-reorder")
    return pytest(name, *_real_files(), *by_file, "-m", which)


def _real_files() -> list[str]:
    """Test files that need a real machine: each worker would collect the others in vain."""
    marks = [f"mark.{name}" for name in ("needs_root", "needs_go", "needs_kind")]
    files = sorted((ROOT / "tests").rglob("test_*.py"))
    found = [file for file in files if any(mark in file.read_text() for mark in marks)]
    found.sort(key=lambda file: _BEGIN.index(file.name) if file.name in _BEGIN else len(_BEGIN))
    return [str(file.relative_to(ROOT)) for file in found]
