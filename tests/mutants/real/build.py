"""Building the mutant scheduler: once for each set of changes, then it is in the cache.

python -m tests.mutants.real.build
"""

from __future__ import annotations

import hashlib
import sys
import tempfile
from functools import partial
from pathlib import Path

from kube.base.folders import cache_folder
from kube.base.locks import file_lock
from localkube.base import ClusterError, ClusterUsageError, Progress, silent
from localkube.binaries.build import run_build
from localkube.binaries.versions import KUBERNETES, Build, cache_key, list_builds
from localkube.data import local_cluster_modules_dir
from localkube.gocommand import find_go
from tests.mutants.real import sources
from tests.mutants.real.change import LostAnchorError, Wrong
from tests.mutants.real.wrong import ALL


def mutant_scheduler(progress: Progress = silent, wrongs: tuple[Wrong, ...] = ALL) -> Path:
    """The program, built if need be (a minute where Go's cache has the cluster's binaries).

    Raises:
        ClusterUsageError: there is no Go.
        ClusterError: the build failed; the message names its log.
        LostAnchorError: Kubernetes has changed where a mutant wants to.
    """
    cache = cache_folder() / "mutants"
    modules = local_cluster_modules_dir()
    program = cache / _key(modules, wrongs) / "kube-scheduler"
    waiting = partial(progress, "waiting for another run that builds the mutant scheduler")
    with file_lock(cache / ".lock", waiting):
        if not program.is_file():
            _build(modules, program, wrongs, progress)
    return program


def _build(modules: Path, program: Path, wrongs: tuple[Wrong, ...], progress: Progress) -> None:
    go = find_go()
    # Always the same place: Go takes it for a part of what a package is compiled from.
    gomod = sources.write(go, modules, program.parent.parent / "source", wrongs)
    [ordinary] = [build for build in list_builds(KUBERNETES) if program.name in build.binaries]
    build = Build(
        title="the mutant scheduler",
        module=ordinary.module,
        binaries={program.name: sources.PACKAGE},
        flags=(*ordinary.flags, f"-modfile={gomod}"),
    )
    program.parent.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(dir=program.parent) as temporary:
        run_build(go, modules, build, Path(temporary), program.with_name("build.log"), progress)
        (Path(temporary) / program.name).rename(program)


def _key(modules: Path, wrongs: tuple[Wrong, ...]) -> str:
    here = Path(__file__)
    changes = [(wrong.name, wrong.changes) for wrong in wrongs]
    digest = hashlib.sha256(f"{cache_key(modules)}{changes!r}".encode())
    for file in ("mutant.go.txt", "change.py", "sources.py", here.name):
        digest.update(here.with_name(file).read_bytes())
    return digest.hexdigest()[:12]


if __name__ == "__main__":
    try:
        print(mutant_scheduler(partial(print, file=sys.stderr)))
    except (ClusterError, ClusterUsageError, LostAnchorError) as error:
        sys.exit(str(error))
