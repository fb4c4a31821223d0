from __future__ import annotations

import time
from pathlib import Path

import pytest

from kube import connection as connection_module
from kube import transport
from kube.base.errors import InfrastructureError
from kube.connection import Connection
from kube.limits import Limits
from localkube.kubeconfig import KubeconfigCluster
from tests.kube.rude_server import Behaviour, flood, rude_server, trickle, write_kubeconfig

LIMITS = Limits(connect=1.0, quiet=30.0, whole=1.0)

RUDE = [
    pytest.param(trickle(b"HTTP/1.1 200 OK\r\nX-A: "), "not complete after 1 s", id="header"),
    pytest.param(
        trickle(b"HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n"),
        "not complete after 1 s",
        id="body",
    ),
    pytest.param(
        trickle(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nffff\r\n"),
        "not complete after 1 s",
        id="chunk",
    ),
    pytest.param(trickle(b"HTTP/1.1 200 OK\r\n\r\n"), "not complete after 1 s", id="no length"),
    pytest.param(flood, "longer than 2 MiB", id="endless"),
]


@pytest.fixture(autouse=True)
def small_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection_module, "LIMITS", LIMITS)
    monkeypatch.setattr(connection_module, "PATIENCE", 0.1)
    monkeypatch.setattr(transport, "MAX_BYTES", 2 << 20)


@pytest.mark.parametrize(("behave", "said"), RUDE)
def test_requests_are_bounded_in_time_and_size(
    tmp_path: Path, behave: Behaviour, said: str
) -> None:
    with rude_server(behave) as url:
        path = write_kubeconfig(tmp_path / "config", url)
        start = time.monotonic()
        with pytest.raises(InfrastructureError, match=said) as caught:
            KubeconfigCluster(path, "rude").up()
        assert time.monotonic() - start < 5
    assert url in str(caught.value)
    assert "GET /version" in str(caught.value)


def test_an_answer_that_is_only_slow_is_read_to_its_end(tmp_path: Path) -> None:
    head = b"HTTP/1.1 200 OK\r\nContent-Length: 12\r\n\r\n{"
    with rude_server(trickle(head + b"}")) as url:
        connection = Connection.open(write_kubeconfig(tmp_path / "config", url), "rude")
        assert connection.request("GET", "/version") == {}
        connection.close()
