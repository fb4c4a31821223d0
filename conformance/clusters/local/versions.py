"""Which versions make up a local cluster, and how each binary is built: data, nothing else.

The versions are pinned by the go.mod files under ci/local-cluster; they are repeated here because
the link step must stamp Kubernetes' version into its binaries (a plain `go build` reports v0.0.0,
and clients and feature emulation then go wrong). A test compares the two.
"""

from __future__ import annotations

import hashlib
import platform
from dataclasses import dataclass
from pathlib import Path

KUBERNETES = "v1.37.1"
ETCD = "v3.7.2"
CONTAINERD = "v2.4.1"


@dataclass(frozen=True)
class Build:
    """One `go build`.

    Attributes:
        title: what the progress line calls it.
        module: directory with go.mod, under the directory of Go modules.
        binaries: output file name -> Go package.
        flags: further arguments for `go build`.
    """

    title: str
    module: str
    binaries: dict[str, str]
    flags: tuple[str, ...]


def _kubernetes_ldflags() -> str:
    major, minor = KUBERNETES.removeprefix("v").split(".")[:2]
    package = "k8s.io/component-base/version"
    stamps = {
        "gitVersion": KUBERNETES,
        "gitMajor": major,
        "gitMinor": minor,
        "gitTreeState": "clean",
    }
    return "-s -w " + " ".join(f"-X {package}.{name}={value}" for name, value in stamps.items())


_KUBERNETES_COMMANDS = (
    "kube-apiserver",
    "kube-controller-manager",
    "kube-scheduler",
    "kubelet",
)
_CONTAINERD_COMMANDS = ("containerd", "containerd-shim-runc-v2", "ctr")

BUILDS = (
    Build(
        title=f"etcd {ETCD}",
        module="etcd",
        binaries={"etcd": "go.etcd.io/etcd/server/v3"},
        flags=("-ldflags", "-s -w"),
    ),
    Build(
        title=f"Kubernetes {KUBERNETES}",
        module="kubernetes",
        binaries={name: f"k8s.io/kubernetes/cmd/{name}" for name in _KUBERNETES_COMMANDS},
        flags=("-ldflags", _kubernetes_ldflags()),
    ),
    Build(
        title=f"containerd {CONTAINERD}",
        module="containerd",
        binaries={
            name: f"github.com/containerd/containerd/v2/cmd/{name}" for name in _CONTAINERD_COMMANDS
        },
        # These snapshotters need C libraries or devices that nobody has here.
        flags=("-tags", "no_btrfs no_zfs no_devmapper", "-ldflags", "-s -w"),
    ),
)

CONTROL_PLANE_BINARIES = ("etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler")
NODE_BINARIES = ("kubelet", *_CONTAINERD_COMMANDS)


def cache_key(modules: Path) -> str:
    """Name of the cache directory for binaries built from `modules` (the Go modules' directory).

    It changes with every go.mod and go.sum, every build flag and the machine's architecture, so a
    cached binary is never one of other sources.

    Raises:
        OSError: a go.mod or go.sum cannot be read.
    """
    digest = hashlib.sha256()
    for build in BUILDS:
        for name in ("go.mod", "go.sum"):
            digest.update((modules / build.module / name).read_bytes())
        digest.update(repr((sorted(build.binaries.items()), build.flags)).encode())
    machine = platform.machine()
    digest.update(machine.encode())
    return f"kubernetes-{KUBERNETES}-{machine}-{digest.hexdigest()[:12]}"
