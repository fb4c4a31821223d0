"""Certificates, keys, tokens and kubeconfigs of one local cluster.

A certificate authority of its own signs every serving certificate and the few client certificates
(API server to etcd, API server to kubelet). Users of the API authenticate by token instead, because
a static token file says in one line who somebody is and in which groups.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec

from kube.credentials import Authority, Pair, write_kubeconfig, write_private
from localkube.layout import Layout
from localkube.state import LOOPBACK, State

SERVICE_IP = "10.96.0.1"
"""Address of the `kubernetes` service. Nothing routes it: there is no kube-proxy."""


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


def write_credentials(layout: Layout, state: State) -> None:
    """Make certificates, tokens and kubeconfigs of the whole cluster."""
    authority = Authority(layout.pki, f"dra-conformance local cluster {layout.name}")
    local = ("localhost", LOOPBACK)
    authority.issue_certificate("etcd", names=local)
    service = [f"kubernetes{suffix}" for suffix in ("", ".default", ".default.svc")]
    addresses = [SERVICE_IP, *([state.network.gateway] if state.network else [])]
    authority.issue_certificate("kube-apiserver", names=[*local, *service, *addresses])
    for name in ("kube-controller-manager", "kube-scheduler"):
        authority.issue_certificate(name, names=local)
    authority.issue_certificate("etcd-client")
    authority.issue_certificate("kubelet-client", organization="system:masters")
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
        authority.issue_certificate(name, names=[name, state.network.node_address(index)])
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
