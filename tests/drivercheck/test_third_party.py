"""Whatever a driver does on its socket ends a check, and not the run."""

from __future__ import annotations

import os
import socket
import tempfile
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path

import pytest

from conformance.drivercheck import driver
from conformance.drivercheck.bench import Bench
from conformance.drivercheck.driver import DriverUnderCheck
from conformance.drivercheck.result import Outcome
from conformance.drivercheck.run import choose_checks, run

Behaviour = Callable[[socket.socket], None]


def says_nothing(client: socket.socket) -> None:
    client.recv(1)
    time.sleep(30)


def hangs_up(_client: socket.socket) -> None:
    return


def speaks_http(client: socket.socket) -> None:
    client.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
    client.recv(1)


def floods(client: socket.socket) -> None:
    with suppress(OSError):
        while True:
            client.sendall(b"\0" * 65536)


class Stranger:
    """A process of a driver that is only a registration socket."""

    def __init__(self, behaviour: Behaviour) -> None:
        self._behaviour = behaviour

    def __call__(self, environment: Mapping[str, str], log: Path) -> Stranger:
        self._server = socket.socket(socket.AF_UNIX)
        registry = Path(environment["KUBELET_REGISTRAR_DIRECTORY_PATH"])
        self._server.bind(str(registry / "stranger-reg.sock"))
        self._server.listen()
        threading.Thread(target=self._serve, daemon=True).start()
        return self

    def _serve(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._server.accept()
                threading.Thread(target=self._answer, args=(client,), daemon=True).start()

    def _answer(self, client: socket.socket) -> None:
        with client, suppress(OSError):
            self._behaviour(client)

    @property
    def pid(self) -> int:
        return os.getpid()

    def with_boot_id(self, boot_id: Path) -> None:
        return None

    def is_alive(self) -> bool:
        return True

    def signal(self, number: int) -> None:
        self._server.close()

    def wait(self, seconds: float) -> bool:
        return True


@pytest.mark.parametrize("behaviour", [says_nothing, hangs_up, speaks_http, floods])
def test_the_run_ends_with_a_verdict(behaviour: Behaviour, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(driver, "REGISTER_SECONDS", 1.0)
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="dra-", dir="/tmp") as folder:
        bench = Bench(DriverUnderCheck(Path(folder), Stranger(behaviour)))
        try:
            result = run(bench, choose_checks(["registration", "prepare"]))
        finally:
            bench.driver.close()
    first, *rest = result.checks
    assert (first.outcome, result.verdict) == (Outcome.FAILED, "not conformant")
    assert "not registered within 1 s: stranger-reg.sock: " in first.message
    assert {one.outcome for one in rest} == {Outcome.NOT_RUN}
    assert time.monotonic() - began < 30
