"""Lets another process hear of this one's changes of files, and become the driver.

A filter of seccomp makes the kernel ask that process before each such call, of every thread and
child (seccomp_unotify(2)); no right to trace is needed, and a program in any language does not
notice. This file is also a program, ``launching.py SOCKET COMMAND...``, so it imports next to
nothing.
"""

from __future__ import annotations

import ctypes
import os
import platform
import socket
import struct
import sys
from collections.abc import Mapping
from typing import Final, NamedTuple


class Syscall(NamedTuple):
    """A system call that changes files; to sync one changes nothing that a kill could take.

    Where the file of a system call stands: its descriptor, or its path below a directory's.

    Places of arguments; -1: none.
    """

    name: str
    descriptor: int = -1
    path: int = -1
    folder: int = -1


_BY_DESCRIPTOR: Final = [
    *(Syscall(name, descriptor=0) for name in ("write", "pwrite64", "writev", "pwritev")),
    *(Syscall(name, descriptor=0) for name in ("pwritev2", "ftruncate", "fallocate", "sendfile")),
    Syscall("copy_file_range", descriptor=2),
]
_BELOW_A_FOLDER: Final = [
    *(Syscall(name, folder=0, path=1) for name in ("openat", "openat2", "unlinkat", "mkdirat")),
    *(Syscall(name, folder=2, path=3) for name in ("renameat", "renameat2", "linkat")),
    Syscall("symlinkat", folder=1, path=2),
    Syscall("truncate", path=0),
]
_BY_PATH: Final = [
    *(Syscall(name, path=0) for name in ("open", "creat", "unlink", "rmdir", "mkdir")),
    *(Syscall(name, path=1) for name in ("rename", "link", "symlink")),
]


_FLAGS: Final = {"open": 1, "openat": 2}
"""System call that opens a file -> which of its arguments are the flags."""


class _Machine(NamedTuple):
    audit: int
    seccomp: int
    numbers: tuple[int, ...]


# Numbers of asm/unistd.h, in the order of the tables above; the last table is of x86_64 only.
_MACHINES: Final = {
    "x86_64": _Machine(
        0xC000003E,
        317,
        (
            *(1, 18, 20, 296, 328, 77, 285, 40, 326),
            *(257, 437, 263, 258, 264, 316, 265, 266, 76),
            *(2, 85, 87, 84, 83, 82, 86, 88),
        ),
    ),
    "aarch64": _Machine(
        0xC00000B7,
        277,
        (*(64, 68, 66, 70, 287, 46, 47, 71, 285), *(56, 437, 35, 34, 38, 276, 37, 36, 45)),
    ),
}
_NEW_LISTENER: Final = 1 << 3
_WAIT_KILLABLE: Final = 1 << 5
"""A signal that does not kill waits (Linux 5.19): Go sends itself many, and each would ask anew."""
_NO_NEW_PRIVILEGES: Final = 38  # PR_SET_NO_NEW_PRIVS, which who is not root needs for a filter


def known_syscalls() -> Mapping[int, Syscall]:
    """Return number -> system call of this machine; empty: the machine is not known."""
    machine = _MACHINES.get(platform.machine())
    return {} if machine is None else _number_calls(machine)


def _number_calls(machine: _Machine) -> dict[int, Syscall]:
    return dict(zip(machine.numbers, [*_BY_DESCRIPTOR, *_BELOW_A_FOLDER, *_BY_PATH], strict=False))


def _build_filter(machine: _Machine) -> bytes:
    """Build a filter that asks for the calls of the table (linux/filter.h, linux/seccomp.h).

    It does not ask for a file that is opened and neither made nor emptied: programs open hundreds
    while they start.
    """
    load, equal, any_bit, end = 0x20, 0x15, 0x45, 0x06
    allow, ask = 0x7FFF0000, 0x7FC00000
    calls = _number_calls(machine)
    opens = {call.name: number for number, call in calls.items() if call.name in _FLAGS}
    others = [number for number in calls if number not in opens.values()]
    last = len(others) + 3 * len(opens)  # of the instructions between the number and the two ends
    program = [
        (load, 0, 0, 4),  # the architecture
        (equal, 0, last + 1, machine.audit),
        (load, 0, 0, 0),  # the number
    ]
    program += [(equal, last - index, 0, number) for index, number in enumerate(others)]
    for index, (name, number) in enumerate(opens.items(), 1):
        to_the_end = last - len(others) - 3 * index
        program += [
            (equal, 0, 2, number),
            (load, 0, 0, 16 + 8 * _FLAGS[name]),  # the lower half: both machines are little-endian
            (any_bit, to_the_end + 1, to_the_end, os.O_CREAT | os.O_TRUNC),
        ]
    program += [(end, 0, 0, allow), (end, 0, 0, ask)]
    return b"".join(struct.pack("=HBBI", *instruction) for instruction in program)


def _install_filter() -> int:
    """Install the filter for this process; return its listener's descriptor. Raises OSError."""
    machine = _MACHINES.get(platform.machine())
    if machine is None:
        raise OSError(f"its system calls are not known on {platform.machine()}")
    libc = ctypes.CDLL(None, use_errno=True)
    code = _build_filter(machine)
    buffer = ctypes.create_string_buffer(code, len(code))
    program = struct.pack("@HP", len(code) // 8, ctypes.addressof(buffer))
    if os.geteuid() != 0:
        libc.prctl(_NO_NEW_PRIVILEGES, 1, 0, 0, 0)
    for flags in (_NEW_LISTENER | _WAIT_KILLABLE, _NEW_LISTENER):
        descriptor: int = libc.syscall(machine.seccomp, 1, flags, program)
        if descriptor >= 0:
            return descriptor
    raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))


def announce(path: str) -> None:
    """Give the listener of this process to whoever serves a socket.

    Raises OSError: the kernel does not allow it, which the other side is told as well.
    """
    with socket.socket(socket.AF_UNIX) as connected:
        connected.connect(path)
        try:
            listener = _install_filter()
        except OSError as error:
            connected.sendall(f"{error.strerror or error}".encode())
            raise
        socket.send_fds(connected, [b"\0"], [listener])
        os.close(listener)


if __name__ == "__main__":
    announce(sys.argv[1])
    os.execv(sys.argv[2], sys.argv[2:])  # noqa: S606 -- the driver's command, as it was given
