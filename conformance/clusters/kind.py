"""A kind cluster of the suite's own: created from a config under ci/kind/, used, deleted.

Three rules keep it away from what is not ours. Its name has our prefix; it has a kubeconfig file of
its own, so ``~/.kube/config`` is never touched; and a record beside that file says that we made it,
without which nothing is deleted.
"""

from __future__ import annotations

import contextlib
import json
import re
import shutil
import subprocess
import time
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

from conformance import data
from conformance.clusters.base import (
    DEFAULT_IMAGE,
    ClusterAccess,
    ClusterError,
    ClusterUsageError,
    Progress,
    is_ready,
    silent,
)
from conformance.clusters.kubeconfig import KubeconfigCluster
from conformance.data import cache_folder, state_folder
from conformance.errors import TargetError
from conformance.kubeapi.connection import Connection
from conformance.kubeapi.errors import ApiError

PREFIX = "dra-conformance-"
MODULE = "sigs.k8s.io/kind"

_NAME = re.compile(r"[a-z0-9]([a-z0-9-]{0,28}[a-z0-9])?")
_CREATE_SECONDS = 900.0  # the node image may have to be pulled
_OTHER_SECONDS = 300.0
_READY_SECONDS = 180


class KindCluster:
    """One kind cluster, found again by its name.

    Args:
        name: short name; the cluster is called ``dra-conformance-NAME``.
        config: kind config; None is ``ci/kind/cluster.yaml``.
        command: the kind command; None looks for one with `kind_command` when it is needed.
        node_image: kind node image, which is what decides the Kubernetes version; None is kind's.
        images: archives to load into every node (``docker save`` or OCI layout tar files).
        image: image that scenario pods run, in one of the archives or to be pulled.
        state_dir: where kubeconfig, record and log are kept; None is below ``XDG_STATE_HOME``.

    Raises:
        ClusterUsageError: the name cannot be that of a cluster.
    """

    def __init__(
        self,
        name: str = "default",
        *,
        config: Path | None = None,
        command: Sequence[str] | None = None,
        node_image: str | None = None,
        images: Sequence[Path] = (),
        image: str = DEFAULT_IMAGE,
        state_dir: Path | None = None,
    ) -> None:
        if not _NAME.fullmatch(name):
            raise ClusterUsageError(
                f"{name!r} cannot name a kind cluster: use up to 30 lower case letters, digits "
                "and dashes"
            )
        self.name = PREFIX + name
        self.context = f"kind-{self.name}"
        self._config = config or data.kind_dir() / "cluster.yaml"
        self._command = tuple(command) if command else ()
        self._node_image = node_image
        self._images = tuple(images)
        self._image = image
        self._dir = state_dir or state_folder() / "kind" / name
        self.kubeconfig = self._dir / "kubeconfig"
        self._record = self._dir / "created.json"
        self._log = self._dir / "kind.log"

    def up(self, progress: Progress = silent) -> ClusterAccess:
        """Create the cluster, or take the one that an earlier `up` created, and load the images.

        Raises:
            ClusterUsageError: a file is missing, or a cluster of that name exists that is not ours.
            ClusterError: kind failed, or the nodes did not become ready; what this
                call made is deleted.
        """
        for path in (self._config, *self._images):
            if not path.is_file():
                raise ClusterUsageError(f"{path}: no such file")
        kind = self._kind(progress)
        there = self.exists(progress)
        if there:
            progress(f"using kind cluster {self.name}, created before")
        else:
            self._create(kind, progress)
        try:
            for path in self._images:
                progress(f"loading {path.name} into the nodes")
                self._run(kind, "load", "image-archive", str(path), "--name", self.name)
            nodes = self._run(kind, "get", "nodes", "--name", self.name).split()
            progress(f"waiting for {len(nodes)} nodes to be ready")
            self._await_nodes([node for node in nodes if not node.endswith("load-balancer")])
            return KubeconfigCluster(self.kubeconfig, self.context, image=self._image).up(progress)
        except BaseException:
            if not there:
                with contextlib.suppress(ClusterError):
                    self.down(progress)
            raise

    def exists(self, progress: Progress = silent) -> bool:
        """Whether the cluster is there and was created by this class, in this process or another.

        Raises:
            ClusterUsageError: there is neither kind nor Go to build it.
            ClusterError: kind failed.
        """
        if not self._record.exists():
            return False
        return self.name in self._run(self._kind(progress), "get", "clusters").split()

    def down(self, progress: Progress = silent) -> None:
        """Delete the cluster if this class created it; anything else is left alone.

        Raises:
            ClusterError: it could not be deleted; its record stays, so that it can be tried again.
        """
        if not self._record.exists():
            return
        kind = self._kind(progress)
        progress(f"deleting kind cluster {self.name}")
        self._run(
            kind, "delete", "cluster", "--name", self.name, "--kubeconfig", str(self.kubeconfig)
        )
        shutil.rmtree(self._dir)

    def _kind(self, progress: Progress) -> tuple[str, ...]:
        if not self._command:
            self._command = kind_command(progress)
        return self._command

    def _create(self, kind: Sequence[str], progress: Progress) -> None:
        self._dir.mkdir(parents=True, exist_ok=True)
        self.kubeconfig.unlink(missing_ok=True)
        command = ["create", "cluster", "--name", self.name, "--config", str(self._config)]
        command += ["--kubeconfig", str(self.kubeconfig), "--wait", f"{_READY_SECONDS}s"]
        if self._node_image:
            command += ["--image", self._node_image]
        progress(f"creating kind cluster {self.name} from {self._config} (log: {self._log})")
        another = self._record.exists()  # a program that is creating it now, or a stale record
        self._record.write_text(json.dumps({"name": self.name, "config": str(self._config)}))
        try:
            self._run(kind, *command, seconds=_CREATE_SECONDS)
        except BaseException as error:
            if "already exist for a cluster" in str(error):
                if not another:
                    self._record.unlink()
                raise ClusterUsageError(
                    f"a kind cluster {self.name} exists that was not created here, so it is left "
                    f"alone: choose another name, or delete it yourself with `kind delete cluster "
                    f"--name {self.name}`"
                ) from None
            # kind deletes what it began itself; this is for a kind that was interrupted.
            with contextlib.suppress(ClusterError):
                self._run(kind, "delete", "cluster", "--name", self.name)
            self._record.unlink()
            raise

    def _await_nodes(self, names: Sequence[str]) -> None:
        """Return when all nodes are ready: ``--wait`` looks at the control plane only."""
        connection = Connection.open(self.kubeconfig, self.context)
        missing = set(names)
        deadline = time.monotonic() + _READY_SECONDS
        query = {"watch": "true", "timeoutSeconds": str(_READY_SECONDS)}
        try:
            while missing and time.monotonic() < deadline:
                with closing(iter(connection.stream("/api/v1/nodes", query))) as events:
                    for event in events:
                        if is_ready(event["object"]):
                            missing.discard(event["object"]["metadata"]["name"])
                        if not missing:
                            return
        except (ApiError, TargetError, KeyError, TypeError, AttributeError) as error:
            raise ClusterError(
                f"kind cluster {self.name} came up, but its nodes cannot be watched: {error}"
            ) from None
        finally:
            connection.close()
        if missing:
            raise ClusterError(
                f"kind cluster {self.name}: not ready after {_READY_SECONDS} s: "
                f"{', '.join(sorted(missing))}; see `kind export logs --name {self.name}`"
            )

    def _run(self, kind: Sequence[str], *arguments: str, seconds: float = _OTHER_SECONDS) -> str:
        """Run kind; its standard output.

        Raises:
            ClusterError: it is missing, failed, or took too long.
        """
        command = [*kind, *arguments]
        try:
            done = subprocess.run(
                command,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                timeout=seconds,
                check=False,
            )
        except OSError as error:
            raise ClusterError(f"{command[0]} cannot be run: {error.strerror}") from None
        except subprocess.TimeoutExpired:
            raise ClusterError(f"`{' '.join(command)}` took longer than {seconds:g} s") from None
        if self._dir.is_dir():
            with self._log.open("a", encoding="utf-8") as log:
                log.write(f"$ {' '.join(command)}\n{done.stdout}{done.stderr}")
        if done.returncode != 0:
            raise ClusterError(f"`{' '.join(command)}` failed: {_said(done.stderr)}")
        return done.stdout


def kind_command(progress: Progress = silent) -> tuple[str, ...]:
    """The kind command: the one on the PATH, else built once from the pinned Go module.

    Raises:
        ClusterUsageError: there is neither kind nor Go.
        ClusterError: it cannot be built.
    """
    found = shutil.which("kind")
    if found:
        return (found,)
    module = data.kind_dir() / "command"
    version = re.search(rf"{re.escape(MODULE)} (v\S+)", (module / "go.mod").read_text())
    target = cache_folder() / "bin" / f"kind-{version[1] if version else 'x'}"
    if target.exists():
        return (str(target),)
    if not shutil.which("go"):
        raise ClusterUsageError(
            "there is no kind command on the PATH and no go command to build it: install kind "
            "(https://kind.sigs.k8s.io) or Go"
        )
    progress(f"building {target.name} (once)")
    target.parent.mkdir(parents=True, exist_ok=True)
    done = subprocess.run(
        ["go", "build", "-C", str(module), "-trimpath", "-o", str(target), MODULE],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        raise ClusterError(f"kind cannot be built from {module}: {_said(done.stderr)}")
    return (str(target),)


def _said(text: str) -> str:
    """The gist of a command's error output, in a few lines."""
    lines = [line.strip()[:300] for line in text.splitlines() if line.strip()]
    lines = [line for line in lines if not line.startswith("Command Output: {")]
    begin = next((i for i, line in enumerate(lines) if line.startswith("ERROR")), -3)
    said = " ".join(dict.fromkeys(lines[begin:][:4])) or "it said nothing"
    if "daemon" in said or "docker" in said:
        said += "; kind needs a running container engine (docker, podman or nerdctl)"
    return said
