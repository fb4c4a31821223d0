from __future__ import annotations

import base64
import contextlib
import csv
import datetime as dt
import ipaddress
import ssl
import stat
from pathlib import Path

import pytest
import yaml
from cryptography import x509
from cryptography.hazmat.primitives import serialization
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from kube.credentials import Authority, write_kubeconfig
from localkube.controlplane.credentials import (
    User,
    write_credentials,
    write_signing_key,
    write_tokens,
)
from localkube.layout import Layout
from localkube.state import Network, Ports, State

STATE = State(
    name="a",
    binaries=Path("/bin"),
    nodes=2,
    feature_gates={},
    ports=Ports(1, 2, 3, 4, 5, 6),
    network=Network("10.213.7.0/24"),
    owner=None,
)


def load(path: Path) -> x509.Certificate:
    return x509.load_pem_x509_certificate(path.read_bytes())


def test_issued_certificate_is_signed_by_the_authority_and_names_its_addresses(
    tmp_path: Path,
) -> None:
    authority = Authority(tmp_path, "test authority")
    pair = authority.issue_certificate(
        "server", names=["localhost", "127.0.0.1"], organization="group"
    )
    certificate, ca = load(pair.certificate), load(authority.certificate)
    certificate.verify_directly_issued_by(ca)
    names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert names.get_values_for_type(x509.DNSName) == ["server", "localhost"]
    assert names.get_values_for_type(x509.IPAddress) == [ipaddress.ip_address("127.0.0.1")]
    group = certificate.subject.get_attributes_for_oid(NameOID.ORGANIZATION_NAME)
    assert [attribute.value for attribute in group] == ["group"]
    usage = certificate.extensions.get_extension_for_class(x509.ExtendedKeyUsage).value
    assert ExtendedKeyUsageOID.SERVER_AUTH in usage
    assert ExtendedKeyUsageOID.CLIENT_AUTH in usage


def test_strict_verification_accepts_the_certificates(tmp_path: Path) -> None:
    """What Python 3.13 and later asks of a server by default."""
    authority = Authority(tmp_path, "a")
    pair = authority.issue_certificate("server", names=["127.0.0.1"])
    server_side = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server_side.load_cert_chain(pair.certificate, pair.key)
    client_side = ssl.create_default_context(cafile=str(authority.certificate))
    client_side.verify_flags |= ssl.VERIFY_X509_STRICT
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    client = client_side.wrap_bio(to_client, to_server, server_hostname="127.0.0.1")
    server = server_side.wrap_bio(to_server, to_client, server_side=True)
    for end in (client, server, client):  # the client's second call verifies
        with contextlib.suppress(ssl.SSLWantReadError):
            end.do_handshake()
    assert client.getpeercert()


def test_certificates_are_valid_now_and_for_months(tmp_path: Path) -> None:
    pair = Authority(tmp_path, "a").issue_certificate("server")
    now = dt.datetime.now(dt.UTC)
    assert load(pair.certificate).not_valid_before_utc < now
    assert load(pair.certificate).not_valid_after_utc > now + dt.timedelta(days=90)


def test_key_belongs_to_its_certificate(tmp_path: Path) -> None:
    pair = Authority(tmp_path, "a").issue_certificate("server")
    key = serialization.load_pem_private_key(pair.key.read_bytes(), None)
    assert load(pair.certificate).public_key() == key.public_key()
    signing = write_signing_key(tmp_path)
    private = serialization.load_pem_private_key(signing.key.read_bytes(), None)
    assert private.public_key() == serialization.load_pem_public_key(
        signing.certificate.read_bytes()
    )


def test_only_the_owner_can_read_any_credential(tmp_path: Path) -> None:
    layout = Layout("a", tmp_path)
    write_credentials(layout, STATE)
    files = [layout.kubeconfig, *layout.pki.iterdir()]
    assert {path.name: stat.filemode(path.stat().st_mode) for path in files} == {
        path.name: "-rw-------" for path in files
    }
    assert len(files) > 10


def test_token_file_gives_each_user_one_token_and_its_groups(tmp_path: Path) -> None:
    users = [User("admin", "me", ["system:masters", "b"]), User("x", "y")]
    tokens = write_tokens(tmp_path / "t.csv", users)
    rows = list(csv.reader((tmp_path / "t.csv").read_text().splitlines()))
    assert rows == [[tokens["admin"], "me", "me", "system:masters,b"], [tokens["x"], "y", "y", ""]]
    assert tokens["admin"] != tokens["x"]
    assert min(len(token) for token in tokens.values()) >= 43  # 256 bits


def test_kubeconfig_has_one_context_and_carries_the_authority(tmp_path: Path) -> None:
    authority = Authority(tmp_path, "a")
    path = tmp_path / "kubeconfig"
    write_kubeconfig(
        path,
        cluster="dev",
        server="https://127.0.0.1:1",
        ca=authority.certificate,
        user="admin",
        token="secret",
    )
    document = yaml.safe_load(path.read_text())
    assert document["current-context"] == "dra-conformance-dev"
    assert [one["name"] for one in document["contexts"]] == ["dra-conformance-dev"]
    data = document["clusters"][0]["cluster"]["certificate-authority-data"]
    assert base64.b64decode(data) == authority.certificate.read_bytes()


def test_nodes_are_node_users_and_reach_the_server_over_the_bridge(tmp_path: Path) -> None:
    layout = Layout("a", tmp_path)
    write_credentials(layout, STATE)
    rows = list(csv.reader((layout.pki / "tokens.csv").read_text().splitlines()))
    groups = {row[1]: row[3] for row in rows}
    assert groups["system:node:node-2"] == "system:nodes"
    node = yaml.safe_load(layout.kubeconfig_for("node-2").read_text())
    assert node["clusters"][0]["cluster"]["server"] == "https://10.213.7.1:1"
    admin = yaml.safe_load(layout.kubeconfig.read_text())
    assert admin["clusters"][0]["cluster"]["server"] == "https://127.0.0.1:1"
    names = load(layout.pki / "kube-apiserver.crt").extensions.get_extension_for_class(
        x509.SubjectAlternativeName
    )
    assert ipaddress.ip_address("10.213.7.1") in names.value.get_values_for_type(x509.IPAddress)


def test_driver_user_is_in_no_group_at_all(tmp_path: Path) -> None:
    layout = Layout("a", tmp_path)
    write_credentials(layout, STATE)
    rows = list(csv.reader((layout.pki / "tokens.csv").read_text().splitlines()))
    assert [row[3] for row in rows if row[1] == "dra-conformance:driver"] == [""]


def test_authoritys_own_key_is_never_written(tmp_path: Path) -> None:
    Authority(tmp_path, "a")
    assert [path.name for path in tmp_path.iterdir()] == ["ca.crt"]


def test_a_credential_file_that_exists_is_replaced_not_appended(tmp_path: Path) -> None:
    write_tokens(tmp_path / "t", [User("a", "a")])
    tokens = write_tokens(tmp_path / "t", [User("b", "b")])
    assert (tmp_path / "t").read_text() == f'{tokens["b"]},b,b,""\n'


@pytest.mark.parametrize(
    ("name", "organization"),
    [("etcd-client", "dra-conformance"), ("kubelet-client", "system:masters")],
)
def test_client_certificates_have_their_identity_and_no_address(
    tmp_path: Path, name: str, organization: str
) -> None:
    layout = Layout("a", tmp_path)
    write_credentials(layout, STATE)
    certificate = load(layout.pki / f"{name}.crt")
    for identity, value in ((NameOID.COMMON_NAME, name), (NameOID.ORGANIZATION_NAME, organization)):
        assert [one.value for one in certificate.subject.get_attributes_for_oid(identity)] == [
            value
        ]
    names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert [one.value for one in names] == [name]
