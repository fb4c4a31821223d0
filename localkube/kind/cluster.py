"""A kind cluster of the suite's own: created from a config under ci/kind/, used, deleted.

Three rules keep it away from what is not ours. Its name has our prefix; it has a kubeconfig file of
its own, so ``~/.kube/config`` is never touched; and a record beside that file says that we made it,
without which nothing is deleted. The record counts for the cluster that was made, told by its
certificate authority, not for a later one of that name.
"""

from __future__ import annotations

import contextlib
import json
import re
import shutil
import time
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import yaml

from kube.base.errors import TargetError
from kube.base.folders import state_folder
from kube.base.locks import file_lock
from kube.connection import Connection
from kube.errors import ApiError
from kube.nodes import is_ready
from localkube import data
from localkube.base import (
    DEFAULT_IMAGE,
    ClusterAccess,
    ClusterError,
    ClusterUsageError,
    Progress,
    silent,
)
from localkube.kind.command import kind_command, run_kind, summarize_errors
from localkube.kubeconfig import KubeconfigCluster

PREFIX = "dra-conformance-"

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

    ``created``: whether `up` of this object made the cluster, and nobody else's is used.
    Raises ClusterUsageError: the name cannot be that of a cluster.
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
        self._short = name
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
        self.created = False

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
        waiting = f"waiting for another run that creates kind cluster {self.name}"
        with file_lock(self._dir.with_name(f".{self._dir.name}.lock"), lambda: progress(waiting)):
            if self.exists(progress):
                self._check_made()
                progress(f"using kind cluster {self.name}, created before")
            else:
                self._create(kind, progress)
                self.created = True
        try:
            for path in self._images:
                progress(f"loading {path.name} into the nodes")
                self._run(kind, "load", "image-archive", str(path), "--name", self.name)
            nodes = self.nodes(progress)
            progress(f"waiting for {len(nodes)} nodes to be ready")
            self._await_nodes(nodes)
            return KubeconfigCluster(self.kubeconfig, self.context, image=self._image).up(progress)
        except BaseException:
            if self.created:
                with contextlib.suppress(ClusterError):
                    self.down(progress)
            raise

    def exists(self, progress: Progress = silent) -> bool:
        """Return whether the cluster is there and this class created it, in whichever process.

        Raises:
            ClusterUsageError: there is neither kind nor Go to build it.
            ClusterError: kind failed.
        """
        if not self._record.exists():
            return False
        kind = self._kind(progress)
        if self.name not in self._run(kind, "get", "clusters").split():
            return False
        ours = _authority(self.kubeconfig.read_text()) if self.kubeconfig.exists() else ""
        # One that is being created has none yet.
        return not ours or ours == _authority(
            self._run(kind, "get", "kubeconfig", "--name", self.name)
        )

    def nodes(self, progress: Progress = silent) -> list[str]:
        """Return names of its nodes, which are their containers' names too.

        Raises:
            ClusterUsageError: there is neither kind nor Go to build it.
            ClusterError: kind failed.
        """
        names = self._run(self._kind(progress), "get", "nodes", "--name", self.name).split()
        return [name for name in names if not name.endswith("load-balancer")]

    def down(self, progress: Progress = silent) -> None:
        """Delete the cluster if this class created it; anything else is left alone.

        Raises:
            ClusterError: it could not be deleted; its record stays, so that it can be tried again.
        """
        if not self._record.exists():
            return
        kind = self._kind(progress)
        if self.exists(progress):
            progress(f"deleting kind cluster {self.name}")
            path = str(self.kubeconfig)
            self._run(kind, "delete", "cluster", "--name", self.name, "--kubeconfig", path)
        shutil.rmtree(self._dir)

    def _kind(self, progress: Progress) -> tuple[str, ...]:
        if not self._command:
            self._command = kind_command(progress)
        return self._command

    def _create(self, kind: Sequence[str], progress: Progress) -> None:
        self._dir.mkdir(parents=True, exist_ok=True)
        if self._record.exists():
            self.kubeconfig.unlink(missing_ok=True)  # of a cluster that is gone
        # Not yet in its place: the name may be taken by the cluster that the file there is for.
        new = self.kubeconfig.with_suffix(".new")
        command = ["create", "cluster", "--name", self.name, "--config", str(self._config)]
        command += ["--kubeconfig", str(new), "--wait", f"{_READY_SECONDS}s"]
        if self._node_image:
            command += ["--image", self._node_image]
        progress(f"creating kind cluster {self.name} from {self._config} (log: {self._log})")
        record = {"name": self.name, "config": str(self._config), "nodeImage": self._node_image}
        self._record.write_text(json.dumps(record))
        try:
            self._run(kind, *command, seconds=_CREATE_SECONDS)
            new.replace(self.kubeconfig)
        except BaseException as error:
            new.unlink(missing_ok=True)
            if "already exist for a cluster" in str(error):
                self._record.unlink()
                if not self.kubeconfig.exists():
                    shutil.rmtree(self._dir)
                raise ClusterUsageError(
                    f"a kind cluster {self.name} exists that was not created here, so it is left "
                    f"alone: choose another name, or delete it yourself with `kind delete cluster "
                    f"--name {self.name}`"
                ) from None
            # kind deletes what it began itself; this is for a kind that was interrupted. Where it
            # fails the record stays, for `dra-conformance cluster down`.
            with contextlib.suppress(ClusterError):
                self._run(kind, "delete", "cluster", "--name", self.name)
                self._record.unlink()
                if not isinstance(error, ClusterError):
                    shutil.rmtree(self._dir)  # a log of what nobody wanted to wait for
            raise

    def _check_made(self) -> None:
        """Refuse a cluster whose creation was killed, and another node image than it has."""
        recorded_image, problem = "", ""
        with contextlib.suppress(ValueError, AttributeError):  # cut off by a kill
            recorded_image = json.loads(self._record.read_text()).get("nodeImage")
        if not self.kubeconfig.exists():
            problem = "was not created to its end"
        elif self._node_image and self._node_image != recorded_image:
            problem = (
                f"was created with {recorded_image or 'an image that kind chose'}, not with that"
            )
        if problem:
            raise ClusterUsageError(
                f"kind cluster {self.name} {problem}: choose another --name, or delete it with "
                f"`dra-conformance cluster down --cluster kind --name {self._short}`"
            )

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
        """Run kind; its standard output. Raises ClusterError."""
        completed = run_kind([*kind, *arguments], seconds)
        command = " ".join([*kind, *arguments])
        if self._dir.is_dir() and arguments[:2] != ("get", "kubeconfig"):  # it has a key in it
            with self._log.open("a", encoding="utf-8") as log:
                log.write(f"$ {command}\n{completed.stdout}{completed.stderr}")
        if completed.returncode != 0:
            raise ClusterError(f"`{command}` failed: {summarize_errors(completed.stderr)}")
        return completed.stdout


def _authority(kubeconfig: str) -> Any:
    """Return the certificate authority of a kind kubeconfig's one cluster, which is its own."""
    try:
        return yaml.safe_load(kubeconfig)["clusters"][0]["cluster"]["certificate-authority-data"]
    except (yaml.YAMLError, LookupError, TypeError):
        return ""
