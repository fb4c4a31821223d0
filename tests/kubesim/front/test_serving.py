"""``cluster up --reference``: it serves, time passes in it, and it ends without a trace."""

from __future__ import annotations

import signal
import threading
from pathlib import Path

import pytest
from typer.testing import CliRunner

from conformance.cli.commands.cluster import cluster_command as app
from conformance.targets.reference.device_source import NoDriver
from conformance.targets.reference.serving import real_time
from conformance.targets.reference.target import ReferenceOptions, ReferenceTarget
from kube.connection import Connection
from kube.values import Ref
from kubesim.front.serving import seconds_since_epoch
from tests.kubesim import kit
from tests.kubesim.front.served import served


@pytest.mark.slow
@pytest.mark.parametrize("end", ["SIGINT", "SIGTERM", "down"])
def test_it_serves_until_it_is_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, end: str
) -> None:
    with served(tmp_path, "--nodes", "2") as reference:
        connection = Connection.open(reference.kubeconfig, "dra-conformance-test")
        try:
            nodes = connection.request("GET", "/api/v1/nodes")["items"]
            assert len(nodes) == 2
            slices = connection.request("GET", "/apis/resource.k8s.io/v1/resourceslices")["items"]
            assert len(slices) == 2
        finally:
            connection.close()
        if end == "down":
            monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
            command = CliRunner()
            status = command.invoke(app, ["status", "--cluster", "reference", "--name", "test"])
            assert f"running, pid {reference.process.pid}" in status.stdout
            again = command.invoke(app, ["up", "--reference", "--name", "test"])
            assert "is running; end it with" in str(again.exception)
            down = ["down", "--cluster", "reference", "--name", "test"]
            assert command.invoke(app, down).stdout == "removed the reference cluster test\n"
            assert "nothing was removed" in command.invoke(app, down).stdout
            gone = command.invoke(app, ["status", "--cluster", "reference", "--name", "test"])
            assert str(gone.exception) == "there is no reference test"
        else:
            reference.process.send_signal(signal.Signals[end])
        assert reference.process.wait(30) == 0
        assert not reference.kubeconfig.parent.exists()


def test_virtual_time_follows_the_clock() -> None:
    """A pod's grace period ends by itself: nobody asks for anything meanwhile."""
    options = ReferenceOptions(devices=NoDriver("none"), start=seconds_since_epoch())
    with ReferenceTarget(options) as target:
        backend = real_time(target)

        def phase() -> str | None:
            pod = backend.store.get("Pod", "default", "p")
            return None if pod is None else str(pod["status"].get("phase"))

        threading.Thread(target=backend.run, daemon=True).start()
        with backend.changing():
            backend.api.create(kit.pod("p"), "default")
        assert backend.history.wait(lambda: phase() == "Running", 20)
        with backend.changing():
            backend.api.delete(Ref("v1", "Pod", "p", "default"), 1, "default")
        assert backend.history.wait(lambda: phase() is None, 20)
