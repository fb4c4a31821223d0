"""Asks a program of somebody else, line by line, and trusts it with nothing.

It may hang, die, write without end or answer what was not asked. Each of these ends it; it is
started again for the next question, so that one bad answer spoils no other.
"""

from __future__ import annotations

import contextlib
import json
import os
import selectors
import shutil
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import IO, Any, Final, Self

from kube.base.errors import UsageError
from kube.base.text import one_line

MAX_ANSWER: Final = 16 * 1024 * 1024
"""Bytes of an answer, from which on a program writes too much: 32 devices for each of 5,000 nodes
have less."""

_CHUNK: Final = 1 << 16
_LAST_WORDS: Final = 2000
OVERHEAD: Final = 5.0
"""Seconds of a question beside those of its nodes: to start, to read and to write."""
_GRACE: Final = 2.0
"""Seconds in which a program ends by itself once its input is closed."""


class ProgramError(Exception):
    """A program gave no answer, or none that can be read; it is started again.

    Attributes:
        kind: "ended", "hung", "flooded" or "out of order".
    """

    def __init__(self, kind: str, message: str) -> None:
        """Keep what happened, and in which words it is told."""
        super().__init__(message)
        self.kind = kind


class Program:
    """A program that answers one line with one line; started with the first question.

    Args:
        command: the program and its arguments.
        seconds: how long an answer may take for each node that is asked about.
        option: the option that named it, for errors.
    """

    def __init__(
        self, command: Sequence[str | Path], seconds: float, *, option: str = "--program"
    ) -> None:
        """Look for the program. Raises UsageError: there is none, or it cannot be executed."""
        words = [str(word) for word in command]
        found = shutil.which(words[0]) if words else None
        if found is None:
            raise UsageError(
                f"{option}: the program {words[0] if words else ''!r} does not exist or is not"
                " executable; give its path, or put it into PATH"
            )
        self.command = (str(Path(found).absolute()), *words[1:])
        self.seconds, self._option = seconds, option
        self._process: subprocess.Popen[bytes] | None = None
        self._log = bytearray()
        self.starts = 0
        """How often it was started."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """End the program, and all that it started."""
        self._stop(_GRACE)

    def ask(self, question: Mapping[str, Any]) -> bytes:
        """Return the line that answers a question.

        Raises ProgramError: there is no such line. The program is ended, and started again with
        the next question. Raises UsageError: the system cannot execute it.
        """
        process = self._process or self._start()
        try:
            seconds = self.seconds * max(1, len(question.get("nodes") or ())) + OVERHEAD
            return self._exchange(process, json.dumps(question).encode() + b"\n", seconds)
        except ProgramError:
            self.end()
            raise

    def end(self) -> None:
        """End the program; the next question starts it again."""
        self._stop(0)

    def _start(self) -> subprocess.Popen[bytes]:
        self._log.clear()
        try:
            process = subprocess.Popen(
                self.command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                start_new_session=True,
            )
        except OSError as error:
            raise UsageError(
                f"{self._option}: {self.command[0]}: cannot be started: {error.strerror}"
            ) from None
        for stream in _streams(process):
            os.set_blocking(stream.fileno(), False)
        self._process = process
        self.starts += 1
        return process

    def _exchange(self, process: subprocess.Popen[bytes], line: bytes, seconds: float) -> bytes:
        """Write a line and read one, at the same time: neither side may wait for the other."""
        into, out_of, log = (stream.fileno() for stream in _streams(process))
        deadline = time.monotonic() + seconds
        to_write, received = memoryview(line), bytearray()
        with selectors.DefaultSelector() as selector:
            selector.register(out_of, selectors.EVENT_READ)
            if selector.select(0) and (unasked := os.read(out_of, _CHUNK)):
                said = one_line(unasked.decode("utf-8", "replace"), 80)
                raise ProgramError("out of order", f"wrote without being asked: {said}")
            selector.register(into, selectors.EVENT_WRITE)
            selector.register(log, selectors.EVENT_READ)
            while b"\n" not in received:
                left = deadline - time.monotonic()
                ready = {key.fd for key, _ in selector.select(left)} if left > 0 else set()
                if not ready:
                    raise ProgramError(
                        "hung", f"gave no answer within {seconds:g} s {self._limits()}"
                    )
                if log in ready and not self._read_log(log):
                    selector.unregister(log)
                if into in ready:
                    to_write = _write(into, to_write)
                    if not to_write:
                        selector.unregister(into)
                if out_of in ready:
                    chunk = os.read(out_of, _CHUNK)
                    if not chunk:
                        raise self._fault_of_end(process)
                    received += chunk
                if len(received) > MAX_ANSWER:
                    raise ProgramError(
                        "flooded", f"wrote more than {MAX_ANSWER} bytes for one question"
                    )
        answer, _, rest = bytes(received).partition(b"\n")
        if rest:
            raise ProgramError("out of order", "wrote more than one line for one question")
        return answer

    def _limits(self) -> str:
        """Return in words what the time of a question is made of."""
        return f"({self.seconds:g} s for each node and {OVERHEAD:g} s for the question)"

    def _read_log(self, log: int) -> bool:
        """Read what is there of its standard error, and keep the end; False: there is no more.

        While it is asked nothing, a program that writes more than a pipe holds waits.
        """
        try:
            chunk = os.read(log, _CHUNK)
        except BlockingIOError:
            return False
        self._log += chunk
        del self._log[:-_LAST_WORDS]
        return bool(chunk)

    def _fault_of_end(self, process: subprocess.Popen[bytes]) -> ProgramError:
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(_GRACE)
        code = process.returncode
        how = "closed its output" if code is None else f"ended with exit code {code}"
        if code == 0:
            how += "; it must read on until its input ends"
        if code is not None and code < 0:
            how = f"was ended by signal {-code}"
        said = self._last_words(process)
        return ProgramError("ended", f"{how}: {said}" if said else how)

    def _last_words(self, process: subprocess.Popen[bytes]) -> str:
        """Return the last line of its standard error that says something."""
        log = _streams(process)[2].fileno()
        until = time.monotonic() + _GRACE
        while self._read_log(log) and time.monotonic() < until:
            pass
        lines = self._log.decode(errors="replace").splitlines()
        return next((one_line(line, 200) for line in reversed(lines) if line.strip()), "")

    def _stop(self, grace: float) -> None:
        process, self._process = self._process, None
        if process is None:
            return
        for stream in _streams(process):
            with contextlib.suppress(OSError):
                stream.close()
        if grace:
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(grace)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def _streams(process: subprocess.Popen[bytes]) -> tuple[IO[bytes], IO[bytes], IO[bytes]]:
    """Return the other ends of its standard input, output and error."""
    assert process.stdin is not None
    assert process.stdout is not None
    assert process.stderr is not None
    return process.stdin, process.stdout, process.stderr


def _write(file: int, data: memoryview) -> memoryview:
    """Write what a pipe takes now; return the rest, which is nothing once nobody reads it."""
    try:
        return data[os.write(file, data[:_CHUNK]) :]
    except BlockingIOError:
        return data
    except OSError:  # what it wrote before it left is still to be read
        return data[:0]
