"""``python -m kubesim serve``: what it serves, and that bad input is one message."""

from __future__ import annotations

import dataclasses
import json
import os
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from kube.base.processes import identify_process
from kube.connection import Connection
from kubesim import __main__ as program


@pytest.fixture(autouse=True)
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where what outlives a run is kept."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    return tmp_path / "state"


@pytest.mark.slow
def test_it_serves_until_it_is_ended_and_leaves_nothing(tmp_path: Path, state: Path) -> None:
    file = tmp_path / "kubeconfig"
    command = (sys.executable, "-m", "kubesim", "serve", "--nodes", "2", "--kubeconfig", str(file))
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == f"export KUBECONFIG={file}\n"
            connection = Connection.open(file, "dra-conformance-default")
            nodes = connection.request("GET", "/api/v1/nodes")["items"]
            connection.close()
            assert [node["metadata"]["name"] for node in nodes] == ["node-1", "node-2"]
        finally:
            process.send_signal(signal.SIGTERM)
        assert process.wait(30) == 0
    assert not file.exists()
    assert not (state / "dra-conformance/kubesim/default").exists()


_ANSWERED = """
import ssl, sys, threading, urllib.request
from pathlib import Path
from kubesim import command
from kubesim.front.server import Front
from kubesim.front.serving import RealTime
from kubesim.nodes.node import Node
from kubesim.world import World

folder = Path(sys.argv[1])
front = Front(RealTime(World(nodes=[Node("node-1")])), folder, "test")
trusted = ssl.create_default_context(cafile=folder / "pki/ca.crt")
token = next(iter(front._tokens))
asked = urllib.request.Request(f"{front.url}/api/v1/namespaces/default")
asked.add_header("authorization", f"Bearer {token}")
print(urllib.request.urlopen(asked, context=trusted).status)
print(*sorted(set(sys.argv[2:]) & set(sys.modules)))
front.close()
"""


def test_what_the_first_answer_does_not_need_is_not_imported(tmp_path: Path) -> None:
    """Each of these took 1 to 20 % of the time until a server answers."""
    late = (
        "typer",
        "pydantic",
        "reference_allocator.allocator",
        "reference_allocator.cel",
        "re2",
        "kube.base.redaction",
    )
    done = subprocess.run(
        [sys.executable, "-c", _ANSWERED, str(tmp_path), *late],
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    assert done.stdout.splitlines() == ["200", ""]


def no_folder(folder: Path) -> tuple[str, ...]:
    (folder / "state").write_text("a file")
    return ()


def another_instance(folder: Path) -> tuple[str, ...]:
    its = folder / "state/dra-conformance/kubesim/default"
    its.mkdir(parents=True)
    identity = identify_process(os.getpid())
    assert identity is not None
    (its / "process.json").write_text(json.dumps(dataclasses.asdict(identity)))
    return ()


def a_kubeconfig(folder: Path) -> tuple[str, ...]:
    (folder / "kubeconfig").write_text("mine")
    return ("--kubeconfig", str(folder / "kubeconfig"))


def no_folder_of_the_kubeconfig(folder: Path) -> tuple[str, ...]:
    return ("--kubeconfig", str(folder / "none/kubeconfig"))


def refusal(
    options: tuple[str, ...], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> str:
    """The one line that it says of its options before it ends with exit code 2."""
    monkeypatch.setattr(sys, "argv", ["kubesim", "serve", *options])
    assert program.main() == 2
    [line] = capsys.readouterr().err.splitlines()
    return line


def test_a_port_that_is_taken_is_named(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        line = refusal(("--port", str(port)), monkeypatch, capsys)
    assert line.startswith(
        f"error: port {port} of 127.0.0.1 cannot be listened on: Address already"
    )


@pytest.mark.parametrize(
    ("prepare", "message"),
    [
        pytest.param(no_folder, "cannot be written: .*; set XDG_STATE_HOME", id="folder"),
        pytest.param(another_instance, f"is running; end it with `kill {os.getpid()}`", id="two"),
        pytest.param(a_kubeconfig, "kubeconfig exists; name another file", id="kubeconfig"),
        pytest.param(
            no_folder_of_the_kubeconfig, "cannot be written: No such file", id="no folder"
        ),
        pytest.param(lambda _: ("--name", "A b"), "cluster name 'A b': use", id="name"),
        pytest.param(lambda _: ("--kubernetes", "1.2"), "version '1.2' is not supported", id="old"),
        pytest.param(lambda _: ("--feature-gate", "X"), "must be NAME=true or", id="gate"),
        pytest.param(lambda _: ("--feature-gate", "X=true"), "no DRA feature gate X", id="unknown"),
        pytest.param(
            lambda _: ("--nodes", "1001"),
            "--nodes: '1001': must be a number from 0 to 1000",
            id="many",
        ),
        pytest.param(lambda _: ("--port", "http"), "--port: 'http': must be a number", id="port"),
        pytest.param(lambda _: ("--node", "2"), "--node 2; see python -m kubesim", id="part"),
    ],
)
def test_bad_input_is_one_message_and_nothing_is_overwritten(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    prepare: Callable[[Path], tuple[str, ...]],
    message: str,
) -> None:
    options = prepare(tmp_path)
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    line = refusal(options, monkeypatch, capsys)
    assert line.startswith("error: ")
    assert re.search(message, line), line
    assert {path: path.read_bytes() for path in before} == before
