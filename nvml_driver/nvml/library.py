"""Chooses the NVML that this process talks to: the node's own, or a simulated one.

nvidia-ml-py keeps one library per process and caches its function pointers, so the real and the
simulated library cannot both be used in one process. Of the simulated one there can be many in a
process, each a machine of its own; a session says which machine its thread means. Sessions may
overlap, in one thread and in several: NVML counts them.

What NVML cannot answer is left out and logged (old drivers miss functions, consumer cards do not
support some): none of this is a reason not to publish a device.
"""

from __future__ import annotations

import ctypes
import logging
import threading
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any, TypeVar

import pynvml

from nvml_driver.errors import NvmlUnavailableError
from nvml_driver.model.inventory import Attribute, AttributeType
from nvml_driver.nvml.installation import MAX_TEXT
from nvml_driver.simulated import build, list_shipped_profiles, machines, profile

_LOG = logging.getLogger(__name__)
_MARK = "nvmlSimulatedOpen"
_adopting = threading.Lock()


class NvmlLibrary:
    """An NVML that can be asked, made by ``load_system`` or ``load_simulated``.

    Of a simulated one ``profile`` has the GPUs, and ``machine`` injects events and faults.
    """

    def __init__(
        self,
        handle: ctypes.CDLL,
        loaded_profile: profile.Profile | None = None,
        machine: machines.Machine | None = None,
    ) -> None:
        self._handle = handle
        self.machine = machine
        self.profile = loaded_profile

    @classmethod
    def load_system(cls, path: Path | None = None) -> NvmlLibrary:
        """Load the node's NVML from where the loader or ``path`` says.

        Raises NvmlUnavailableError.
        """
        try:
            handle = ctypes.CDLL(str(path or build.LIBRARY))
        except OSError as error:
            raise NvmlUnavailableError(
                f"cannot load {path or build.LIBRARY}: {error}; install the NVIDIA driver, "
                f"or use --simulate with one of: {', '.join(list_shipped_profiles())}"
            ) from None
        return cls(_adopt_library(handle))

    @classmethod
    def load_simulated(
        cls,
        source: str | Path | profile.Profile,
        *,
        cache_root: Path | None = None,
        state_file: Path | None = None,
        control_file: Path | None = None,
    ) -> NvmlLibrary:
        """Load a simulated NVML that shows a profile's GPUs; compile it if need be.

        Args:
            source: a shipped profile's name, a profile file, or a Profile.
            cache_root: where the compiled library is kept; by default ``$XDG_CACHE_HOME``, else
                ``~/.cache``.
            state_file: keeps MIG mode and instances, as the hardware would: over a restart of the
                process, and between processes. Deleting it is a reboot. By default they live as
                long as this object.
            control_file: made if it is not there; lines that anybody appends inject events and
                faults while the process runs (see ``machines.Machine.control`` for what they say).

        Raises:
            ProfileError: the profile cannot be used.
            NvmlUnavailableError: the library cannot be built or loaded, or refuses the profile.
        """
        loaded_profile = profile.load_profile(source)
        path = build.build_library(cache_root or build.default_cache_root())
        try:
            handle = ctypes.CDLL(str(path))
            if control_file is not None:
                control_file.parent.mkdir(parents=True, exist_ok=True)
                control_file.touch()
            if state_file is not None:
                state_file.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise NvmlUnavailableError(f"cannot set up simulated NVML: {error}") from None
        handle = _adopt_library(handle)
        text = loaded_profile.describe(
            state=state_file.absolute() if state_file else None,
            control=control_file.absolute() if control_file else None,
        )
        return cls(handle, loaded_profile, machines.Machine(handle, text, loaded_profile.name))

    @property
    def is_simulated(self) -> bool:
        """True if the library itself says that it is simulated, however it came to be loaded."""
        return hasattr(self._handle, _MARK)

    @contextmanager
    def open_session(self) -> Iterator[Any]:
        """Give NVML initialised, as pynvml, to the present thread. Raises NvmlUnavailableError."""
        with self.machine.select_for_thread() if self.machine else nullcontext():
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


def _adopt_library(handle: ctypes.CDLL) -> ctypes.CDLL:
    """Make nvidia-ml-py use the library, which it can only once in a process."""
    with _adopting:
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


_T = TypeVar("_T")
_SPACE = uuid.UUID("6c1f5a0e-3f0d-4b1e-9a57-0d6f3f2b7c11")
LOST = (
    pynvml.NVML_ERROR_GPU_IS_LOST,
    pynvml.NVML_ERROR_RESET_REQUIRED,
    pynvml.NVML_ERROR_GPU_NOT_FOUND,
)
"""Errors after which nothing more can be asked of a GPU."""


class GpuUnusableError(Exception):
    """This GPU cannot be published at all; the message says why."""


def ask_nvml(
    label: str,
    attribute: str,
    function: Callable[..., _T],
    *arguments: Any,
    level: int = logging.INFO,
) -> _T | None:
    """Return what NVML answers about the driver or a GPU; None if it cannot say.

    ``label`` (of the GPU) and ``attribute`` are for the log, at ``level``: lower for what many GPUs
    lack.
    Raises GpuUnusableError: the GPU is lost, so that nothing more can be asked.
    """
    try:
        return function(*arguments)
    except pynvml.NVMLError as error:
        if arguments and error.value in LOST:
            raise GpuUnusableError(str(error)) from None
        _LOG.log(level, "%s is published without %s: %s", label, attribute, error)
    except (UnicodeDecodeError, ValueError) as error:
        _LOG.warning(
            "%s is published without %s: NVML's answer is not text: %s", label, attribute, error
        )
    return None


def add_attribute(
    attributes: dict[str, Attribute],
    label: str,
    name: str,
    kind: AttributeType,
    value: str | None,
    raw: object,
) -> None:
    """Add an attribute if its value is one that the API takes."""
    if value is None or not 0 < len(value) <= MAX_TEXT:
        _LOG.warning("%s is published without %s: NVML's %r cannot be used", label, name, raw)
    else:
        attributes[name] = Attribute(kind, value)


def normalize_version(text: str) -> str | None:
    """Return a semantic version of what NVML writes with leading zeros or too few parts.

    ``580.95.05`` becomes ``580.95.5``, ``7.5`` becomes ``7.5.0``; else None.
    """
    numbers = text.split(".")
    if not 1 <= len(numbers) <= 3 or not all(
        number.isascii() and number.isdigit() for number in numbers
    ):
        return None
    return ".".join(str(int(number)) for number in [*numbers, "0", "0"][:3])


def salt_uuid(raw: str, salt: str | None) -> str:
    """Return a UUID that differs from that of another salt; ``raw`` itself for None.

    For simulated GPUs: two nodes that show one profile do not show the same GPU. What comes before
    the first dash (``GPU``, ``MIG``) stays.
    """
    if salt is None:
        return raw
    return f"{raw.partition('-')[0]}-{uuid.uuid5(_SPACE, f'{salt}/{raw}')}"
