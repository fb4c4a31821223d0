from __future__ import annotations

import json
import shlex
import time
from base64 import b64decode
from contextlib import suppress
from pathlib import Path
from typing import Any

import psutil
import pytest
import yaml

from kube import execplugin
from kube.base.errors import InfrastructureError, UsageError
from kube.client import Credentials
from kube.connection import Connection
from kube.kubeconfig import load_config
from localkube.kubeconfig import KubeconfigCluster
from tests.kube.fake_api import TOKEN, FakeApi

VERSION = "client.authentication.k8s.io/v1"


def credential(**status: Any) -> str:
    document = {"apiVersion": VERSION, "kind": "ExecCredential", "status": status}
    return f"echo {shlex.quote(json.dumps(document))}"


def with_plugin(api: FakeApi, path: Path, script: str, **more: Any) -> Path:
    config = yaml.safe_load(api.kubeconfig(path).read_text())
    plugin = {"apiVersion": VERSION, "command": "sh", "args": ["-c", script], **more}
    config["users"][0]["user"] = {"exec": plugin}
    path.write_text(yaml.safe_dump(config))
    return path


def error_of(path: Path) -> str:
    with pytest.raises(InfrastructureError) as caught:
        KubeconfigCluster(path, "fake").up()
    assert f"{path}: user 'user': the credential plugin 'sh' " in str(caught.value)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_the_token_that_a_plugin_prints_is_used(api: FakeApi, tmp_path: Path) -> None:
    script = 'test "$GREETING" = hello && ' + credential(token=TOKEN)
    path = with_plugin(
        api, tmp_path / "config", script, env=[{"name": "GREETING", "value": "hello"}]
    )
    assert KubeconfigCluster(path, "fake").up().context == "fake"


def test_the_certificate_that_a_plugin_prints_is_used(api: FakeApi, tmp_path: Path) -> None:
    script = credential(clientCertificateData="CERTIFICATE", clientKeyData="KEY")
    credentials = Credentials(load_config(with_plugin(api, tmp_path / "config", script), "fake"))
    assert credentials.make_authorization() == ""
    found = {name: b64decode(text) for name, text in credentials.find_certificate().items()}
    assert found == {"client-certificate-data": b"CERTIFICATE", "client-key-data": b"KEY"}


def test_a_plugin_is_reported_the_version_and_the_cluster(api: FakeApi, tmp_path: Path) -> None:
    told = tmp_path / "told"
    script = f'printf %s "$KUBERNETES_EXEC_INFO" > {told}; ' + credential(token=TOKEN)
    path = with_plugin(api, tmp_path / "config", script, provideClusterInfo=True)
    Connection.open(path, "fake").close()
    info = json.loads(told.read_text())
    assert (info["kind"], info["apiVersion"]) == ("ExecCredential", VERSION)
    assert info["spec"] == {"interactive": False, "cluster": {"server": api.url}}


def test_a_plugin_that_hangs_is_stopped_with_all_that_it_started(
    api: FakeApi, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(execplugin, "SECONDS", 0.5)
    pid = tmp_path / "pid"
    script = f"sleep 3600 & echo $! > {pid}; sleep 3600"
    message = error_of(with_plugin(api, tmp_path / "config", script))
    assert "did not end within 0.5 s" in message
    with suppress(psutil.NoSuchProcess):
        started = psutil.Process(int(pid.read_text()))
        deadline = time.monotonic() + 30
        while started.status() != psutil.STATUS_ZOMBIE:  # which its new parent may leave it
            assert time.monotonic() < deadline
            time.sleep(0.05)


def test_a_plugin_that_closes_its_output_and_stays_is_stopped(
    api: FakeApi, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(execplugin, "SECONDS", 0.5)
    path = with_plugin(api, tmp_path / "config", "exec >&- 2>&-; sleep 3600")
    assert "did not end within 0.5 s" in error_of(path)


def test_a_plugin_that_fails_is_said_with_its_own_reason_and_without_secrets(
    api: FakeApi, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    script = "echo first >&2; printf '\\033[31mexpired token=abcdefgh\\n' >&2; exit 3"
    message = error_of(with_plugin(api, tmp_path / "config", script))
    assert "ended with status 3: [31mexpired token=<redacted>;" in message
    assert not caplog.records
    assert not api.requests


@pytest.mark.parametrize(
    ("script", "said"),
    [
        pytest.param("echo no", "did not print an ExecCredential", id="no JSON"),
        pytest.param("echo 5", "did not print an ExecCredential", id="no object"),
        pytest.param(credential().replace("/v1", "/v1beta1"), "printed apiVersion", id="version"),
        pytest.param(credential(), "neither a token nor a certificate", id="nothing"),
        pytest.param(credential(token=5), "that is not a string", id="number"),
        pytest.param(
            credential(token="x", expirationTimestamp="soon"), "not an RFC 3339", id="time"
        ),
        pytest.param(credential(clientCertificateData="x"), "neither a token", id="no key"),
    ],
)
def test_what_is_no_credential_is_said(
    api: FakeApi, tmp_path: Path, script: str, said: str
) -> None:
    path = with_plugin(api, tmp_path / "config", script)
    with pytest.raises(InfrastructureError, match=said):
        KubeconfigCluster(path, "fake").up()


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"command": "no-such-plugin", "installHint": "get it"}, "No such file or directory; get"),
        ({"command": None}, "exec has no command"),
        ({"apiVersion": "v1"}, r"exec\.apiVersion must be"),
        ({"args": [1]}, r"exec\.args must be a list of strings"),
        ({"env": [{"name": "A"}]}, r"exec\.env must be"),
        ({"interactiveMode": "Always"}, "a run is not interactive"),
    ],
)
def test_a_plugin_that_is_not_properly_described_is_a_usage_error(
    api: FakeApi, tmp_path: Path, change: dict[str, Any], said: str
) -> None:
    path = with_plugin(api, tmp_path / "config", "true", **change)
    with pytest.raises(UsageError, match=said):
        KubeconfigCluster(path, "fake").up()


def test_a_credential_that_runs_out_is_made_anew_and_not_before(
    api: FakeApi, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    runs = tmp_path / "runs"
    script = f"echo x >> {runs}; " + credential(
        token=TOKEN, expirationTimestamp="2100-01-01T00:00:00Z"
    )
    connection = Connection.open(with_plugin(api, tmp_path / "config", script), "fake")

    def header() -> str:
        connection.request("GET", "/version")
        return {k.title(): v for k, v in api.requests[-1][2].items()}["Authorization"]

    assert header() == f"Bearer {TOKEN}"
    assert runs.read_text().count("x") == 1
    monkeypatch.setattr("kube.client.time.time", lambda: 4102444799.0)
    assert header() == f"Bearer {TOKEN}"
    assert runs.read_text().count("x") == 2
    connection.close()
