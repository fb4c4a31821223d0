"""Any cluster that a kubeconfig file leads to: the user names the file and the context, always.

A conformance run creates and deletes things, so "whatever context happens to be current" is never
good enough. Everything that can be wrong with the file, the context, the server and the APIs that
it serves is found here, before a scenario starts, and said in one message each.
"""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from conformance.clusters.base import (
    ClusterAccess,
    ClusterError,
    ClusterUsageError,
    Progress,
    silent,
)

DEFAULT_IMAGE = "registry.k8s.io/e2e-test-images/busybox:1.37.0-2"
"""Has a shell, ``env`` and ``find``; Kubernetes' own tests of 1.37 pull the same image
(``test/utils/image/manifest.go``)."""

RUN_LABEL = "dra-conformance.dev/run"  # the same words as in conformance.targets.base

_TIMEOUT = (5.0, 15.0)  # seconds to connect, seconds to answer
_PREFIX = re.compile(r"^(?:<[^>]*>|HTTPS?Connection(?:Pool)?\([^)]*\)): ")
_GROUP = "resource.k8s.io"


class KubeconfigCluster:
    """A cluster that exists already and is neither created nor deleted by the suite.

    Args:
        kubeconfig: the file; None is ``~/.kube/config``.
        context: the name of the context in it; required.
        image: image that scenario pods run; the nodes must be able to pull it.
    """

    def __init__(
        self, kubeconfig: Path | None, context: str, *, image: str = DEFAULT_IMAGE
    ) -> None:
        self._kubeconfig = kubeconfig or Path.home() / ".kube" / "config"
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
            version = str(self._get(client, "/version").get("gitVersion", ""))
            groups = [group["name"] for group in self._get(client, "/apis").get("groups", [])]
            if _GROUP not in groups:
                raise ClusterUsageError(
                    f"{client.configuration.host} (Kubernetes {version}) does not serve the API "
                    f"group {_GROUP}: DRA needs Kubernetes 1.34, or an older one started with "
                    f"--runtime-config={_GROUP}/v1beta1=true and the feature gate "
                    "DynamicResourceAllocation"
                )
            nodes = self._get(client, "/api/v1/nodes").get("items", [])
        finally:
            client.close()
        return ClusterAccess(
            kubeconfig=self._kubeconfig,
            context=self._context,
            kubernetes_version=version,
            image=self._image,
            nodes=usable_nodes(nodes),
        )

    def down(self, progress: Progress = silent) -> None:
        """Leave the cluster as it is: the suite did not make it."""

    def _get(self, client: Any, path: str) -> dict[str, Any]:
        host = client.configuration.host
        where = f"{host} (context {self._context!r} of {self._kubeconfig})"
        try:
            headers = {"Accept": "application/json"}
            client.update_params_for_auth(headers, [], ["BearerToken"], path, "GET", None)
            response = client.call_api(
                "GET", host + path, header_params=headers, _request_timeout=_TIMEOUT
            )
            body = response.read()
        except Exception as error:  # noqa: BLE001 - the client leaks urllib3's, ssl's and its own
            raise ClusterError(
                f"no answer from the API server {where} within {_TIMEOUT[1]:g} s: "
                f"{reason_of(error)}; check that it runs and can be reached from this machine"
            ) from None
        try:
            found = json.loads(body)
        except ValueError:
            found = None
        if response.status in (401, 403):
            said = found.get("message", "") if isinstance(found, dict) else ""
            raise ClusterError(
                f"{where} refuses GET {path} ({response.status}: {said or response.reason}); the "
                "suite needs the permissions of ci/rbac/suite.yaml"
            )
        if response.status != 200 or not isinstance(found, dict):
            raise ClusterError(
                f"{where} answers GET {path} with {response.status} {response.reason}, which is "
                "not what an API server says; check the server's address in the kubeconfig"
            )
        return found


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


def read_kubeconfig(path: Path) -> dict[str, Any]:
    """The file as a mapping.

    Raises:
        ClusterUsageError: it cannot be read, is not YAML, or is no kubeconfig.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise ClusterUsageError(
            f"{path}: no such file; name the kubeconfig file with --kubeconfig"
        ) from None
    except (OSError, UnicodeDecodeError) as error:
        raise ClusterUsageError(f"{path}: cannot be read: {reason_of(error)}") from None
    try:
        found = yaml.safe_load(text)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        line = f":{mark.line + 1}" if mark is not None else ""
        # The problem, not the whole error: that one quotes the line, and a line may hold a token.
        problem = getattr(error, "problem", None) or "not readable"
        raise ClusterUsageError(f"{path}{line}: not YAML: {problem}") from None
    if not isinstance(found, dict) or not isinstance(found.get("contexts"), list):
        raise ClusterUsageError(
            f"{path}: not a kubeconfig: expected a mapping with clusters, contexts and users"
        )
    return found


def check_context(path: Path, config: Mapping[str, Any], context: str) -> None:
    """See that ``context`` is named, is in the file, and that its cluster is there with a server.

    Raises:
        ClusterUsageError: with the contexts that the file has.
    """
    contexts = {
        entry["name"]: entry.get("context") or {}
        for entry in config["contexts"]
        if isinstance(entry, dict) and "name" in entry
    }
    available = ", ".join(sorted(map(str, contexts))) or "none"
    if not context:
        raise ClusterUsageError(
            f"{path}: name the context to use with --context, the current one is never taken; "
            f"the file has: {available}"
        )
    if context not in contexts:
        raise ClusterUsageError(f"{path}: no context {context!r}; the file has: {available}")
    wanted = contexts[context].get("cluster")
    for cluster in config.get("clusters") or []:
        if isinstance(cluster, dict) and cluster.get("name") == wanted:
            if not (cluster.get("cluster") or {}).get("server"):
                raise ClusterUsageError(f"{path}: cluster {wanted!r} has no server")
            return
    raise ClusterUsageError(
        f"{path}: context {context!r} names a cluster {wanted!r} that is not there"
    )


def api_client(kubeconfig: Path, context: str) -> Any:
    """A client of the official ``kubernetes`` package for that context, not yet connected.

    The client's own retries are off (the caller knows which requests may be repeated), and its
    pool is large enough for one watch per kind of many scenarios at once.

    Raises:
        ClusterUsageError: the file or the context is wrong.
    """
    config = read_kubeconfig(kubeconfig)
    check_context(kubeconfig, config, context)
    # A second to import, so only when a cluster is really used.
    from kubernetes.client import ApiClient, Configuration
    from kubernetes.config import ConfigException
    from kubernetes.config.kube_config import load_kube_config

    logging.getLogger("urllib3.connectionpool").setLevel(logging.ERROR)
    configuration = Configuration()
    try:
        load_kube_config(
            config_file=str(kubeconfig),
            context=context,
            client_configuration=configuration,
            persist_config=False,
        )
    except (ConfigException, ValueError, KeyError, TypeError, OSError) as error:
        raise ClusterUsageError(
            f"{kubeconfig}: context {context!r} cannot be used: {reason_of(error)}"
        ) from None
    configuration.retries = False
    configuration.connection_pool_maxsize = 128
    configuration.keep_alive = True
    return ApiClient(configuration)


def reason_of(error: BaseException) -> str:
    """One line that says what went wrong, without the objects that libraries put around it."""
    text = str(getattr(error, "reason", None) or error)
    text = _PREFIX.sub("", " ".join(text.split()))
    return text or type(error).__name__
