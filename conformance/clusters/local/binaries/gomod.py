"""The go.mod with which a version of Kubernetes is built that is not pinned here.

Kubernetes is not meant to be required as a module: its go.mod names its staging modules at v0.0.0
and replaces them by directories of its repository. They are released as modules too, v0.34.1 with
v1.34.1, so a go.mod of ours replaces each with that. All else is as in Kubernetes' own go.mod, etcd
included. `ci/pin-kubernetes` makes those that are pinned in the same way.
"""

from __future__ import annotations

import json
import subprocess
import tempfile
from pathlib import Path
from typing import Any

from conformance.clusters.base import ClusterUsageError, Progress
from conformance.clusters.gocommand import environment
from conformance.clusters.local.binaries.versions import KUBERNETES_COMMANDS, PINNED, minor_number
from conformance.data import local_cluster_modules_dir

_MINUTES = 10


def make_go_mod(go: str, version: str, directory: Path, progress: Progress) -> Path:
    """Write go.mod and go.sum of a Kubernetes version into a directory; returns the former.

    The modules are fetched, and Go compares each with the public checksum database where the user
    has not turned that off.

    Args:
        go: the go command.
        version: for example "v1.34.0".
        directory: an existing one.
        progress: told what is not pinned and who vouches for it.

    Raises:
        ClusterUsageError: that version cannot be had, or not whole; nothing was built.
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
        found = json.loads(
            _go(go, version, Path(empty), "list", "-m", "-json", f"k8s.io/kubernetes@{version}")
        )
        upstream = json.loads(
            _go(go, version, Path(empty), "mod", "edit", "-json", str(found["GoMod"]))
        )
    path = directory / "go.mod"
    path.write_text(_go_mod(version, upstream))
    module = local_cluster_modules_dir() / "kubernetes"
    _go(go, version, module, "mod", "tidy", f"-modfile={path}")
    return path


def _go_mod(version: str, upstream: dict[str, Any]) -> str:
    """The text, from what Kubernetes' own says; `go mod tidy` adds what it follows from that."""
    needed = {one["Path"]: one["Version"] for one in upstream["Require"]}
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
    """What a go command prints."""
    problem = f"no answer in {_MINUTES} minutes"
    try:
        done = subprocess.run(
            [go, *arguments],
            cwd=directory,
            env=environment(),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
            timeout=_MINUTES * 60,
        )
        if done.returncode == 0:
            return done.stdout
        said = [line for line in done.stderr.splitlines() if "go: downloading" not in line]
        problem = "\n".join(f"  {line.strip()}" for line in said[-4:])
    except subprocess.TimeoutExpired:
        pass
    minor = f"1.{minor_number(version)}"
    instead = f"--kubernetes {minor} is {PINNED[minor]}; " if minor in PINNED else ""
    raise ClusterUsageError(
        f"Kubernetes {version} is not available as Go modules, and nothing was built. go "
        f"{' '.join(arguments[:2])} says:\n{problem}\n{instead}`go list -m -versions "
        "k8s.io/kubernetes` lists what the module proxy offers"
    )
