"""Certificates, keys, tokens and kubeconfigs of one local cluster.

A certificate authority of its own signs every serving certificate and the few client certificates
(API server to etcd, API server to kubelet). Users of the API authenticate by token instead, because
a static token file says in one line who somebody is and in which groups.
"""

from __future__ import annotations

import base64
import os
import secrets
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import trustme
import yaml
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec

from localkube.layout import Layout
from localkube.state import LOOPBACK, State

SERVICE_IP = "10.96.0.1"
"""Address of the `kubernetes` service. Nothing routes it: there is no kube-proxy."""


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

    def issue(self, name: str, *, names: Iterable[str] = (), organization: str = "") -> Pair:
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


def write_signing_key(directory: Path) -> Pair:
    """Key that signs service account tokens, and its public half (`Pair.certificate`)."""
    key = ec.generate_private_key(ec.SECP256R1())
    pair = Pair(directory / "service-accounts.pub", directory / "service-accounts.key")
    public = key.public_key().public_bytes(
        serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
    )
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    write_private(pair.certificate, public)
    write_private(pair.key, private)
    return pair


@dataclass(frozen=True)
class User:
    """Somebody who may call the API: a line of the API server's --token-auth-file."""

    name: str
    username: str
    groups: Sequence[str] = ()


def write_tokens(path: Path, users: Iterable[User]) -> dict[str, str]:
    """Draw a token for each user, write the token file, return user's short name -> token."""
    tokens = {}
    lines = []
    for user in users:
        tokens[user.name] = secrets.token_urlsafe(32)
        groups = ",".join(user.groups)
        lines.append(f'{tokens[user.name]},{user.username},{user.username},"{groups}"\n')
    write_private(path, "".join(lines).encode())
    return tokens


def context_name(cluster: str) -> str:
    """The context that users name; it cannot be taken for one of their own clusters."""
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


def write_credentials(layout: Layout, state: State) -> None:
    """Make certificates, tokens and kubeconfigs of the whole cluster."""
    authority = Authority(layout.pki, f"dra-conformance local cluster {layout.name}")
    local = ("localhost", LOOPBACK)
    authority.issue("etcd", names=local)
    service = [f"kubernetes{rest}" for rest in ("", ".default", ".default.svc")]
    addresses = [SERVICE_IP, *([state.network.gateway] if state.network else [])]
    authority.issue("kube-apiserver", names=[*local, *service, *addresses])
    for name in ("kube-controller-manager", "kube-scheduler"):
        authority.issue(name, names=local)
    authority.issue("etcd-client")
    authority.issue("kubelet-client", organization="system:masters")
    write_signing_key(layout.pki)
    users = [
        User("admin", "dra-conformance:admin", ["system:masters"]),
        User("controller-manager", "system:kube-controller-manager"),
        User("scheduler", "system:kube-scheduler"),
        User("driver", "dra-conformance:driver"),
    ]
    for index in range(1, state.nodes + 1):
        name = layout.node(index).name
        assert state.network is not None, "a cluster with nodes has a network"
        authority.issue(name, names=[name, state.network.node_address(index)])
        users.append(User(name, f"system:node:{name}", ["system:nodes"]))
    tokens = write_tokens(layout.pki / "tokens.csv", users)
    for user, token in tokens.items():
        on_node = state.network if user == "driver" or user.startswith("node-") else None
        host = on_node.gateway if on_node else LOOPBACK
        write_kubeconfig(
            layout.kubeconfig if user == "admin" else layout.kubeconfig_for(user),
            cluster=layout.name,
            server=f"https://{host}:{state.ports.api}",
            ca=authority.certificate,
            user=user,
            token=token,
        )
