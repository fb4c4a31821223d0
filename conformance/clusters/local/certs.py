"""Certificates, keys and tokens of one local cluster.

A certificate authority of its own signs every serving certificate and the few client certificates
(API server to etcd, API server to kubelet). Users of the API authenticate by token instead, because
a static token file says in one line who somebody is and in which groups.
"""

from __future__ import annotations

import datetime as dt
import ipaddress
import os
import secrets
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

LIFETIME = dt.timedelta(days=365)
"""Longer than any cluster that somebody leaves running."""

_CLOCK_SKEW = dt.timedelta(minutes=5)


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

    def __init__(self, directory: Path, common_name: str) -> None:
        """Make the key and the self-signed certificate, and write `ca.crt`."""
        self._directory = directory
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = _name(common_name)
        certificate = (
            _builder(self._name, self._name, self._key.public_key(), self._key)
            .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
            .add_extension(_key_usage(authority=True), critical=True)
            .sign(self._key, hashes.SHA256())
        )
        self.certificate = directory / "ca.crt"
        write_private(self.certificate, certificate.public_bytes(serialization.Encoding.PEM))

    def issue(self, name: str, *, names: Iterable[str] = (), organization: str = "") -> Pair:
        """Sign `NAME.crt` and `NAME.key`, good for a server and for a client.

        Args:
            name: file name and subject's common name.
            names: subject alternative names: IP addresses, or else DNS names.
            organization: subject's organization; Kubernetes reads it as a group.
        """
        key = ec.generate_private_key(ec.SECP256R1())
        builder = _builder(_name(name, organization), self._name, key.public_key(), self._key)
        alternatives = [_alternative(text) for text in names]
        if alternatives:
            builder = builder.add_extension(x509.SubjectAlternativeName(alternatives), False)
        usage = [ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH]
        certificate = (
            builder.add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
            .add_extension(_key_usage(authority=False), critical=True)
            .add_extension(x509.ExtendedKeyUsage(usage), critical=False)
            .sign(self._key, hashes.SHA256())
        )
        pair = Pair(self._directory / f"{name}.crt", self._directory / f"{name}.key")
        write_private(pair.certificate, certificate.public_bytes(serialization.Encoding.PEM))
        write_private(pair.key, _private_pem(key))
        return pair


def write_signing_key(directory: Path) -> Pair:
    """Key that signs service account tokens, and its public half (`Pair.certificate`)."""
    key = ec.generate_private_key(ec.SECP256R1())
    pair = Pair(directory / "service-accounts.pub", directory / "service-accounts.key")
    public = key.public_key().public_bytes(
        serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
    )
    write_private(pair.certificate, public)
    write_private(pair.key, _private_pem(key))
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


def _name(common_name: str, organization: str = "") -> x509.Name:
    attributes = [x509.NameAttribute(NameOID.COMMON_NAME, common_name)]
    if organization:
        attributes.append(x509.NameAttribute(NameOID.ORGANIZATION_NAME, organization))
    return x509.Name(attributes)


def _alternative(text: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(text))
    except ValueError:
        return x509.DNSName(text)


def _builder(
    subject: x509.Name,
    issuer: x509.Name,
    public_key: ec.EllipticCurvePublicKey,
    signer: ec.EllipticCurvePrivateKey,
) -> x509.CertificateBuilder:
    """What all have. Python 3.13 and later refuses a certificate without its key's identifiers."""
    now = dt.datetime.now(dt.UTC)
    authority = x509.AuthorityKeyIdentifier.from_issuer_public_key(signer.public_key())
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(public_key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - _CLOCK_SKEW)
        .not_valid_after(now + LIFETIME)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(public_key), critical=False)
        .add_extension(authority, critical=False)
    )


def _key_usage(*, authority: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=True,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=authority,
        crl_sign=authority,
        encipher_only=False,
        decipher_only=False,
    )


def _private_pem(key: ec.EllipticCurvePrivateKey) -> bytes:
    return key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )
