from __future__ import annotations

import base64
import json
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
import yaml

from kube import kubeconfig as kubeconfigfile
from kube.base.errors import UsageError
from kube.client import Credentials
from kube.connection import Connection
from kube.kubeconfig import default_kubeconfig, load_config
from localkube.kubeconfig import KubeconfigCluster
from tests.kube.fake_api import TOKEN, FakeApi
from tests.kube.rude_server import write_kubeconfig

SERVER = "https://127.0.0.1:1"


def refusal(path: Path) -> str:
    with pytest.raises(UsageError) as caught:
        Connection.open(path, "rude")
    assert str(caught.value).startswith(str(path))
    assert "\n" not in str(caught.value)
    return str(caught.value)


def authorization(path: Path, context: str = "rude") -> str | None:
    return Credentials(load_config(path, context)).make_authorization() or None


def id_token(**claims: Any) -> str:
    body = base64.urlsafe_b64encode(json.dumps(claims).encode()).decode().rstrip("=")
    return f"eyJhbGciOiJub25lIn0.{body}.c2ln"


def oidc(token: Any) -> dict[str, Any]:
    return {"auth-provider": {"name": "oidc", "config": {"id-token": token}}}


@pytest.mark.parametrize(
    "server",
    [
        5,
        "nonsense",
        "ftp://host",
        "https://",
        "https://host:port",
        "https://[::1",
        "https://a b\x1b",
    ],
)
def test_a_server_that_is_no_address_is_refused(tmp_path: Path, server: object) -> None:
    assert "cluster 'c': server" in refusal(write_kubeconfig(tmp_path / "config", server))


@pytest.mark.parametrize(
    ("user", "said"),
    [
        pytest.param(5, "user must be a mapping", id="number"),
        pytest.param({"token": 5}, "token must be a string", id="number as token"),
        pytest.param({"token": "se cret\n\n x"}, "characters that are not allowed", id="token"),
        pytest.param({"tokenFile": "gone"}, "gone cannot be read", id="token file"),
        pytest.param({"exec": 5}, "exec must be a mapping", id="exec"),
        pytest.param({"auth-provider": {"name": "gcp"}}, "'gcp' is not supported", id="gcp"),
        pytest.param({"auth-provider": 5}, "is not supported", id="number as provider"),
        pytest.param(oidc(None), "no id-token", id="oidc without token"),
        pytest.param(oidc("a.b"), "is not a JWT", id="oidc with nonsense"),
        pytest.param(oidc(id_token(exp=1)), "has expired", id="oidc too late"),
        pytest.param(
            {"token": "t", "as": "admin"}, "impersonates another user", id="impersonation"
        ),
        pytest.param({"client-certificate-data": "AAAAA"}, "cannot be used", id="certificate"),
    ],
)
def test_a_user_that_cannot_be_used_is_refused_without_its_secret(
    tmp_path: Path, user: object, said: str
) -> None:
    message = refusal(write_kubeconfig(tmp_path / "config", SERVER, user))
    assert said in message
    assert "'rude'" in message or "'u'" in message
    assert "se cret" not in message


def test_a_context_of_a_user_that_is_not_there_is_not_run_as_nobody(tmp_path: Path) -> None:
    path = write_kubeconfig(tmp_path / "config", SERVER)
    path.write_text(path.read_text().replace("user: u", "user: somebody"))
    assert "names user 'somebody', which is not defined" in refusal(path)


def test_a_context_without_a_user_is_nobody_in_particular(tmp_path: Path) -> None:
    path = write_kubeconfig(tmp_path / "config", SERVER)
    path.write_text(path.read_text().replace("user: u\n", "user: ''\n"))
    assert authorization(path) is None


@pytest.mark.parametrize(
    ("text", "said"),
    [
        pytest.param("[" * 500, "nested too deeply", id="deep"),
        pytest.param("a: 2001-99-99", "a value in it cannot be read", id="date"),
        pytest.param("contexts: []\nusers: 5", "not a kubeconfig", id="users"),
        pytest.param("contexts: [{name: rude}, {name: rude}]", "has 'rude' twice", id="twice"),
        pytest.param("contexts: [{name: rude, context: 5}]", "must be a mapping", id="context"),
        pytest.param("contexts: [5, {name: 6}]", "no context 'rude'", id="names"),
    ],
)
def test_a_file_that_is_not_as_it_should_be_is_said(tmp_path: Path, text: str, said: str) -> None:
    path = tmp_path / "config"
    path.write_text(text)
    assert said in refusal(path)


def test_a_folder_or_a_file_of_another_encoding_is_said(tmp_path: Path) -> None:
    assert refusal(tmp_path) == f"{tmp_path}: cannot be read: Is a directory"
    path = tmp_path / "config"
    path.write_bytes(b"a: \xff")
    assert "is not UTF-8 text (byte 3)" in refusal(path)


def test_a_huge_file_is_not_read_to_its_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kubeconfigfile, "MAX_BYTES", 1 << 20)
    path = tmp_path / "config"
    path.symlink_to("/dev/zero")
    assert "larger than 1 MiB" in refusal(path)


def test_a_password_in_the_servers_address_is_used_and_never_shown(tmp_path: Path) -> None:
    path = write_kubeconfig(tmp_path / "config", "https://me:PASS%40WORD@127.0.0.1:1/", {})
    chosen = load_config(path, "rude")
    assert chosen.cluster["server"] == "https://127.0.0.1:1"
    assert "WORD" not in repr(chosen)
    assert authorization(path) == "Basic " + base64.b64encode(b"me:PASS@WORD").decode()


@pytest.mark.parametrize(
    ("user", "header"),
    [
        ({"token": "tok"}, "Bearer tok"),
        ({"username": "me", "password": "pass"}, "Basic bWU6cGFzcw=="),
        ({"tokenFile": "token", "token": "other"}, "Bearer from-file"),
        (oidc(id_token(exp=4102444800)), f"Bearer {id_token(exp=4102444800)}"),
    ],
)
def test_who_a_user_is(tmp_path: Path, user: dict[str, Any], header: str) -> None:
    (tmp_path / "token").write_text("from-file\n")
    assert authorization(write_kubeconfig(tmp_path / "config", SERVER, user)) == header


def test_the_environment_names_the_file_where_no_option_does(
    api: FakeApi, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = api.kubeconfig(tmp_path / "config")
    monkeypatch.setenv("KUBECONFIG", str(path))
    assert KubeconfigCluster(None, "fake").up().kubeconfig == path
    with pytest.raises(UsageError, match="--context, the current one is never taken"):
        KubeconfigCluster(None, "").up()


@pytest.mark.parametrize("environment", [{}, {"KUBECONFIG": ""}, {"KUBECONFIG": ":"}])
def test_without_it_the_file_is_the_users_own(environment: dict[str, str]) -> None:
    assert default_kubeconfig(environment) == Path.home() / ".kube" / "config"


def test_several_files_are_one_and_the_first_that_has_a_name_wins(
    api: FakeApi, tmp_path: Path
) -> None:
    first, second = tmp_path / "a" / "first", tmp_path / "b" / "second"
    whole = yaml.safe_load(api.kubeconfig(tmp_path / "whole").read_text())
    for path in (first, second):
        path.parent.mkdir()
    (tmp_path / "a" / "token").write_text(TOKEN)
    first.write_text(
        yaml.safe_dump(
            {
                "contexts": whole["contexts"],
                "users": [{"name": "user", "user": {"tokenFile": "token"}}],
            }
        )
    )
    wrong = [{"name": "user", "user": {"token": "another"}}]
    second.write_text(yaml.safe_dump({"clusters": whole["clusters"], "users": wrong}))
    named = default_kubeconfig({"KUBECONFIG": f"{first}:{tmp_path / 'gone'}:{second}"})
    assert authorization(named, "fake") == f"Bearer {TOKEN}"
    assert KubeconfigCluster(named, "fake").up().kubernetes_version == "v1.37.1+fake"


def test_no_proxy_of_the_environment_is_used_for_this_machine(
    api: FakeApi, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:1")
    monkeypatch.delenv("no_proxy", raising=False)
    with closing(Connection.open(api.kubeconfig(tmp_path / "config"), "fake")) as connection:
        assert connection.request("GET", "/version")["gitVersion"] == api.git_version
