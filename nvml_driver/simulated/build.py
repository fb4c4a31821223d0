"""Compiles ``library/*.c`` on first use, into a cache that every process of the user shares.

A wheel stays free of binaries that way, and an edit of the C file takes effect at once: the
cache's key is a digest of source and command line. Two processes may come at the same moment, so
building happens under a lock and the result appears by rename.

An image needs no compiler: ``python -m nvml_driver.simulated.build [COMPILER...]`` compiles ahead.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from importlib import resources
from pathlib import Path

from kube.base.toolchain import find_c_compiler
from nvml_driver.errors import NvmlUnavailableError

LIBRARY = "libnvidia-ml.so.1"
"""Soname and file name: what nvidia-ml-py and NVIDIA's own programs load."""

FLAGS = (
    *("-std=gnu11", "-O2", "-g", "-fPIC", "-shared", "-pthread"),
    *("-Wall", "-Wextra", "-Werror", "-fvisibility=hidden", f"-Wl,-soname,{LIBRARY}"),
)


def find_compiler() -> tuple[str, ...]:
    """Return the C compiler's command: ``cc``, else ziglang's.

    Raises NvmlUnavailableError: neither.
    """
    if found := find_c_compiler():
        return found
    raise NvmlUnavailableError(
        "simulated NVML needs a C compiler and there is no `cc` on PATH: pip install "
        "'dra-conformance[compiler]', or install gcc or clang (on Debian: gcc libc6-dev)"
    )


def default_cache_root() -> Path:
    """Return the user's cache directory after the XDG base directory rules."""
    configured = os.environ.get("XDG_CACHE_HOME", "")
    return Path(configured) if Path(configured).is_absolute() else Path.home() / ".cache"


def build_library(
    cache_root: Path, command: Sequence[str] | None = None, extra_flags: Sequence[str] = ()
) -> Path:
    """Return the compiled library, built if the cache does not have it yet.

    Args:
        cache_root: the user's cache directory; the library goes into
            ``<cache_root>/dra-conformance/nvml/<digest>/libnvidia-ml.so.1``.
        command: the compiler's command line; by default what ``build_ahead`` made is used, else
            ``find_compiler()``.
        extra_flags: after ``FLAGS``, for example ``-fsanitize=address``.

    Raises NvmlUnavailableError: no compiler, it failed, or the cache cannot be written.
    """
    sources = _read_sources()
    if command is None and not extra_flags and (ahead := _ahead_path(sources)).exists():
        return ahead
    command = tuple(command) if command is not None else find_compiler()
    digest = _digest((*command, *FLAGS, *extra_flags), sources)
    folder = cache_root.absolute() / "dra-conformance" / "nvml" / digest
    library = folder / LIBRARY
    if library.exists():
        return library
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with (folder / "lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not library.exists():
                _compile([*command, *FLAGS, *extra_flags], sources, library)
    except OSError as error:
        raise NvmlUnavailableError(
            f"cannot build simulated NVML in {folder}: {error}; "
            "set XDG_CACHE_HOME to a directory that can be written"
        ) from None
    return library


def build_ahead(command: Sequence[str] = ()) -> Path:
    """Compile into the installed package, for all that run later. Raises NvmlUnavailableError."""
    sources = _read_sources()
    library = _ahead_path(sources)
    library.parent.mkdir(parents=True, exist_ok=True)
    _compile([*(command or find_compiler()), *FLAGS], sources, library)
    return library


def _ahead_path(sources: Mapping[str, bytes]) -> Path:
    """Return where the library of just these sources is, if it was compiled ahead."""
    return Path(__file__).parent / "ahead" / _digest((), sources) / LIBRARY


def _digest(words: Sequence[str], sources: Mapping[str, bytes]) -> str:
    files = [content for name, text in sources.items() for content in (name.encode(), text)]
    contents = [word.encode() for word in words] + files
    return hashlib.sha256(b"\0".join(contents)).hexdigest()[:32]


def _read_sources() -> dict[str, bytes]:
    """Return the text of each file by name, headers too, in a fixed order."""
    folder = resources.files("nvml_driver.simulated").joinpath("library")
    files = sorted(folder.iterdir(), key=lambda file: file.name)
    return {file.name: file.read_bytes() for file in files if file.name.endswith((".c", ".h"))}


def _compile(command: Sequence[str], sources: Mapping[str, bytes], library: Path) -> None:
    with tempfile.TemporaryDirectory(dir=library.parent, prefix="build-") as scratch:
        built = Path(scratch, LIBRARY)
        for name, text in sources.items():
            Path(scratch, name).write_bytes(text)
        units = [str(Path(scratch, name)) for name in sources if name.endswith(".c")]
        completed = subprocess.run(
            [*command, *units, "-o", str(built)],
            capture_output=True,
            text=True,
            check=False,
            timeout=300,
        )
        if completed.returncode != 0:
            output = (completed.stderr or completed.stdout).strip()[-2000:]
            raise NvmlUnavailableError(
                f"`{' '.join(command)}` could not compile simulated NVML "
                f"(exit status {completed.returncode}):\n{output}"
            )
        built.replace(library)


if __name__ == "__main__":
    print(build_ahead(sys.argv[1:]))
