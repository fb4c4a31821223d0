"""Many clients at once: every watch has every event once, and memory stays bounded."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import psutil
import pytest

from kube.connection import Connection
from kubesim.front.server import Front
from tests.kubesim.front import watchers
from tests.kubesim.front.conftest import CLAIMS, Client, claim
from tests.kubesim.front.test_hostile_clients import connect

_CLIENTS = 4
_MIB = 1 << 20


@contextmanager
def serve(folder: Path) -> Iterator[tuple[psutil.Process, Path]]:
    """Serve a simulated Kubernetes in a process of its own; yields it and its kubeconfig."""
    environment = os.environ | {"XDG_STATE_HOME": str(folder)}
    command = (sys.executable, "-m", "kubesim", "serve")
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True) as server:
        try:
            assert server.stdout is not None
            line = server.stdout.readline()
            yield psutil.Process(server.pid), Path(line.strip().removeprefix("export KUBECONFIG="))
        finally:
            server.terminate()


def write_claims(connection: Connection, prefix: str, most: int, until: float) -> list[str]:
    """Create claims until a moment, at most so many; returns their names."""
    names = []
    for number in range(most):
        if time.monotonic() > until:
            break
        names.append(f"{prefix}-{number}")
        connection.request("POST", CLAIMS, None, claim(names[-1]))
    return names


@pytest.mark.slow
@pytest.mark.parametrize(
    ("number_of_watches", "seconds", "most_writes"),
    [
        (5, 60.0, 200),
        pytest.param(50, 60.0, 60_000, marks=pytest.mark.everything),
    ],
    ids=["few", "many"],
)
def test_no_watch_loses_an_event(
    tmp_path: Path, number_of_watches: int, seconds: float, most_writes: int
) -> None:
    """At most a thousand writes a second; how many there were is printed."""
    with serve(tmp_path) as (server, kubeconfig):
        program = (sys.executable, watchers.__file__, kubeconfig, f"{CLAIMS}?watch=1")
        command = [*map(str, program), str(number_of_watches), "last"]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as watching:
            assert watching.stdout is not None
            assert watching.stdout.readline() == "ready\n"
            connection = Connection.open(kubeconfig, "dra-conformance-default")
            before = server.memory_info().rss
            begin = time.monotonic()
            with ThreadPoolExecutor(_CLIENTS) as pool:
                most, until = most_writes // _CLIENTS, begin + seconds
                futures = [
                    pool.submit(write_claims, connection, f"claim-{client}", most, until)
                    for client in range(_CLIENTS)
                ]
                written = [name for future in futures for name in future.result()]
            rate = len(written) / (time.monotonic() - begin)
            connection.request("POST", CLAIMS, None, claim("last"))
            result = json.loads(watching.stdout.readline())
            grown = server.memory_info().rss - before
            connection.close()
    print(f"{rate:.0f} writes a second, {number_of_watches} watches, {grown / _MIB:.0f} MiB more")
    assert sorted(result["names"]) == sorted([*written, "last"])
    [(events, digest)] = {tuple(watch) for watch in result["watches"]}
    assert (events, len(digest)) == (len(written) + 1, 64)
    assert grown < 50 * _MIB + 10_000 * len(written)


def test_who_does_not_read_is_cut_off_and_costs_no_memory(front: Front, client: Client) -> None:
    """As with kube-apiserver 1.37.1: after the events that were underway, the stream ends."""
    history = front.backend.history
    history._capacity = 5
    request = (
        f"GET {CLAIMS}?watch=1 HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {client.token}\r\n"
    )
    with connect(front, f"{request}\r\n".encode()) as watching:
        assert watching.recv(1)  # it has begun
        long_claim = claim("c")
        long_claim["metadata"]["annotations"] = {"long": "x" * 200_000}
        for number in range(60):
            long_claim["metadata"]["name"] = f"c{number}"
            assert client.send("POST", CLAIMS, long_claim).status == 201
        answer = bytearray()
        while not answer.endswith(b"\r\n0\r\n\r\n"):  # the end of the stream, not of the connection
            part = watching.recv(1 << 16)
            assert part, "the connection ended within an event"
            answer += part
    assert 0 < answer.count(b'"type":"ADDED"') < 60
    assert len(history.read_events(history.position - 5)) == 5
