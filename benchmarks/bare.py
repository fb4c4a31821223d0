"""etcd and kube-apiserver alone, on loopback, for as long as a measurement lasts."""

from __future__ import annotations

import secrets
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa

from kube.credentials import Authority, write_kubeconfig


@dataclass(frozen=True)
class Server:
    """A server that runs: its processes, and who may do everything there."""

    processes: tuple[subprocess.Popen[bytes], ...]
    kubeconfig: Path


@contextmanager
def run_bare_server(binaries: Path, folder: Path, prefix: tuple[str, ...] = ()) -> Iterator[Server]:
    """Start both without waiting until they answer.

    Args:
        binaries: folder with the programs ``etcd`` and ``kube-apiserver``.
        folder: empty; for their files.
        prefix: of their command lines, such as ``taskset``.
    """
    authority = Authority(folder / "pki", "bare")
    pair = authority.issue_certificate("server", names=("localhost", "127.0.0.1"))
    client_port, peer_port, port = (_find_free_port() for _ in range(3))
    token = secrets.token_urlsafe(16)
    (folder / "tokens.csv").write_text(f'{token},admin,admin,"system:masters"\n')
    (folder / "signing.pem").write_bytes(_generate_key())
    etcd = f"http://127.0.0.1:{client_port}"
    peer = f"http://127.0.0.1:{peer_port}"
    etcd_command = (
        str(binaries / "etcd"),
        f"--data-dir={folder}/etcd",
        "--unsafe-no-fsync=true",
        f"--listen-client-urls={etcd}",
        f"--advertise-client-urls={etcd}",
        f"--listen-peer-urls={peer}",
        f"--initial-advertise-peer-urls={peer}",
        f"--initial-cluster=default={peer}",
        "--log-level=error",
    )
    api_command = (
        str(binaries / "kube-apiserver"),
        f"--etcd-servers={etcd}",
        "--bind-address=127.0.0.1",
        "--advertise-address=127.0.0.1",
        "--endpoint-reconciler-type=none",
        f"--secure-port={port}",
        f"--tls-cert-file={pair.certificate}",
        f"--tls-private-key-file={pair.key}",
        f"--token-auth-file={folder}/tokens.csv",
        "--anonymous-auth=false",
        "--authorization-mode=RBAC",
        "--disable-admission-plugins=ServiceAccount",
        "--service-cluster-ip-range=10.96.0.0/16",
        "--service-account-issuer=https://kubernetes.default.svc",
        f"--service-account-key-file={folder}/signing.pem",
        f"--service-account-signing-key-file={folder}/signing.pem",
        f"--cert-dir={folder}/certs",
    )
    kubeconfig = folder / "kubeconfig"
    write_kubeconfig(
        kubeconfig,
        cluster="bare",
        server=f"https://127.0.0.1:{port}",
        ca=authority.certificate,
        user="admin",
        token=token,
    )
    processes: list[subprocess.Popen[bytes]] = []
    with (folder / "log").open("wb") as log:
        try:
            processes += (
                subprocess.Popen((*prefix, *command), stdout=log, stderr=log)
                for command in (etcd_command, api_command)
            )
            yield Server(tuple(processes), kubeconfig)
        finally:
            for process in reversed(processes):
                process.terminate()
            for process in reversed(processes):
                with suppress(subprocess.TimeoutExpired):
                    process.wait(20)
                process.kill()


def _find_free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        port: int = listening.getsockname()[1]
        return port


def _generate_key() -> bytes:
    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    return key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )
