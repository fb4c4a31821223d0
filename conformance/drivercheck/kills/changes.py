"""Hears of each change that a driver makes to files, and kills it before a chosen one is made."""

from __future__ import annotations

import fcntl
import os
import select
import signal
import socket
import struct
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

from conformance.drivercheck.launching import Syscall, known_syscalls
from conformance.drivercheck.process import Process, Starter, WatchableStarter
from kube.base.text import one_line

_RECEIVE: Final = 0xC0502100  # SECCOMP_IOCTL_NOTIF_RECV, linux/seccomp.h
_SEND: Final = 0xC0182101  # SECCOMP_IOCTL_NOTIF_SEND
_CONTINUE: Final = 1  # SECCOMP_USER_NOTIF_FLAG_CONTINUE: carry the call out as if nobody had asked
_START_SECONDS: Final = 10.0
_MOST: Final = 10_000
_PATH_BYTES: Final = 4096
_NODE_FOLDERS: Final = tuple(map(Path, ("/var/lib", "/var/run", "/run", "/etc")))
"""Where drivers that have the node's paths in their code keep what they know."""


class UnwatchableError(Exception):
    """A driver's changes of files cannot be heard of, and why."""


class WatchedDriver:
    """A starter of drivers whose changes of files are counted.

    ``changes``: what changed since `count_from_zero`, as ``system call path``, at most `_MOST`.
    """

    def __init__(self, starter: Starter, folders: Sequence[Path], socket_path: Path) -> None:
        """``folders``: whose files count, beside those of a node."""
        if not isinstance(starter, WatchableStarter):
            raise UnwatchableError("it is not started by a command")
        self._socket: Path = socket_path
        self._starter: Starter = starter.announcing(socket_path)
        self._folders: tuple[Path, ...] = (*folders, *_NODE_FOLDERS)
        self._calls: Mapping[int, Syscall] = known_syscalls()
        self._kill_at: int = 0
        self._log = Path()
        self._kill: Callable[[], None] = lambda: None
        self.changes: list[str] = []

    def count_from_zero(self, kill_at: int = 0) -> None:
        """Count, and kill the driver before its change number ``kill_at`` (0: never)."""
        self.changes, self._kill_at = [], kill_at

    def with_boot_id(self, boot_id: Path) -> Starter | None:
        """Return what the watched starter returns."""
        return self._starter.with_boot_id(boot_id)

    def __call__(self, environment: Mapping[str, str], log: Path) -> Process:
        """Start it. Raises UnwatchableError; UsageError, as the starter that is watched."""
        self.count_from_zero()
        self._log = log
        with socket.socket(socket.AF_UNIX) as server:
            server.bind(str(self._socket))
            try:
                server.listen(1)
                server.settimeout(_START_SECONDS)
                process = self._starter(environment, log)
                try:
                    listener = _receive_listener(server)
                except UnwatchableError:
                    process.signal(signal.SIGKILL)
                    process.wait(_START_SECONDS)
                    raise
            finally:
                self._socket.unlink(missing_ok=True)
        self._kill = lambda: process.signal(signal.SIGKILL)
        threading.Thread(target=self._listen, args=(listener,), daemon=True).start()
        return process

    def _listen(self, listener: int) -> None:
        """Answer each request until no process is left that asks."""
        waiting = select.poll()
        waiting.register(listener, select.POLLIN)
        try:
            while not any(event & select.POLLHUP for _, event in waiting.poll()):
                request = bytearray(80)  # struct seccomp_notif
                with suppress(OSError):  # it was killed meanwhile
                    fcntl.ioctl(listener, _RECEIVE, request)
                    identity, thread, _, number = struct.unpack_from("=QIIi", request)
                    arguments = struct.unpack_from("=6Q", request, 32)
                    if self._is_kill_point(thread, number, arguments):
                        self._kill()
                        continue
                    answer = struct.pack("=QqiI", identity, 0, 0, _CONTINUE)
                    fcntl.ioctl(listener, _SEND, answer)
        finally:
            os.close(listener)

    def _is_kill_point(self, thread: int, number: int, arguments: Sequence[int]) -> bool:
        call = self._calls.get(number)
        path = None if call is None else _file_of(call, thread, arguments)
        if call is None or path in (None, self._log):
            return False
        if not any(folder in path.parents for folder in self._folders):
            return False
        if len(self.changes) < _MOST:
            self.changes.append(one_line(f"{call.name} {path}", 200))
        return len(self.changes) == self._kill_at


def _receive_listener(server: socket.socket) -> int:
    """Return the listener that the driver's process sends. Raises UnwatchableError."""
    try:
        connected, _ = server.accept()
        with connected:
            connected.settimeout(_START_SECONDS)
            message, descriptors, _, _ = socket.recv_fds(connected, 200, 1)
    except OSError as error:
        raise UnwatchableError(f"its start does not answer: {error}") from None
    if not descriptors:
        raise UnwatchableError(f"seccomp: {one_line(message.decode(errors='replace'), 100)}")
    return descriptors[0]


def _file_of(call: Syscall, thread: int, arguments: Sequence[int]) -> Path | None:
    """Return the file that a call changes; None: it changes none, or it cannot be told."""
    try:
        if call.descriptor >= 0:
            return _descriptor_path(thread, arguments[call.descriptor]).readlink()
        path = Path(
            os.fsdecode(_read_memory(thread, arguments[call.path], _PATH_BYTES).split(b"\0")[0])
        )
        if not path.is_absolute():
            above = arguments[call.folder] if call.folder >= 0 else -100
            path = _descriptor_path(thread, above).readlink() / path
        return path if _makes_change(call, thread, arguments, path) else None
    except (OSError, ValueError):
        return None


def _descriptor_path(thread: int, number: int) -> Path:
    signed = struct.unpack("=i", struct.pack("=Q", number & 0xFFFFFFFFFFFFFFFF)[:4])[0]
    at_cwd = signed == -100  # AT_FDCWD
    return Path(f"/proc/{thread}", "cwd" if at_cwd else f"fd/{signed}")


def _makes_change(call: Syscall, thread: int, arguments: Sequence[int], path: Path) -> bool:
    """Return whether a call with a path changes something: to open a file mostly does not."""
    exists = os.path.lexists(f"/proc/{thread}/root{path}")  # it may have mounts of its own
    match call.name:
        case "mkdir" | "mkdirat":
            return not exists
        case "unlink" | "unlinkat" | "rmdir":
            return exists
        case "open":
            flags = arguments[1]
        case "openat":
            flags = arguments[2]
        case "openat2":
            flags = int.from_bytes(_read_memory(thread, arguments[2], 8), "little")
        case _:
            return True
    return bool(flags & (os.O_TRUNC if exists else os.O_CREAT))


def _read_memory(thread: int, address: int, size: int) -> bytes:
    """Read bytes of another process, fewer at the end of a page that is the last one."""
    with Path(f"/proc/{thread}/mem").open("rb", buffering=0) as memory:
        page = 4096 - address % 4096
        memory.seek(address)
        data = memory.read(min(size, page))
        if size > page and b"\0" not in data:
            with suppress(OSError):
                data += memory.read(size - page)
    return data
