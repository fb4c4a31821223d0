"""Where the cluster's binaries come from: a given directory, the cache, or a build.

The cache is one directory per set of sources (versions.cache_key). It is filled by building into a
temporary directory and renaming that, under a lock: two runs do not build twice, and a killed build
leaves no half-filled cache.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from kube.base.locks import file_lock
from localkube.base import ClusterError, ClusterUsageError, Progress
from localkube.binaries.versions import (
    KUBERNETES,
    KUBERNETES_COMMANDS,
    PINNED,
    Build,
    cache_key,
    list_builds,
    minor_number,
    pinned_go_mod,
)
from localkube.data import local_cluster_modules_dir
from localkube.gocommand import COMPILE, find_compiler, find_go, make_environment
from localkube.processes.tools import describe_log

_MINUTES = 10


def make_go_mod(go: str, version: str, directory: Path, progress: Progress) -> Path:
    """Write go.mod and go.sum of a Kubernetes version that is not pinned; returns the former.

    Kubernetes' own go.mod replaces its staging modules by directories. They are released as
    modules, too (v0.34.1 with v1.34.1), so each is replaced by that, and all else stays, as in
    `ci/pin-kubernetes`. The modules are fetched, and Go compares each with the public checksum
    database where the user has not turned that off.

    Args:
        version: for example "v1.34.0".
        progress: told what is not pinned and who vouches for it.

    Raises ClusterUsageError: that version is not available, or not whole; nothing was built.
    """
    with tempfile.TemporaryDirectory() as empty:  # outside of any module
        database = _go(go, version, Path(empty), "env", "GOSUMDB", "GONOSUMDB").split("\n")
        checked = (
            "without a checksum database (GOSUMDB or GONOSUMDB says so)"
            if database[0] == "off" or database[1]
            else f"checked by {database[0]}"
        )
        progress(
            f"Kubernetes {version} is not pinned here: its modules are resolved now, {checked}"
        )
        kubernetes_module = json.loads(
            _go(go, version, Path(empty), "list", "-m", "-json", f"k8s.io/kubernetes@{version}")
        )
        upstream = json.loads(
            _go(go, version, Path(empty), "mod", "edit", "-json", str(kubernetes_module["GoMod"]))
        )
    path = directory / "go.mod"
    path.write_text(_go_mod(version, upstream))
    module = local_cluster_modules_dir() / "kubernetes"
    _go(go, version, module, "mod", "tidy", f"-modfile={path}")
    return path


def _go_mod(version: str, upstream: dict[str, Any]) -> str:
    """Return the text, from Kubernetes' own go.mod; `go mod tidy` adds what follows from it."""
    needed = {requirement["Path"]: requirement["Version"] for requirement in upstream["Require"]}
    staged = [path for path, named in needed.items() if named == "v0.0.0"]
    etcd = "go.etcd.io/etcd/server/v3"
    lines = [
        "module dra-conformance.dev/local-cluster/kubernetes",
        f"go {upstream['Go']}",
        "tool (",
        *(f"k8s.io/kubernetes/cmd/{name}" for name in KUBERNETES_COMMANDS),
        ")",
        f"require {etcd} {needed[etcd]}",
        f"require (\nk8s.io/kubernetes {version} // indirect\n)",
        "replace (",
        *(f"{path} => {path} v0{version.removeprefix('v1')}" for path in staged),
        ")",
    ]
    return "\n".join(lines) + "\n"


def _go(go: str, version: str, directory: Path, *arguments: str) -> str:
    """Return what a go command prints."""
    problem = f"no answer in {_MINUTES} minutes"
    try:
        completed = subprocess.run(
            [go, *arguments],
            cwd=directory,
            env=make_environment(),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
            timeout=_MINUTES * 60,
        )
        if completed.returncode == 0:
            return completed.stdout
        messages = [line for line in completed.stderr.splitlines() if "go: downloading" not in line]
        problem = "\n".join(f"  {line.strip()}" for line in messages[-4:])
    except subprocess.TimeoutExpired:
        pass
    minor = f"1.{minor_number(version)}"
    instead = f"--kubernetes {minor} is {PINNED[minor]}; " if minor in PINNED else ""
    raise ClusterUsageError(
        f"Kubernetes {version} is not available as Go modules, and nothing was built. go "
        f"{' '.join(arguments[:2])} says:\n{problem}\n{instead}`go list -m -versions "
        "k8s.io/kubernetes` lists what the module proxy offers"
    )


_REPORT_SECONDS = 15.0


def resolve_binaries(
    given: Path | None,
    cache: Path,
    needed: Iterable[str],
    progress: Progress,
    version: str = KUBERNETES,
) -> Path:
    """Directory with at least the `needed` binaries.

    Args:
        given: that directory, whatever version they are of; None: the cache, built when empty.
        version: of Kubernetes, for example "v1.37.1".

    Raises:
        ClusterUsageError: the given directory lacks some, that version is not available, or Go or a
            C compiler is needed and not installed.
        ClusterError: a build failed; the message names its log.
    """
    if given is not None:
        missing = missing_binaries(given, needed)
        if missing:
            raise ClusterUsageError(
                f"{given.absolute()} lacks these executables of a local cluster: "
                f"{', '.join(missing)}. Put them there, or leave the directory out to have all "
                "of them built"
            )
        return given.absolute()
    modules = local_cluster_modules_dir()
    directory = cache / cache_key(modules, version)
    if not missing_binaries(directory, needed):
        return directory
    waiting = partial(progress, "waiting for another run that builds the cluster's binaries")
    with file_lock(directory.with_name(f"{directory.name}.lock"), waiting):
        if missing_binaries(directory, needed):  # another run may have built them meanwhile
            _build_all(modules, version, directory, progress)
    return directory


def missing_binaries(directory: Path, needed: Iterable[str]) -> list[str]:
    """Return names of those that are not there or not executable."""
    return [
        name
        for name in needed
        if not ((directory / name).is_file() and os.access(directory / name, os.X_OK))
    ]


def _build_all(modules: Path, version: str, directory: Path, progress: Progress) -> None:
    go = _builders()
    log = directory.with_name(directory.name + ".log")
    prefix = f".building-{directory.name}-"
    for stale in directory.parent.glob(f"{prefix}*"):  # of a killed build: we hold its lock
        shutil.rmtree(stale)
    with tempfile.TemporaryDirectory(dir=directory.parent, prefix=prefix) as temporary:
        output = Path(temporary) / "bin"
        output.mkdir()
        go_mod = pinned_go_mod(modules, version) or make_go_mod(go, version, output, progress)
        progress(
            f"building the cluster's binaries into {directory} (once; about 8 minutes and 7 GB of "
            f"Go caches on two cores; log: {log})"
        )
        log.write_text("")
        for build in list_builds(version):
            if build.module == "kubernetes":
                build = replace(build, flags=(f"-modfile={go_mod}", *build.flags))
            run_build(go, modules, build, output, log, progress)
        if directory.exists():  # incomplete, for example after somebody removed files by hand
            shutil.rmtree(directory)
        output.rename(directory)
    progress(f"binaries are in {directory}")


def _builders() -> str:
    """Return the go command, when it and a C compiler are there."""
    try:
        find_compiler()
        return find_go()
    except ClusterUsageError as error:
        raise ClusterUsageError(
            f"the local cluster's binaries are not built yet, and to build them this machine lacks "
            f"{error}. Or name a directory that has them (--binaries DIR)"
        ) from None


def run_build(
    go: str, modules: Path, build: Build, output: Path, log: Path, progress: Progress
) -> None:
    """Run one `go build` into the directory `output`; `log` gets what it says.

    Raises ClusterError: it failed; the message has the end of the log.
    """
    started = reported = time.monotonic()
    progress(f"building {build.title}")
    packages = list(build.binaries.values())
    # A single binary is named by us (its package's last element is no good name), several are
    # named by their packages.
    target = output if len(packages) > 1 else output / next(iter(build.binaries))
    command = [go, "build", "-v", "-o", str(target), *COMPILE, *build.flags, *packages]
    variables = make_environment()
    if build.cgo:
        variables |= {"CGO_ENABLED": "1", "CC": " ".join(find_compiler())}
    compiled = 0
    with (
        log.open("a") as log_file,
        subprocess.Popen(
            command,
            cwd=modules / build.module,
            env=variables,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        ) as process,
    ):
        assert process.stderr is not None
        try:
            for line in process.stderr:
                log_file.write(line)
                log_file.flush()
                compiled += 1
                now = time.monotonic()
                if now - reported >= _REPORT_SECONDS:
                    reported = now
                    progress(
                        f"building {build.title}: {compiled} packages, {now - started:.0f} s so far"
                    )
        except BaseException:
            process.terminate()
            raise
    if process.returncode != 0:
        raise ClusterError(f"building {build.title} failed {describe_log(log)}")
