"""Certificates and kubeconfigs of a cluster that this machine serves.

A certificate authority of its own signs every certificate; users authenticate by token.
"""

from __future__ import annotations

import base64
import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import trustme
import yaml


def write_private(path: Path, data: bytes) -> None:
    """Write a file that only its owner may read, from its first byte on."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.unlink(missing_ok=True)
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        file.write(data)


@dataclass(frozen=True)
class Pair:
    """Paths of a PEM certificate and its PEM private key."""

    certificate: Path
    key: Path


class Authority:
    """A certificate authority whose files lie in one directory, `ca.crt` and the pairs it signed.

    The authority's own key is never written: nothing has to be signed later.
    """

    def __init__(self, directory: Path, name: str) -> None:
        """Make the key and the self-signed certificate, and write `ca.crt`."""
        self._directory = directory
        self._authority = trustme.CA(organization_unit_name=name)
        self.certificate = directory / "ca.crt"
        write_private(self.certificate, self._authority.cert_pem.bytes())

    def issue_certificate(
        self, name: str, *, names: Iterable[str] = (), organization: str = ""
    ) -> Pair:
        """Sign `NAME.crt` and `NAME.key`, good for a server and for a client.

        Args:
            name: file name, subject's common name and a DNS name.
            names: further subject alternative names: IP addresses or DNS names.
            organization: subject's organization; Kubernetes reads it as a group.
        """
        signed = self._authority.issue_cert(
            *dict.fromkeys((name, *names)),
            common_name=name,
            organization_name=organization or "dra-conformance",
        )
        pair = Pair(self._directory / f"{name}.crt", self._directory / f"{name}.key")
        write_private(pair.certificate, signed.cert_chain_pems[0].bytes())
        write_private(pair.key, signed.private_key_pem.bytes())
        return pair


def context_name(cluster: str) -> str:
    """Return the context that users name; it cannot be taken for one of their own clusters."""
    return f"dra-conformance-{cluster}"


def write_kubeconfig(
    path: Path, *, cluster: str, server: str, ca: Path, user: str, token: str
) -> None:
    """Write a kubeconfig of one user and one context, which only its owner may read.

    The authority's certificate is copied in, so that the file can be moved.
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
