"""What every source of a cluster gives, so that the cluster target knows nothing of its origin.

`ClusterAccess` is the whole hand-over. The two exceptions are the two ways in which getting a
cluster fails: the user asked for something that cannot be (`ClusterUsageError`, exit code 2), or
the machinery broke (`ClusterError`, exit code 3). Both carry one message that says what, where and
what to do; the command line prints it and never a traceback.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from kube.base.errors import InfrastructureError, UsageError

if TYPE_CHECKING:
    from pydantic import TypeAdapter


DEFAULT_IMAGE = "registry.k8s.io/e2e-test-images/busybox:1.37.0-2"
"""Has a shell, ``env`` and ``find``; Kubernetes' own tests of 1.37 pull the same image
(``test/utils/image/manifest.go``)."""


Progress = Callable[[str], None]
"""Called with one line (no newline at its end) as each phase of a start or stop begins."""

Watch = Callable[[Callable[[str], None]], Callable[[], None]]
"""Begins to watch a cluster and returns what ends the watch. The argument is called once, with one
message (a line, then details), when a component has ended that nobody stopped."""


def silent(_line: str) -> None:
    """Show no progress."""


class ClusterError(InfrastructureError):
    """The machinery broke: exit code 3. The message says what, where and what to do."""


class ClusterUsageError(UsageError):
    """The caller asked for something that cannot be: exit code 2. The message says what to do."""


@dataclass(frozen=True)
class ClusterAccess:
    """All that a cluster target needs to use one cluster.

    Attributes:
        kubeconfig: file to connect with; several are joined by ":", as in ``$KUBECONFIG``.
        context: the context in that file; named always, never "the current one".
        kubernetes_version: as the API server reports it ("v1.37.1"); "" until it was asked.
        image: image that scenario pods run; it is present on every node or can be pulled there.
        nodes: names of the nodes with a kubelet that the suite may use; () is a control plane only.
        component_logs: component name ("kube-apiserver", "node-1/kubelet") -> its log file on this
            machine, for diagnostics; empty where the logs cannot be reached.
        versions: part of the cluster -> version, where no node reports it.
        watch: reports when a part of the cluster ended; None where nobody can know.
    """

    kubeconfig: Path
    context: str
    kubernetes_version: str
    image: str
    nodes: tuple[str, ...]
    component_logs: Mapping[str, Path] = field(default_factory=dict)
    versions: Mapping[str, str] = field(default_factory=dict)
    watch: Watch | None = field(default=None, compare=False, repr=False)

    def to_json(self) -> dict[str, Any]:
        """Return the hand-over for another process on this machine; `watch` is not in it."""
        data: dict[str, Any] = _access().dump_python(replace(self, watch=None), mode="json")
        return data

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> ClusterAccess:
        return _access().validate_python(data)


@cache
def _access() -> TypeAdapter[ClusterAccess]:
    """Made when first needed: pytest imports this module in every session."""
    from pydantic import TypeAdapter

    return TypeAdapter(ClusterAccess)


class Cluster(Protocol):
    """A cluster that can be made usable and given back."""

    def up(self, progress: Progress = silent) -> ClusterAccess:
        """Create the cluster, or connect to it, and wait until it can be used.

        Raises:
            ClusterUsageError: an option, file or context is wrong.
            ClusterError: it could not be started or reached; what was started is stopped again.
        """
        ...

    def down(self, progress: Progress = silent) -> None:
        """Give back all that `up` took. May be called twice, and after a failed `up`.

        Raises ClusterError: something could not be removed; the message names it.
        """
        ...
