from __future__ import annotations

import json
import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kube.base.redaction import REDACTED, redact, redact_json, redact_log, redacted_text

JWT = "eyJhbGciOiJSUzI1NiIsImtpZCI6IiJ9.eyJpc3MiOiJrdWJlcm5ldGVzIn0.c2lnbmF0dXJl-_x"


@pytest.mark.parametrize(
    ("text", "secret"),
    [
        pytest.param("Authorization: Bearer abcdef0123456789", "abcdef", id="bearer header"),
        pytest.param("authorization: basic dXNlcjpwYXNz", "dXNlcjpwYXNz", id="basic header"),
        pytest.param(f"using {JWT}, then", "eyJ", id="JWT in prose"),
        pytest.param("users:\n- user:\n    token: abc123\n", "abc123", id="kubeconfig token"),
        pytest.param("    client-key-data: LS0tLS1C\n", "LS0tLS1C", id="kubeconfig key"),
        pytest.param("- id-token: abc123", "abc123", id="list item"),
        pytest.param("token: |\n  abc123\n  def456\nname: x", "abc123", id="block scalar"),
        pytest.param("token: |\n  abc123\n  def456\nname: x", "def456", id="whole block scalar"),
        pytest.param('{"token": "abc123", "a": 1}', "abc123", id="JSON"),
        pytest.param('{"bearerToken":"abc123"}', "abc123", id="JSON in camelCase"),
        pytest.param(r'"{\"token\":\"abc123\"}"', "abc123", id="JSON in a JSON string"),
        pytest.param(r'{"token": "abc\"123"}', "123", id="escaped quote in the value"),
        pytest.param("{'password': 'abc123'}", "abc123", id="Python"),
        pytest.param("{token: abc123, a: b}", "abc123", id="YAML flow"),
        pytest.param("AWS_SECRET_ACCESS_KEY=abc123", "abc123", id="environment"),
        pytest.param("kubectl --token=abc123 get pods", "abc123", id="flag"),
        pytest.param("kubectl --token abc123 get pods", "abc123", id="flag with a space"),
        pytest.param("started with token=abc123 here", "abc123", id="assignment in prose"),
        pytest.param("GET /x?a=1&access_token=abc123 200", "abc123", id="query"),
        pytest.param("https://user:abc123@host/path", "abc123", id="address"),
        pytest.param(
            "-----BEGIN RSA PRIVATE KEY-----\nabc123\n-----END RSA PRIVATE KEY-----",
            "abc123",
            id="key",
        ),
        pytest.param("-----BEGIN PRIVATE KEY-----\nabc123", "abc123", id="key that was cut off"),
    ],
)
def test_a_credential_is_taken_out(text: str, secret: str) -> None:
    assert secret in text
    for hidden in (redact(text), redact_log(text)):
        assert secret not in hidden
        assert REDACTED in hidden


@pytest.mark.parametrize(
    "text",
    [
        "unexpected token: expected a number",
        "automountServiceAccountToken: {}",
        "tokenExpirationSeconds: 3600",
        "secretName: server-tls",
        "secret:\n  name: x",
        "0/3 nodes are available: 3 cannot allocate all claims",
        "a bearer of news",
        "a selector secret==x or token == y",
        "2026-11-21T10:00:00Z eyJ is not a token",
    ],
)
def test_what_is_no_credential_stays(text: str) -> None:
    assert redact(text) == text


@pytest.mark.parametrize(
    "text",
    [
        "0/1 nodes are available: 1 cannot allocate all claims.",
        "uid: 0b5ac1f6-6a6f-4c2b-9d0e-2f3f1f0a9c11",
        "mountPath: /var/run/secrets/kubernetes.io/serviceaccount",
        "GPU_DEVICE_0=gpu-0",
        "serviceAccountName: default",
    ],
)
def test_in_a_log_what_is_no_credential_stays(text: str) -> None:
    assert redact_log(text) == redact(text) == text


def test_what_surrounds_a_credential_stays() -> None:
    text = '{"user": "x", "token": "abc123", "namespace": "ns"}'
    assert json.loads(redact(text)) == {"user": "x", "token": REDACTED, "namespace": "ns"}
    assert redact("token: |\n  abc\n  def\nname: x") == f"token: {REDACTED}\nname: x"


@given(
    st.text()
    | st.lists(st.sampled_from(["token: ", "Bearer ", '"', "\\", "\n ", JWT])).map("".join)
)
def test_redaction_is_idempotent_and_gives_utf8(text: str) -> None:
    once = redact(text)
    assert redact(once) == once
    once.encode()


@pytest.mark.parametrize("piece", ["x", "token", '"', "token: |\n ", "eyJ", "- ", "://a:", "\\"])
def test_redaction_takes_time_in_proportion_to_the_text(piece: str) -> None:
    text = piece * (400_000 // len(piece))
    begin = time.process_time()
    redact(text)
    assert time.process_time() - begin < 5


Json = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3)
    ),
    max_leaves=10,
)


@given(Json)
def test_json_without_credentials_is_copied(value: Any) -> None:
    assert redact_json(value) == value


def test_json_keeps_its_shape() -> None:
    value = {
        "token": "abc",
        "attributes": {"token": {"string": "kept"}},
        "list": [f"x {JWT}", 7, None, True],
    }
    assert redact_json(value) == {
        "token": REDACTED,
        "attributes": {"token": {"string": "kept"}},
        "list": [f"x {REDACTED}", 7, None, True],
    }


def test_in_a_log_a_credential_in_the_middle_of_a_line_is_taken_out() -> None:
    text = 'level=error msg=no password: hunter22 "token": "abcdefgh" rest'
    shown = redact_log(text)
    assert shown == f'level=error msg=no password: {REDACTED} "token": "{REDACTED}" rest'
    assert redact_log(shown) == shown


def test_json_is_indented_unless_that_would_make_it_many_times_as_long() -> None:
    assert redacted_text({"b": [1], "token": "x"}, 2).splitlines()[1] == '  "b": ['
    deep: Any = [0] * 400_000
    for _ in range(100):
        deep = [deep]
    assert len(redacted_text(deep, 2)) < 1_500_000
