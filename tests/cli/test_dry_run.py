"""``run --dry-run``: it says what a run would do, and changes nothing."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest

from conformance.scenario.selection import select
from tests.cli.conftest import Call
from tests.kube.fake_api import FakeApi

WRITES = {"POST", "PUT", "PATCH", "DELETE"}


def test_a_cluster_that_is_not_ours_is_not_changed(
    api: FakeApi, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: Call
) -> None:
    monkeypatch.chdir(tmp_path)
    kubeconfig = api.kubeconfig(tmp_path / "kubeconfig")
    asked = ("--target", "cluster", "--cluster", "kubeconfig", "--kubeconfig", str(kubeconfig))
    code, out, _ = command("run", "--dry-run", *asked, "--context", "fake", "--run-id", "planned")
    lines = out.splitlines()
    assert code == 0
    changing = [
        (method, path)
        for method, path, _, _ in api.requests
        if method in WRITES and parse_qs(urlsplit(path).query).get("dryRun") != ["All"]
    ]
    assert changing == []
    assert list(tmp_path.iterdir()) == [kubeconfig]
    assert {line.split()[1] for line in lines if line[:4] in ("run ", "skip")} == {
        loaded.id for loaded in select()
    }
    at = lines.index("skip  core/two-requests-two-devices")
    assert lines[at + 1].startswith("      tier node is not served by this target")
    assert "would make, each with the label dra-conformance.dev/run=planned:" in lines
    assert max(map(len, lines)) <= 80


def test_what_a_scenario_makes_is_counted_by_kind(command: Call) -> None:
    code, out, _ = command("run", "--dry-run", "-k", "core/all-mode-waits-for-device-in-use")
    lines = out.splitlines()
    assert code == 0
    assert lines[:2] == [
        "run   core/all-mode-waits-for-device-in-use",
        "      1 DeviceClass, 1 Namespace, 1 Node, 3 Pod, 3 ResourceClaim, 1",
    ]
    assert "would run 1 scenario and skip 0" in " ".join(lines)
    assert "      cluster-wide: 1 DeviceClass, 1 Namespace, 1 Node, 1 ResourceSlice" in lines


def test_no_cluster_is_started(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: Call
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    code, _, said = command(
        "run", "--dry-run", "--target", "cluster", "--cluster", "local", "--name", "none"
    )
    assert code == 2
    assert "no local cluster 'none' runs; `dra-conformance cluster up` starts one" in said
    assert list(tmp_path.rglob("*")) == []
