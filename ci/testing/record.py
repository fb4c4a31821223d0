"""What was run when: noted below build/, and by `ci/test --page` in the repository for others."""

from __future__ import annotations

import datetime as dt
import fcntl
import hashlib
import json
import os
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

from ci.testing.part import OUT, ROOT, Part

RECORD: Final = OUT / "last-run.json"
OWN: Final = "ci/last-run.json"
"""What `--page` writes; it is no change of what was tested."""
KEPT: Final = ROOT / OWN


class RecordError(Exception):
    """The record could not be read or kept; the message says what to do."""


@dataclass(frozen=True)
class Run:
    """How a part last ended.

    Attributes:
        commit: short hash of what was checked out.
        state: digest over all that git does not ignore, so that a change asks for another run.
        seconds: how long it took.
    """

    outcome: str
    commit: str
    state: str
    date: str
    seconds: int

    def passed_on(self, state: str) -> bool:
        """Whether it passed, on this state of the tree."""
        return (self.outcome, self.state) == ("passed", state)


def _git(*arguments: str) -> str:
    done = subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, check=True)
    return done.stdout.decode(errors="replace")


def state() -> str:
    """A digest of the tree as it is, with what is not committed."""
    names = _git("ls-files", "-z", "--cached", "--others", "--exclude-standard").split("\0")
    digest = hashlib.sha256()
    for name in sorted({*names} - {OWN, ""}):
        file = ROOT / name
        if file.is_file():
            digest.update(f"{name}\0{file.stat().st_mode & 0o111}\0".encode())
            digest.update(hashlib.sha256(file.read_bytes()).digest())
    return digest.hexdigest()[:16]


def read() -> dict[str, Run]:
    """Part -> how it last ended, here or where the repository's record was written.

    Raises:
        RecordError: a file is not what this writes.
    """
    kept, here = _read(KEPT), _read(RECORD)
    return here | {
        name: run for name, run in kept.items() if name not in here or here[name].date < run.date
    }


def _read(path: Path) -> dict[str, Run]:
    if not path.exists():
        return {}
    try:
        return {name: Run(**one) for name, one in json.loads(path.read_text()).items()}
    except (ValueError, TypeError, AttributeError) as error:
        raise RecordError(f"{path}: {error}; remove it: nothing is lost but dates") from None


def ended(name: str, outcome: str, before: str, seconds: float) -> None:
    """Note how a part ended; nothing that was noted before is lost.

    Args:
        before: the state when it began. A tree that was changed meanwhile was not tested.

    Raises:
        RecordError: the file system does not take it.
    """
    commit = _git("rev-parse", "--short", "HEAD").strip()
    today = dt.datetime.now(dt.UTC).date().isoformat()
    tested = before if before == state() else ""
    runs = {**_read(RECORD), name: Run(outcome, commit, tested, today, round(seconds))}
    try:
        write(RECORD, _text(runs))
    except OSError as error:
        raise RecordError(
            f"{RECORD}: {error.strerror}; {name} {outcome}, which is not noted, and what was noted "
            "before is kept: make room and run the same command again"
        ) from None


def _text(runs: Mapping[str, Run]) -> str:
    return json.dumps({name: asdict(runs[name]) for name in sorted(runs)}, indent=1) + "\n"


def read_kept() -> dict[str, Run]:
    """Part -> how it last ended, by what the repository says.

    Raises:
        RecordError: the file is not what this writes.
    """
    return _read(KEPT)


def keep() -> None:
    """Put what was noted here into the repository's record."""
    write(KEPT, _text(read()))


def write(path: Path, text: str) -> None:
    """Replace a file, or leave it as it was."""
    new = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        new.write_text(text, encoding="utf-8")
        new.replace(path)
    finally:
        new.unlink(missing_ok=True)


@contextmanager
def alone() -> Iterator[int]:
    """One run at a time in a checkout: both would use the same clusters and logs.

    Yields the lock's descriptor.

    Raises:
        RecordError: another one is running.
    """
    OUT.mkdir(exist_ok=True)
    with (OUT / "test.lock").open("a+") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            lock.seek(0)
            raise RecordError(
                f"tests run in this checkout, begun by process {lock.read().strip() or '?'}; wait "
                "until it and what it started have ended"
            ) from None
        lock.truncate(0)
        lock.write(str(os.getpid()))
        lock.flush()
        yield lock.fileno()


def table(every: Mapping[str, Part], runs: Mapping[str, Run]) -> str:
    """The table of parts for the page."""
    lines = [
        "| part | of `make` | notices, and no other part does | last run | took |",
        "|---|---|---|---|---|",
    ]
    for part in every.values():
        run = runs.get(part.name)
        last = f"{run.outcome} {run.date}, {run.commit}" if run else "not since this is noted"
        took = f"{run.seconds} s" if run else ""
        lines.append(f"| `{part.name}` | {part.ring} | {part.notices} | {last} | {took} |")
    return "".join(f"{line}\n" for line in lines)
