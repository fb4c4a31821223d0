"""The command line of `ci/test`."""

from __future__ import annotations

import argparse
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from ci.testing import drawing, record
from ci.testing.affected import changed, imported_from, touched
from ci.testing.part import ROOT, Part
from ci.testing.parts import parts
from ci.testing.running import Runner
from localkube import LocalCluster, LocalOptions
from localkube.base import ClusterError, ClusterUsageError
from localkube.gocommand import COMPILE
from localkube.layout import STATE_FILE

ABOUT = """\
Runs tests. Without arguments: what `make test` runs. `everything`: the parts of `make everything`
that have not passed on this state of the tree, in any order, so that a run that was ended goes on.
Each part's output is in build/logs; when it last ran is said by --list.
"""


def main(arguments: Sequence[str]) -> int:
    """Run what is asked for; 0: all passed, 1: something failed, 2: it cannot be run."""
    every = parts()
    asked = _arguments(every).parse_args(arguments)
    try:
        if asked.list:
            print(record.table(every, record.read()), end="")
            return 0
        if asked.page:
            record.keep()
            drawing.keep()
            return 0
        if asked.affected is not None:
            return _affected(every, asked.affected)
        with record.alone() as lock, _ended_like_ctrl_c():
            return _run(every, asked.part, lock)
    except (record.RecordError, ValueError, OSError) as error:
        print(f"ci/test: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print(
            "\ninterrupted; the parts that passed are recorded, `everything` continues after them"
        )
        return 130


@contextmanager
def _ended_like_ctrl_c() -> Iterator[None]:
    """SIGTERM ends what runs as Ctrl-C does, so that clusters are removed.

    A shell that starts this in the background has SIGINT ignored, also by what is started here.
    """
    signals = (signal.SIGTERM, signal.SIGINT)
    before = [signal.signal(one, signal.default_int_handler) for one in signals]
    try:
        yield
    finally:
        for one, handler in zip(signals, before, strict=True):
            signal.signal(one, handler)


def _arguments(every: dict[str, Part]) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser("ci/test", description=ABOUT)
    names = (*every, "everything")
    parser.add_argument("part", nargs="*", choices=[*names, []], help=", ".join(names))
    parser.add_argument("--list", action="store_true", help="the parts, and when each last ran")
    parser.add_argument(
        "--page",
        action="store_true",
        help="keep those dates in ci/last-run.json, and write the drawing of docs/architecture.md",
    )
    parser.add_argument(
        "--affected",
        metavar="COMMIT",
        nargs="?",
        const="HEAD",
        help="the parts of `make everything` that the changes since a commit touch (HEAD)",
    )
    return parser


def _affected(every: dict[str, Part], base: str) -> int:
    now, runs = record.state(), record.read()
    for name, why in touched(every, changed(base), imported_from()).items():
        passed = name in runs and runs[name].passed_on(now)
        print(f"{name:10} {'passed' if passed else 'to run'}  {why}")
    return 0


def _run(every: dict[str, Part], asked: Sequence[str], lock: int) -> int:
    chosen = [part for part in every.values() if part.name in asked]
    chosen += [part for part in every.values() if not asked and part.ring == "test"]
    left_out: list[str] = []
    runs = record.read()
    if "everything" in asked:
        now = record.state()
        for part in every.values():
            run = runs.get(part.name)
            if run and run.passed_on(now):
                left_out.append(f"{part.name}: passed already on this state, {run.date}")
            elif part not in chosen:
                chosen.append(part)
    lacking = {part.name: missing for part in chosen if (missing := _missing(part))}
    for name, missing in lacking.items():
        left_out.append(f"{name}: this machine lacks {'; '.join(missing)}")
    print("".join(f"left out  {line}\n" for line in left_out), end="", flush=True)
    if os.environ.get("CI") == "true" and any(not every[name].optional for name in lacking):
        print("with CI=true nothing may be left out")
        return 1
    able = [part for part in chosen if part.name not in lacking]
    took = {name: run.seconds for name, run in runs.items() if run.outcome == "passed"}
    return _run_parts(able, took, left_out, lock)


def _missing(part: Part) -> list[str]:
    if part.missing is None:
        return []
    done = subprocess.run(part.missing, cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode:
        raise ValueError(f"{part.name}: what it needs cannot be said: {done.stderr.strip()[-300:]}")
    return done.stdout.splitlines()


def _run_parts(
    able: Sequence[Part], seconds: Mapping[str, int], left_out: Sequence[str], lock: int
) -> int:
    # The sockets of a node's components lie deep in it, and a socket's path must be short.
    state = tempfile.mkdtemp(prefix="dra-", dir="/tmp")
    runner = Runner(
        {
            "XDG_STATE_HOME": state,
            # Where the machine has no Go of its own, the Makefile has put one there.
            "PATH": f"{os.environ['PATH']}:{ROOT}/.venv/bin",
            "PYTHONPATH": str(ROOT),
            # Thousands of processes begin here: else each compiles the suite again.
            "PYTHONDONTWRITEBYTECODE": "",
            # As the cluster's binaries are built: common packages compile once.
            "CGO_ENABLED": "0",
            "GOFLAGS": " ".join(f"'{flag}'" for flag in COMPILE),
        },
        lock,
    )
    lines: list[str] = []
    failed = unnoted = False
    try:
        for part in able:
            runner.prepare(part)
        for number, part in enumerate(able, start=1):
            where = f"[{number}/{len(able)}] {part.name}"
            print(f"{where}: {part.notices}", flush=True)
            began, before = time.monotonic(), record.state()
            passed = runner.run(part, where, seconds.get(part.name, part.seconds))
            took = time.monotonic() - began
            failed |= not passed
            outcome = "passed" if passed else "failed"
            try:
                record.ended(part.name, outcome, before, took)
            except record.RecordError as error:
                unnoted = True
                print(f"ci/test: {error}", file=sys.stderr)
            lines.append(f"{outcome if passed else 'FAILED'}  {part.name} ({took:.0f} s)")
    finally:
        runner.close()
        _remove_clusters(Path(state))
        _remove_empty(Path(state))
    print("\n".join(["=== summary", *lines, *(f"left out  {line}" for line in left_out)]))
    counts = runner.counts
    print(*(f"FAILED  {name}" for name in counts.names), sep="\n", end="\n" * bool(counts.names))
    print(f"tests: {counts.passed} passed, {counts.failed} failed, {counts.skipped} skipped")
    return 2 if unnoted else int(failed)


def _remove_clusters(folder: Path) -> None:
    """Those that still run: a part that was interrupted leaves what `cluster up` started."""
    for state in sorted(folder.glob(f"dra-conformance/local/*/{STATE_FILE}")):
        path = state.parent
        cluster = LocalCluster(LocalOptions(name=path.name, state_dir=path))
        try:
            if any(one.running for one in cluster.status()):
                print(f"removing the cluster {path.name}, which was left running", flush=True)
                cluster.down()
        except (ClusterError, ClusterUsageError) as error:
            print(f"ci/test: {error}", file=sys.stderr)


def _remove_empty(folder: Path) -> None:
    """What is left there is a cluster that failed: its logs say why."""
    for path in sorted(folder.rglob("*"), reverse=True):
        if path.is_dir() and not path.is_symlink() and not any(path.iterdir()):
            path.rmdir()
        elif path.name.startswith(".") and path.suffix == ".lock" and not path.stat().st_size:
            path.unlink()
    if not any(folder.iterdir()):
        folder.rmdir()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
