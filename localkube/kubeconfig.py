"""Any cluster that a kubeconfig file leads to: the user names the context, always.

A conformance run creates and deletes things, so "whatever context happens to be current" is never
good enough. Everything that can be wrong with the file, the context, the server and the APIs that
it serves is found here, before a scenario starts, and said in one message each.
"""

from __future__ import annotations

import os
from pathlib import Path

from kube.base.redaction import redact_log
from kube.base.text import one_line
from kube.connection import Connection
from kube.errors import UNAUTHORIZED, ApiError
from kube.kubeconfig import default_kubeconfig
from kube.nodes import usable_nodes
from kube.values import Obj
from localkube.base import (
    DEFAULT_IMAGE,
    ClusterAccess,
    ClusterError,
    ClusterUsageError,
    Progress,
    silent,
)

_GROUP = "resource.k8s.io"
_NODES = "/api/v1/nodes"


class KubeconfigCluster:
    """A cluster that exists already and is neither created nor deleted by the suite.

    Args:
        kubeconfig: the file; None is what ``$KUBECONFIG`` names, else ``~/.kube/config``.
        context: the name of the context in it; required.
        image: image that scenario pods run; the nodes must be able to pull it.
    """

    def __init__(
        self, kubeconfig: Path | None, context: str, *, image: str = DEFAULT_IMAGE
    ) -> None:
        self._kubeconfig = kubeconfig or default_kubeconfig(os.environ)
        self._context = context
        self._image = image

    def up(self, progress: Progress = silent) -> ClusterAccess:
        """Check the file, the context, the server and the APIs that it serves.

        Raises:
            UsageError: the file or the context is wrong, or DRA is not served.
            InfrastructureError: the server does not answer, or refuses the credentials.
        """
        progress(f"connecting to context {self._context!r} of {self._kubeconfig}")
        connection = Connection.open(self._kubeconfig, self._context)
        try:
            version = one_line(self._get(connection, "/version").get("gitVersion", ""))
            groups = self._get(connection, "/apis").get("groups") or []
            if not isinstance(groups, list) or not all(isinstance(item, dict) for item in groups):
                raise connection.make_unexpected_error(
                    "GET", "/apis", "without a list of API groups"
                )
            if _GROUP not in {group.get("name") for group in groups}:
                raise ClusterUsageError(
                    f"{connection.server} (Kubernetes {version}) does not serve the API "
                    f"group {_GROUP}: DRA needs Kubernetes 1.34, or an older one started with "
                    f"--runtime-config={_GROUP}/v1beta1=true and the feature gate "
                    "DynamicResourceAllocation"
                )
            nodes = self._get(connection, _NODES).get("items") or []
            try:
                usable = usable_nodes(nodes)
            except (KeyError, TypeError, AttributeError):
                raise connection.make_unexpected_error(
                    "GET", _NODES, "with objects that are not Nodes"
                ) from None
        finally:
            connection.close()
        return ClusterAccess(
            kubeconfig=self._kubeconfig,
            context=self._context,
            kubernetes_version=version,
            image=self._image,
            nodes=usable,
        )

    def down(self, progress: Progress = silent) -> None:
        """Leave the cluster as it is: the suite did not make it."""

    def _get(self, connection: Connection, path: str) -> Obj:
        try:
            answer: Obj = connection.request("GET", path)
        except ApiError as error:
            problem = f"{connection.where} refuses GET {path} ({error.code}: {_said(error)})"
            if error.code == UNAUTHORIZED:
                raise ClusterError(
                    f"{problem}: the credentials of the context's user are wrong or have expired"
                ) from None
            if error.code == 403:
                raise ClusterError(
                    f"{problem}: the suite needs the permissions of ci/rbac/suite.yaml"
                ) from None
            raise connection.make_unexpected_error(
                "GET", path, f"with status {error.code} ({_said(error)})"
            ) from None
        return answer


def _said(error: ApiError) -> str:
    return one_line(redact_log(error.message))
