"""The kind command, and the container engine whose containers its nodes are."""

from __future__ import annotations

import contextlib
import io
import logging
import os
import re
import shutil
import signal
import subprocess
import tarfile
from collections.abc import Iterator, Sequence

from kube.base.folders import cache_folder
from localkube import data
from localkube.base import ClusterError, ClusterUsageError, Progress, silent
from localkube.gocommand import COMPILE, find_go, make_environment

_LOG = logging.getLogger(__name__)

MODULE = "sigs.k8s.io/kind"

_STOP_SECONDS = 20.0

_NO_ENGINE = re.compile(r"Cannot connect to the|failed to get \w+ info|failed to list")
_NO_IMAGE = "failed to pull image"


def kind_command(progress: Progress = silent) -> tuple[str, ...]:
    """Return the kind command: the one on the PATH, else built once from the pinned Go module.

    Raises:
        ClusterUsageError: there is neither kind nor a Go that is new enough.
        ClusterError: it cannot be built.
    """
    path = shutil.which("kind")
    if path:
        return (path,)
    module = data.kind_dir() / "command"
    version = re.search(rf"{re.escape(MODULE)} (v\S+)", (module / "go.mod").read_text())
    target = cache_folder() / "bin" / f"kind-{version[1] if version else 'x'}"
    if target.exists():
        return (str(target),)
    try:
        go = find_go()
    except ClusterUsageError as error:
        raise ClusterUsageError(
            "no kind command on the PATH (install it: https://kind.sigs.k8s.io), and to "
            f"build it this machine lacks {error}"
        ) from None
    progress(f"building {target.name} (once)")
    target.parent.mkdir(parents=True, exist_ok=True)
    completed = subprocess.run(
        [go, "build", "-C", str(module), *COMPILE, "-o", str(target), MODULE],
        env=make_environment(),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    if completed.returncode != 0:
        raise ClusterError(
            f"kind cannot be built from {module}: {summarize_errors(completed.stderr)}"
        )
    return (str(target),)


def run_kind(command: Sequence[str], seconds: float) -> subprocess.CompletedProcess[str]:
    """Run kind to its end. What interrupts that ends kind and its children, and waits for them.

    A child that went on, ``docker run`` above all, could make a node after all were deleted.
    Raises ClusterError: it is missing or took too long.
    """
    _LOG.info("running %s, for up to %g s", " ".join(command), seconds)
    try:
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
    except OSError as error:
        raise ClusterError(f"{command[0]} cannot be run: {error.strerror}") from None
    try:
        output, errors = process.communicate(timeout=seconds)
    except subprocess.TimeoutExpired:
        _end(process)
        raise ClusterError(f"`{' '.join(command)}` took longer than {seconds:g} s") from None
    except BaseException:
        _end(process)
        raise
    return subprocess.CompletedProcess(command, process.returncode, output, errors)


def _end(process: subprocess.Popen[str]) -> None:
    """End a process and its group; what it says then interests nobody."""
    for sign in (signal.SIGINT, signal.SIGKILL):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, sign)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.communicate(timeout=_STOP_SECONDS)
            return


def summarize_errors(text: str) -> str:
    """Return what a command's error output says, in a few lines, and what to do about it."""
    lines = [line.strip()[:300] for line in text.splitlines() if line.strip()]
    lines = [line for line in lines if not line.startswith("Command Output: {")]
    begin = next((i for i, line in enumerate(lines) if line.startswith("ERROR")), -3)
    summary = " ".join(dict.fromkeys(lines[begin:][:4])) or "it said nothing"
    if _NO_IMAGE in text:
        return f"{summary}; name a node image that is there or can be pulled (--node-image)"
    if _NO_ENGINE.search(text):
        return f"{summary}; kind needs a running container engine (docker, podman or nerdctl)"
    return summary


_ENGINES = ("docker", "podman", "nerdctl")
"""In the order in which kind looks for them; ``KIND_EXPERIMENTAL_PROVIDER`` says which at once."""

_SECONDS = 60.0
_MOST_BYTES = 16 << 20
_PRINT_SPECS = (
    'for folder in etc/cdi var/run/cdi; do [ ! -d $folder ] || set -- "$@" $folder; done;'
    ' [ $# = 0 ] || exec tar -c -f - --ignore-failed-read --warning=none -- "$@"'
)
"""Run in a node: a tar of the CDI specs. A driver's file may vanish meanwhile."""


def engine_of(node: str) -> str:
    """Return the container engine that has a container of that name; "" where none says so."""
    chosen = os.environ.get("KIND_EXPERIMENTAL_PROVIDER")
    for engine in (chosen,) if chosen else _ENGINES:
        if shutil.which(engine) and _run([engine, "inspect", node]).returncode == 0:
            return engine
    return ""


def cdi_files(engine: str, nodes: Sequence[str]) -> Iterator[tuple[str, bytes]]:
    """Yield name and content of each file in the CDI folders of the nodes (``/etc``, ``/var/run``).

    Raises ClusterError: a node cannot be asked, or answers with something else.
    """
    for node in nodes:
        # No terminal and no login: the engine needs neither, and `docker cp` cannot see a tmpfs.
        completed = _run([engine, "exec", "-w", "/", node, "sh", "-c", _PRINT_SPECS])
        if completed.returncode != 0:
            errors = completed.stderr.decode(errors="replace").strip()[-300:]
            raise ClusterError(f"the CDI specs of node {node} cannot be read by {engine}: {errors}")
        if not completed.stdout:
            continue
        try:
            # Not compressed, as it was asked for: what a node sends takes no more memory than that.
            with tarfile.open(fileobj=io.BytesIO(completed.stdout), mode="r:") as tar:
                for entry in tar:
                    content = tar.extractfile(entry) if entry.isreg() else None
                    if content is not None and entry.size <= _MOST_BYTES:
                        yield entry.name.rpartition("/")[2], content.read()
        except tarfile.TarError as error:
            raise ClusterError(
                f"node {node} sent CDI specs that are not a tar archive: {error}"
            ) from None


def _run(command: Sequence[str]) -> subprocess.CompletedProcess[bytes]:
    try:
        return subprocess.run(
            command, stdin=subprocess.DEVNULL, capture_output=True, check=False, timeout=_SECONDS
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise ClusterError(f"`{' '.join(command)}` did not work: {error}") from None
