"""Any cluster that a kubeconfig file leads to: the user names the context, always.

A conformance run creates and deletes things, so "whatever context happens to be current" is never
good enough. Everything that can be wrong with the file, the context, the server and the APIs that
it serves is found here, before a scenario starts, and said in one message each.
"""

from __future__ import annotations

import json
import os
import time
from pathlib import Path
from typing import Any

from conformance.clusters.base import (
    ClusterAccess,
    ClusterError,
    ClusterUsageError,
    Progress,
    silent,
)
from conformance.errors import InfrastructureError, UsageError
from conformance.kubeapi.apiclient import api_client
from conformance.kubeapi.exchange import Answer, Limits, exchange, reason_of
from conformance.kubeapi.kubeconfig import default_kubeconfig
from conformance.redaction import redact_log
from conformance.text import one_line

__all__ = ["DEFAULT_IMAGE", "RUN_LABEL", "KubeconfigCluster", "api_client", "reason_of"]

DEFAULT_IMAGE = "registry.k8s.io/e2e-test-images/busybox:1.37.0-2"
"""Has a shell, ``env`` and ``find``; Kubernetes' own tests of 1.37 pull the same image
(``test/utils/image/manifest.go``)."""

RUN_LABEL = "dra-conformance.dev/run"  # the same words as in conformance.targets.base

LIMITS = Limits(connect=5.0, quiet=15.0, whole=30.0)
PATIENCE = 30.0
"""Seconds for which a server that says it is busy or away is asked again."""

_PASSING = frozenset({429, 500, 502, 503, 504})
_GROUP = "resource.k8s.io"


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
            ClusterUsageError: the file or the context is wrong, or DRA is not served.
            ClusterError: the server does not answer, or refuses the credentials.
        """
        progress(f"connecting to context {self._context!r} of {self._kubeconfig}")
        client = api_client(self._kubeconfig, self._context)
        try:
            version = one_line(self._get(client, "/version").get("gitVersion", ""))
            groups = {group.get("name") for group in self._items(client, "/apis", "groups")}
            if _GROUP not in groups:
                raise ClusterUsageError(
                    f"{client.configuration.host} (Kubernetes {version}) does not serve the API "
                    f"group {_GROUP}: DRA needs Kubernetes 1.34, or an older one started with "
                    f"--runtime-config={_GROUP}/v1beta1=true and the feature gate "
                    "DynamicResourceAllocation"
                )
            nodes = self._items(client, "/api/v1/nodes", "items")
            try:
                usable = usable_nodes(nodes)
            except (KeyError, TypeError, AttributeError):
                raise self._strange(client, "/api/v1/nodes", "its nodes are not nodes") from None
        finally:
            client.close()
        return ClusterAccess(
            kubeconfig=self._kubeconfig,
            context=self._context,
            kubernetes_version=version,
            image=self._image,
            nodes=usable,
        )

    def down(self, progress: Progress = silent) -> None:
        """Leave the cluster as it is: the suite did not make it."""

    def _items(self, client: Any, path: str, field: str) -> list[dict[str, Any]]:
        found = self._get(client, path).get(field) or []
        if not isinstance(found, list) or not all(isinstance(item, dict) for item in found):
            raise self._strange(client, path, f"{field} is no list of objects")
        return found

    def _get(self, client: Any, path: str) -> dict[str, Any]:
        answer = self._patiently(client, path)
        try:
            found = json.loads(answer.data)
        except (ValueError, RecursionError):
            found = None
        said = found.get("message", "") if isinstance(found, dict) else ""
        told = f"{answer.status}: {one_line(redact_log(str(said))) or one_line(answer.reason)}"
        where = self._where(client)
        if answer.status == 401:
            raise ClusterError(
                f"{where} does not know who asks: it refuses GET {path} ({told}); the credentials "
                "of the context's user are wrong or have expired"
            )
        if answer.status == 403:
            raise ClusterError(
                f"{where} refuses GET {path} ({told}); the suite needs the permissions of "
                "ci/rbac/suite.yaml"
            )
        if answer.status in _PASSING:
            raise ClusterError(
                f"{where} is overloaded or not available: it answered GET {path} for "
                f"{PATIENCE:g} s with {told}; try again when it is well"
            )
        if answer.status != 200 or not isinstance(found, dict):
            raise self._strange(client, path, f"status {answer.status} {one_line(answer.reason)}")
        return found

    def _patiently(self, client: Any, path: str) -> Answer:
        """The answer; while the server says that it is busy, it is asked again as it wishes."""
        deadline = time.monotonic() + PATIENCE
        pause = 1.0
        while True:
            answer = self._ask(client, path)
            pause = max(pause, answer.retry_after())
            if answer.status not in _PASSING or time.monotonic() + pause > deadline:
                return answer
            time.sleep(pause)  # nothing tells when it is well again
            pause = min(pause * 2, 5.0)

    def _ask(self, client: Any, path: str) -> Answer:
        try:
            headers = {"Accept": "application/json"}
            client.update_params_for_auth(headers, [], ["BearerToken"], path, "GET", None)
            url = client.configuration.host + path
            return exchange(client, "GET", url, headers, limits=LIMITS)
        except (InfrastructureError, UsageError):
            raise  # credentials that could not be renewed
        except Exception as error:  # noqa: BLE001 - the client leaks urllib3's, ssl's and its own
            raise ClusterError(
                f"no answer from the API server {self._where(client)} to GET {path}: "
                f"{one_line(redact_log(reason_of(error)))}; check that it runs and can be reached "
                "from this machine"
            ) from None

    def _strange(self, client: Any, path: str, what: str) -> ClusterError:
        return ClusterError(
            f"{self._where(client)} answers GET {path} with what is not what an API server says "
            f"({what}); check the server's address in the kubeconfig"
        )

    def _where(self, client: Any) -> str:
        host = client.configuration.host
        return f"{host} (context {self._context!r} of {self._kubeconfig})"


def usable_nodes(nodes: list[dict[str, Any]]) -> tuple[str, ...]:
    """Names of the nodes with a kubelet that are ready, schedulable and not made by a run."""
    names = []
    for node in nodes:
        status = node.get("status") or {}
        ready = any(
            condition.get("type") == "Ready" and condition.get("status") == "True"
            for condition in status.get("conditions") or []
        )
        hard = any(
            taint.get("effect") in ("NoSchedule", "NoExecute")
            for taint in (node.get("spec") or {}).get("taints") or []
        )
        ours = RUN_LABEL in (node["metadata"].get("labels") or {})
        kubelet = (status.get("nodeInfo") or {}).get("kubeletVersion")
        if ready and kubelet and not hard and not ours:
            names.append(node["metadata"]["name"])
    return tuple(sorted(names))
