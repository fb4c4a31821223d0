"""Kubeconfig files of a local cluster: one user, one cluster, one context, credentials inside."""

from __future__ import annotations

import base64
from pathlib import Path

import yaml

from conformance.clusters.local.certs import write_private


def context_name(cluster: str) -> str:
    """The context that users name; it cannot be taken for one of their own clusters."""
    return f"dra-conformance-{cluster}"


def write_kubeconfig(
    path: Path, *, cluster: str, server: str, ca: Path, user: str, token: str
) -> None:
    """Write a kubeconfig that only its owner may read.

    Args:
        path: the file.
        cluster: name of the local cluster.
        server: URL of the API server.
        ca: PEM certificate of the authority; it is copied in, so that the file can be moved.
        user: short name of the user.
        token: the user's bearer token.
    """
    context = context_name(cluster)
    document = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [
            {
                "name": context,
                "cluster": {
                    "server": server,
                    "certificate-authority-data": base64.b64encode(ca.read_bytes()).decode(),
                },
            }
        ],
        "users": [{"name": user, "user": {"token": token}}],
        "contexts": [{"name": context, "context": {"cluster": context, "user": user}}],
        "current-context": context,
    }
    write_private(path, yaml.safe_dump(document, sort_keys=False).encode())
