"""Controls one simulated machine: the description that the C library holds, and injected faults."""

from __future__ import annotations

import ctypes
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from nvml_driver.errors import NvmlUnavailableError, ProfileError


class Machine:
    """A machine in the C library; freed when nobody refers to it any more."""

    def __init__(self, handle: ctypes.CDLL, description: bytes, name: str) -> None:
        """Let the library read a description. Raises ProfileError: it refuses it, and why."""
        self._open = _declare_function(handle, "nvmlSimulatedOpen", ctypes.c_void_p)
        self._close = _declare_function(handle, "nvmlSimulatedClose", ctypes.c_int)
        self._select = _declare_function(handle, "nvmlSimulatedSelect", ctypes.c_void_p)
        self._control = _declare_function(handle, "nvmlSimulatedControl", ctypes.c_int)
        message = ctypes.create_string_buffer(512)
        size = ctypes.c_size_t
        self._pointer: int | None = self._open(
            description, size(len(description)), message, size(len(message))
        )
        if not self._pointer:
            reason = message.value.decode(errors="replace") or "out of memory"
            raise ProfileError(f"profile {name}: {reason}")
        weakref.finalize(self, self._close, ctypes.c_void_p(self._pointer))

    @contextmanager
    def select_for_thread(self) -> Iterator[None]:
        """Let this thread's NVML mean this machine, and afterwards the previous one again."""
        previous = self._select(ctypes.c_void_p(self._pointer))
        try:
            yield
        finally:
            self._select(ctypes.c_void_p(previous))

    def control(self, *lines: str) -> None:
        """Obey control lines, as they may also be appended to a control file.

        A GPU is meant by its index or its PCI bus id (``0000:00:1e.0``).

        - ``fault <GPU or -> <function or *> <error> [<first call> [<last call>]]``
        - ``clear <GPU or -> <function or *>``
        - ``event <GPU> <type> <data> [<GPU instance id> <compute instance id>]``
        - ``recovery <GPU> <NVML_GPU_RECOVERY_ACTION_*>``
        - ``mig <GPU> create <profile id> <start>``, ``... destroy <GPU instance id>`` and
          ``... mode <0 or 1>``: what somebody else does with ``nvidia-smi mig``
        Raises NvmlUnavailableError: a line cannot be obeyed; those before it have been.
        """
        text = "".join(f"{line}\n" for line in lines).encode()
        message = ctypes.create_string_buffer(512)
        size = ctypes.c_size_t
        if self._control(
            ctypes.c_void_p(self._pointer), text, size(len(text)), message, size(len(message))
        ):
            raise NvmlUnavailableError(message.value.decode(errors="replace"))


def _declare_function(handle: ctypes.CDLL, name: str, result: Any) -> Any:
    function = getattr(handle, name)
    function.restype = result
    return function
