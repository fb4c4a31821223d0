"""Which NVML this process talks to: the node's own, or a simulated one.

nvidia-ml-py keeps one library per process and caches its function pointers, so this module hands
out sessions under a lock: initialise, ask, shut down. Several simulated profiles can be used in
turn in one process, because the simulated library takes its description before each session;
the real and the simulated library cannot both be used in one process.
"""

from __future__ import annotations

import ctypes
import logging
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pynvml

from nvml_driver.errors import NvmlUnavailableError
from nvml_driver.simulated import build, profile

_LOG = logging.getLogger(__name__)
_LOAD_SYMBOL = "nvmlSimulatedLoad"
_process_lock = threading.RLock()


class NvmlLibrary:
    """An NVML that can be asked, made by ``system`` or ``simulated``.

    Attributes:
        profile: the simulated GPUs, None for a library that is not told what to show.
    """

    def __init__(self, handle: ctypes.CDLL, shown: profile.Profile | None = None) -> None:
        """Use ``system`` or ``simulated`` instead."""
        self._handle = handle
        self.profile = shown

    @classmethod
    def system(cls) -> NvmlLibrary:
        """The NVML that came with the node's NVIDIA driver.

        Raises:
            NvmlUnavailableError: it cannot be loaded, or this process uses another already.
        """
        try:
            handle = ctypes.CDLL(build.LIBRARY)
        except OSError as error:
            raise NvmlUnavailableError(
                f"cannot load {build.LIBRARY}: {error}; install the NVIDIA driver, "
                f"or use --simulate with one of: {', '.join(profile.shipped())}"
            ) from None
        return cls(_adopt(handle))

    @classmethod
    def simulated(
        cls, shown: str | Path | profile.Profile, *, cache_root: Path | None = None
    ) -> NvmlLibrary:
        """The simulated NVML, showing a profile's GPUs; compiled if it has not been yet.

        Args:
            shown: a shipped profile's name, a profile file, or a Profile.
            cache_root: where the compiled library is kept; by default ``$XDG_CACHE_HOME``, else
                ``~/.cache``.

        Raises:
            ProfileError: the profile cannot be used.
            NvmlUnavailableError: the library cannot be built or loaded.
        """
        wanted = profile.load(shown)
        path = build.build(cache_root or default_cache_root())
        try:
            handle = ctypes.CDLL(str(path))
        except OSError as error:
            raise NvmlUnavailableError(f"cannot load simulated NVML {path}: {error}") from None
        return cls(_adopt(handle), wanted)

    @property
    def is_simulated(self) -> bool:
        """Whether the library itself says that it is simulated, however it came to be loaded."""
        return hasattr(self._handle, _LOAD_SYMBOL)

    @contextmanager
    def session(self) -> Iterator[Any]:
        """NVML initialised, as the pynvml module; one session at a time in a process.

        Raises:
            NvmlUnavailableError: NVML does not initialise.
        """
        with _process_lock:
            if self.profile is not None:
                self._show(self.profile)
            try:
                pynvml.nvmlInit()
            except pynvml.NVMLError as error:
                raise NvmlUnavailableError(
                    f"NVML does not initialise: {error}; is the NVIDIA kernel driver loaded?"
                ) from None
            try:
                yield pynvml
            finally:
                try:
                    pynvml.nvmlShutdown()
                except pynvml.NVMLError as error:
                    _LOG.warning("NVML did not shut down: %s", error)

    def _show(self, shown: profile.Profile) -> None:
        text = shown.describe()
        message = ctypes.create_string_buffer(256)
        load = getattr(self._handle, _LOAD_SYMBOL)
        load.argtypes = [ctypes.c_char_p, ctypes.c_size_t, ctypes.c_char_p, ctypes.c_size_t]
        load.restype = ctypes.c_int
        if load(text, len(text), message, len(message)) != 0:
            raise NvmlUnavailableError(
                f"profile {shown.name}: {message.value.decode(errors='replace')}"
            )


def default_cache_root() -> Path:
    """The user's cache directory after the XDG base directory rules."""
    configured = os.environ.get("XDG_CACHE_HOME", "")
    return Path(configured) if Path(configured).is_absolute() else Path.home() / ".cache"


def _adopt(handle: ctypes.CDLL) -> ctypes.CDLL:
    """Make nvidia-ml-py use the library, which it can only once in a process."""
    with _process_lock:
        present = pynvml.nvmlLib
        if present is None:
            pynvml.nvmlLib = handle
            return handle
        # dlopen gives the same handle for the same file; ctypes keeps it in this documented field.
        if present._handle == handle._handle:  # noqa: SLF001
            return handle
        raise NvmlUnavailableError(
            "this process uses another NVML already, and nvidia-ml-py can only use one: "
            "use the real and the simulated GPUs in separate processes"
        )
