"""What makes up a local cluster, and how each binary is built: data, nothing else.

The versions are pinned by the go.mod files under ci/local-cluster. Kubernetes' is repeated here,
because the link step must stamp it into its binaries (a plain `go build` reports v0.0.0, and
clients and feature emulation then go wrong). A test compares the two.
"""

from __future__ import annotations

import hashlib
import platform
from dataclasses import dataclass
from pathlib import Path

KUBERNETES = "v1.37.1"


@dataclass(frozen=True)
class Build:
    """One `go build`.

    Attributes:
        title: what the progress line calls it.
        module: directory with go.mod, under the directory of Go modules.
        binaries: output file name -> Go package.
        flags: further arguments for `go build`, beside COMPILE.
        cgo: whether it has C in it.
    """

    title: str
    module: str
    binaries: dict[str, str]
    flags: tuple[str, ...]
    cgo: bool = False


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


_KUBERNETES_COMMANDS = ("kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubelet")
_CONTAINERD_COMMANDS = ("containerd", "containerd-shim-runc-v2", "ctr")

COMPILE = ("-gcflags=all=-dwarf=false -l",)
"""Neither debug information nor inlining: a quarter less work for the build, and what is built is
as correct. `ci/test` gives the same to its other builds, so that packages compile once."""

_PLUGINS = {
    "bridge": "main/bridge",
    "host-local": "ipam/host-local",
    "loopback": "main/loopback",
}

RUNTIME = "runc-without-seccomp"
"""What containerd calls to run a container (see the program's own comment)."""

POD_SHELL = "pod-shell"
"""The one program of the pods' image."""

BUILDS = (
    Build(
        title=f"Kubernetes {KUBERNETES} and etcd",
        module="kubernetes",
        binaries={
            "etcd": "./etcd",
            **{name: f"k8s.io/kubernetes/cmd/{name}" for name in _KUBERNETES_COMMANDS},
        },
        flags=("-ldflags", _kubernetes_ldflags()),
    ),
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

CONTROL_PLANE_BINARIES = ("etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler")
NODE_BINARIES = ("kubelet", *_CONTAINERD_COMMANDS, *_PLUGINS, "runc", RUNTIME, POD_SHELL)


def cache_key(modules: Path) -> str:
    """Name of the cache directory for binaries built from `modules` (the Go modules' directory).

    It changes with every file there, every build flag and the machine's architecture, so a cached
    binary is never one of other sources.

    Raises:
        OSError: a file cannot be read.
    """
    digest = hashlib.sha256()
    for path in sorted(path for path in modules.rglob("*") if path.is_file()):
        digest.update(path.relative_to(modules).as_posix().encode() + b"\0" + path.read_bytes())
    for build in BUILDS:
        digest.update(
            repr((sorted(build.binaries.items()), COMPILE, build.flags, build.cgo)).encode()
        )
    machine = platform.machine()
    digest.update(machine.encode())
    return f"kubernetes-{KUBERNETES}-{machine}-{digest.hexdigest()[:12]}"
