"""One simulated machine: the description that the C library holds, and what is injected into it.

A test says here what goes wrong: ``fail("nvmlDeviceGetName", "GPU_IS_LOST", gpu=2)``,
``event(1, xid=79)``. From another process the same is done by appending lines to a control file.
"""

from __future__ import annotations

import ctypes
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pynvml

from nvml_driver.errors import NvmlUnavailableError, ProfileError


class Machine:
    """A machine in the C library; gone when nobody refers to it any more."""

    def __init__(self, handle: ctypes.CDLL, description: bytes, name: str) -> None:
        """Let the library read a description.

        Raises:
            ProfileError: it refuses it; the message says why.
        """
        self._open = _function(handle, "nvmlSimulatedOpen", ctypes.c_void_p)
        self._close = _function(handle, "nvmlSimulatedClose", ctypes.c_int)
        self._select = _function(handle, "nvmlSimulatedSelect", ctypes.c_void_p)
        self._control = _function(handle, "nvmlSimulatedControl", ctypes.c_int)
        message = ctypes.create_string_buffer(512)
        size = ctypes.c_size_t
        self._pointer: int | None = self._open(
            description, size(len(description)), message, size(len(message))
        )
        if not self._pointer:
            said = message.value.decode(errors="replace") or "out of memory"
            raise ProfileError(f"profile {name}: {said}")
        weakref.finalize(self, self._close, ctypes.c_void_p(self._pointer))

    @contextmanager
    def selected(self) -> Iterator[None]:
        """This thread's NVML means this machine; the one before is meant again afterwards."""
        before = self._select(ctypes.c_void_p(self._pointer))
        try:
            yield
        finally:
            self._select(ctypes.c_void_p(before))

    def control(self, *lines: str) -> None:
        """Obey control lines, as they may also be appended to a control file.

        - ``fault <GPU index or -> <function or *> <error> [<first call> [<last call>]]``
        - ``clear <GPU index or -> <function or *>``
        - ``event <GPU index> <type> <data> [<GPU instance id> <compute instance id>]``
        - ``recovery <GPU index> <NVML_GPU_RECOVERY_ACTION_*>``
        - ``mig <GPU index> create <profile id> <start>``, ``... destroy <GPU instance id>`` and
          ``... mode <0 or 1>``: what somebody else does with ``nvidia-smi mig``

        Raises:
            NvmlUnavailableError: a line cannot be obeyed; those before it have been.
        """
        text = "".join(f"{line}\n" for line in lines).encode()
        message = ctypes.create_string_buffer(512)
        size = ctypes.c_size_t
        if self._control(
            ctypes.c_void_p(self._pointer), text, size(len(text)), message, size(len(message))
        ):
            raise NvmlUnavailableError(message.value.decode(errors="replace"))

    def fail(
        self,
        function: str,
        error: str | int,
        *,
        gpu: int | None = None,
        first: int = 1,
        last: int | None = None,
    ) -> None:
        """Let a function fail from its ``first`` to its ``last`` call, counted from now.

        Args:
            function: NVML's name of it, with the version suffix; ``*`` for all.
            error: NVML's number or name, for example ``GPU_IS_LOST``.
            gpu: index; None: asked of any GPU, or of none.
            first: the first call that fails.
            last: the last call that fails, None for all later ones.
        """
        code = error if isinstance(error, int) else getattr(pynvml, f"NVML_ERROR_{error}")
        until = "" if last is None else f" {last}"
        self.control(f"fault {_where(gpu)} {function} {code} {first}{until}")

    def heal(self, function: str = "*", *, gpu: int | None = None) -> None:
        """Forget the faults of a function, or all."""
        self.control(f"clear {_where(gpu)} {function}")

    def xid(
        self,
        gpu: int,
        number: int,
        *,
        instances: tuple[int, int] | None = None,
        recovery: int = pynvml.NVML_GPU_RECOVERY_ACTION_NONE,
    ) -> None:
        """Raise an XID on a GPU, or in a GPU instance and compute instance of it.

        Args:
            gpu: index.
            number: the XID.
            instances: ids of GPU instance and compute instance.
            recovery: what NVML says from now on has to be done, ``NVML_GPU_RECOVERY_ACTION_*``.
        """
        where = "" if instances is None else f" {instances[0]} {instances[1]}"
        self.control(
            f"recovery {gpu} {recovery}",
            f"event {gpu} {pynvml.nvmlEventTypeXidCriticalError} {number}{where}",
        )

    def recover(self, gpu: int) -> None:
        """Let NVML say that nothing has to be done to a GPU, as after a reset."""
        self.control(f"recovery {gpu} {pynvml.NVML_GPU_RECOVERY_ACTION_NONE}")

    def create_mig(self, gpu: int, profile_id: int, start: int) -> None:
        """Make a MIG device as somebody else would with ``nvidia-smi mig -cgi <id>:<start> -C``."""
        self.control(f"mig {gpu} create {profile_id} {start}")

    def destroy_mig(self, gpu: int, gi_id: int) -> None:
        """Destroy a GPU instance and what is in it, whoever uses it."""
        self.control(f"mig {gpu} destroy {gi_id}")

    def set_mig_mode(self, gpu: int, *, enabled: bool) -> None:
        """Switch MIG mode as somebody else would with ``nvidia-smi -mig``."""
        self.control(f"mig {gpu} mode {int(enabled)}")


def _where(gpu: int | None) -> str:
    return "-" if gpu is None else str(gpu)


def _function(handle: ctypes.CDLL, name: str, result: Any) -> Any:
    function = getattr(handle, name)
    function.restype = result
    return function
