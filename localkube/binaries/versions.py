"""What makes up a local cluster, and how each binary is built: data, nothing else.

The versions are pinned by the go.mod files under ci/local-cluster. Kubernetes' are repeated here,
because the link step must stamp them into its binaries (a plain `go build` reports v0.0.0, and
clients and feature emulation then go wrong). A test compares the two.
"""

from __future__ import annotations

import hashlib
import platform
import re
from dataclasses import dataclass
from pathlib import Path

from localkube.gocommand import COMPILE

PINNED = {"1.34": "v1.34.4", "1.35": "v1.35.4", "1.36": "v1.36.3", "1.37": "v1.37.2"}
"""Minor -> the patch that is built where no patch is asked for: the latest that the public Go
module proxy offered when it was pinned (`ci/pin-kubernetes`)."""

PRERELEASES = {"1.38": "v1.38.0-beta.0"}
"""Minor -> the pre-release whose rules are known. No cluster of it is built where no patch is asked
for: it needs Go 1.27 and modules that the public proxy did not offer (November 2026)."""

KUBERNETES = PINNED["1.37"]
"""What a local cluster is where nothing else is asked for. Its go.mod is the module's own; those of
the others are below `minors/` in it."""


@dataclass(frozen=True)
class Build:
    """One `go build`.

    Attributes:
        module: directory with go.mod, under the directory of Go modules.
        binaries: output file name -> Go package.
        flags: further arguments for `go build`, beside `gocommand.COMPILE`.
    """

    title: str
    module: str
    binaries: dict[str, str]
    flags: tuple[str, ...]
    cgo: bool = False


def full_version(text: str) -> str:
    """Return the version of "1.34" (its pinned patch), "1.34.0" or "v1.34.0": "v1.34.0".

    Raises ValueError: the text is neither, or no version of that minor is known.
    """
    matched = re.fullmatch(r"v?(1\.\d{1,3})(\.\d{1,3}(?:-(?:alpha|beta|rc)\.\d{1,3})?)?", text)
    if matched is None:
        raise ValueError(f"{text!r} is not a Kubernetes version; write for example 1.34 or 1.34.0")
    minor, patch = matched.groups()
    if patch is not None:
        return f"v{minor}{patch}"
    known_versions = {**PINNED, **PRERELEASES}
    if minor not in known_versions:
        raise ValueError(f"Kubernetes {minor} is not known; known are {', '.join(known_versions)}")
    return known_versions[minor]


def minor_number(version: str) -> int:
    """34 for "v1.34.4"; 0 for what is no Kubernetes 1."""
    matched = re.match(r"v1\.(\d+)", version)
    return int(matched[1]) if matched else 0


def _kubernetes_ldflags(version: str) -> str:
    major, minor = version.removeprefix("v").split(".")[:2]
    package = "k8s.io/component-base/version"
    stamps = {"gitVersion": version, "gitMajor": major, "gitMinor": minor, "gitTreeState": "clean"}
    return "-s -w " + " ".join(f"-X {package}.{name}={value}" for name, value in stamps.items())


KUBERNETES_COMMANDS = ("kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubelet")
_CONTAINERD_COMMANDS = ("containerd", "containerd-shim-runc-v2", "ctr")

_PLUGINS = {"bridge": "main/bridge", "host-local": "ipam/host-local", "loopback": "main/loopback"}

RUNTIME = "runc-without-seccomp"
"""What containerd calls to run a container (see the program's own comment)."""

POD_SHELL = "pod-shell"  # The one program of the pods' image.

_NODE_BUILDS = (
    Build(
        title="containerd and the CNI plugins",
        module="node",
        binaries={
            **{
                name: f"github.com/containerd/containerd/v2/cmd/{name}"
                for name in _CONTAINERD_COMMANDS
            },
            **{
                name: f"github.com/containernetworking/plugins/plugins/{place}"
                for name, place in _PLUGINS.items()
            },
            RUNTIME: f"./{RUNTIME}",
            POD_SHELL: f"./{POD_SHELL}",
        },
        # These snapshotters need C libraries or devices that nobody has here.
        flags=("-tags", "no_btrfs no_zfs no_devmapper", "-ldflags", "-s -w"),
    ),
    Build(
        title="runc",
        module="node",
        binaries={"runc": "github.com/opencontainers/runc"},
        flags=("-ldflags", "-s -w"),
        cgo=True,
    ),
)


def list_builds(version: str) -> tuple[Build, ...]:
    """Return what is built for a cluster of a Kubernetes version ("v1.37.1")."""
    kubernetes = Build(
        title=f"Kubernetes {version} and etcd",
        module="kubernetes",
        binaries={
            "etcd": "./etcd",
            **{name: f"k8s.io/kubernetes/cmd/{name}" for name in KUBERNETES_COMMANDS},
        },
        flags=("-ldflags", _kubernetes_ldflags(version)),
    )
    return (kubernetes, *_NODE_BUILDS)


CONTROL_PLANE_BINARIES = ("etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler")
NODE_BINARIES = ("kubelet", *_CONTAINERD_COMMANDS, *_PLUGINS, "runc", RUNTIME, POD_SHELL)


def cache_key(modules: Path, version: str = KUBERNETES) -> str:
    """Return the cache directory's name for binaries built from `modules`, the Go modules.

    It changes with every file there that is not another minor's, every build flag and the machine's
    architecture, so a cached binary is never one of other sources. The modules of a version that is
    not pinned here are named by the version; Go's checksum database says that they are always the
    same.
    Raises OSError: a file cannot be read.
    """
    minors = modules / "kubernetes" / "minors"
    pinned = pinned_go_mod(modules, version)
    digest = hashlib.sha256()
    for path in sorted(path for path in modules.rglob("*") if path.is_file()):
        if minors not in path.parents or (pinned is not None and path.parent == pinned.parent):
            name = path.relative_to(modules).as_posix()
            digest.update(name.encode() + b"\0" + path.read_bytes())
    for build in list_builds(version):
        digest.update(
            repr((sorted(build.binaries.items()), COMPILE, build.flags, build.cgo)).encode()
        )
    machine = platform.machine()
    digest.update(machine.encode())
    return f"kubernetes-{version}-{machine}-{digest.hexdigest()[:12]}"


def pinned_go_mod(modules: Path, version: str) -> Path | None:
    """Return the go.mod of a version that is pinned; None where it has to be made."""
    module = modules / "kubernetes"
    if version == KUBERNETES:
        return module / "go.mod"
    minor = version.removeprefix("v").rpartition(".")[0]
    return module / "minors" / minor / "go.mod" if PINNED.get(minor) == version else None
