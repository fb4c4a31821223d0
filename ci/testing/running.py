"""Runs a part: its output goes to a log, and one line says how far it is."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final
from xml.etree import ElementTree as ET

from ci.testing.part import OUT, ROOT, Command, Part

LOGS: Final = OUT / "logs"
_LOOK_SECONDS: Final = 0.5
_SAY_SECONDS: Final = 60.0
"""Where nobody looks at a terminal, a line for each minute."""

_PERCENT: Final = re.compile(rb"\[ *(\d+)%\]|\[ *(\d+)/(\d+)\]")
_SHOWN_LINES: Final = 60
_END_SECONDS: Final = 90.0
"""What a part may take to clean up when it is interrupted: it may have a cluster to remove."""


@dataclass
class Counts:
    """Tests of all parts that pytest ran."""

    passed: int = 0
    failed: int = 0
    skipped: int = 0
    names: list[str] = field(default_factory=list)
    """Of those that failed."""

    def add(self, junit: Path) -> None:
        """Count what a part's pytest wrote, if it did."""
        if not junit.exists():
            return
        for case in ET.parse(junit).getroot().iter("testcase"):
            tags = {child.tag for child in case}
            if tags & {"failure", "error"}:
                self.failed += 1
                self.names.append(f"{case.get('file')}::{case.get('name')}")
            elif "skipped" in tags:
                self.skipped += 1
            else:
                self.passed += 1


class Runner:
    """Runs parts one after the other, and what they need in the background."""

    def __init__(self, environment: Mapping[str, str], lock: int) -> None:
        """Start nothing yet.

        Args:
            environment: variables of everything that is started, beside our own.
            lock: descriptor of the checkout's lock; what is started holds it, too, so that after a
                SIGKILL of this process nobody else begins before its children have ended.
        """
        LOGS.mkdir(parents=True, exist_ok=True)
        self._lock = lock
        self.environment = {**os.environ, **environment}
        self.counts = Counts()
        self._beside: dict[str, subprocess.Popen[bytes]] = {}
        self._terminal = sys.stdout.isatty()

    def prepare(self, part: Part) -> None:
        """Begin in the background what the part needs."""
        if part.prepare:
            self._beside[part.name] = self._start(part.prepare, f"{part.name}-prepare")

    def run(self, part: Part, where: str, seconds: int) -> bool:
        """Run a part to its end; whether it passed.

        Args:
            where: how many parts are done and to do, for the progress line.
            seconds: how long it will take, for that line, too.
        """
        LOGS.joinpath(f"{part.name}.xml").unlink(missing_ok=True)
        began = time.monotonic()
        beside = self._beside.pop(part.name, None)
        if beside is not None:
            code = self._watch(beside, f"{part.name}-prepare", f"{where}: preparing", 600)
            if code:
                return self._failed(part, f"{part.name}-prepare", code)
        for number, command in enumerate(part.commands):
            name = part.name if len(part.commands) == 1 else f"{part.name}-{number + 1}"
            code = self._watch(self._start(command, name), name, where, seconds, since=began)
            if code:
                self.counts.add(LOGS / f"{part.name}.xml")
                return self._failed(part, name, code)
            self._say_last_line(name)
        self.counts.add(LOGS / f"{part.name}.xml")
        return True

    def close(self) -> None:
        """End what still runs in the background."""
        for process in self._beside.values():
            _end(process)

    def _start(self, command: Command, name: str) -> subprocess.Popen[bytes]:
        with LOGS.joinpath(f"{name}.log").open("wb") as log:
            return subprocess.Popen(
                command,
                cwd=ROOT,
                env=self.environment,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                pass_fds=(self._lock,),
                start_new_session=True,
            )

    def _watch(
        self,
        process: subprocess.Popen[bytes],
        name: str,
        where: str,
        seconds: int,
        since: float | None = None,
    ) -> int:
        """Wait for a process, saying how far it is; its exit code."""
        began = since if since is not None else time.monotonic()
        said = time.monotonic()
        try:
            while process.poll() is None:
                time.sleep(_LOOK_SECONDS)
                now = time.monotonic()
                if self._terminal or now - said >= _SAY_SECONDS:
                    said = now
                    self._say(f"{where}  {now - began:.0f} s of about {seconds} s{_far(name)}")
        except BaseException:
            _end(process)
            raise
        finally:
            if self._terminal:
                print("\r\x1b[K", end="")
        return process.returncode

    def _say(self, line: str) -> None:
        if self._terminal:
            print(f"\r\x1b[K{line[:79]}", end="", flush=True)
        else:
            print(line, flush=True)

    def _say_last_line(self, name: str) -> None:
        lines = LOGS.joinpath(f"{name}.log").read_text(errors="replace").split("\n")
        told = [line for line in lines if line.strip()]
        if told:
            print(f"    {told[-1]}", flush=True)

    def _failed(self, part: Part, name: str, code: int) -> bool:
        log = LOGS / f"{name}.log"
        lines = log.read_text(errors="replace").splitlines()
        print("\n".join(lines[-_SHOWN_LINES:]))
        print(f"FAILED {part.name}: exit code {code}; all it said: {log.relative_to(ROOT)}")
        print(f"    again, only this: ci/test {part.name}", flush=True)
        return False


def _end(process: subprocess.Popen[bytes]) -> None:
    """Interrupt a part with all that it started, as Ctrl-C does; kill what does not end."""
    if process.poll() is not None:
        return
    os.killpg(process.pid, signal.SIGINT)
    try:
        process.wait(_END_SECONDS)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def _far(name: str) -> str:
    """How far a program says it is, at the end of its log."""
    with LOGS.joinpath(f"{name}.log").open("rb") as log:
        log.seek(0, os.SEEK_END)
        log.seek(max(0, log.tell() - 4096))
        found = _PERCENT.findall(log.read())
    if not found:
        return ""
    percent, done, of = found[-1]
    return f", {percent.decode()} %" if percent else f", {done.decode()} of {of.decode()}"
