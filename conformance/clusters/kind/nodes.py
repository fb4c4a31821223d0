"""What the nodes of a kind cluster hold, by the container engine that they are containers of."""

from __future__ import annotations

import io
import os
import shutil
import subprocess
import tarfile
from collections.abc import Iterator, Sequence

from conformance.clusters.base import ClusterError

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
    """The container engine that has a container of that name; "" where none says so."""
    chosen = os.environ.get("KIND_EXPERIMENTAL_PROVIDER")
    for engine in (chosen,) if chosen else _ENGINES:
        if shutil.which(engine) and _run([engine, "inspect", node]).returncode == 0:
            return engine
    return ""


def cdi_files(engine: str, nodes: Sequence[str]) -> Iterator[tuple[str, bytes]]:
    """Name and content of each file in the CDI folders of the nodes (``/etc``, ``/var/run``).

    Raises:
        ClusterError: a node cannot be asked, or answers with something else.
    """
    for node in nodes:
        # No terminal and no login: the engine needs neither, and `docker cp` cannot see a tmpfs.
        done = _run([engine, "exec", "-w", "/", node, "sh", "-c", _PRINT_SPECS])
        if done.returncode != 0:
            said = done.stderr.decode(errors="replace").strip()[-300:]
            raise ClusterError(f"the CDI specs of node {node} cannot be read by {engine}: {said}")
        if not done.stdout:
            continue
        try:
            with tarfile.open(fileobj=io.BytesIO(done.stdout)) as tar:
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
