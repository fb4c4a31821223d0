"""The suite's commands against a served reference, which answers them as a cluster does."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from tests.cli.conftest import Call
from tests.kubesim.front.conftest import Client
from tests.kubesim.front.served import served

SCENARIO = "core/template-is-checked"


@pytest.fixture
def kubeconfig(tmp_path: Path) -> Iterator[Path]:
    with served(tmp_path, "--nodes", "1") as reference:
        yield reference.kubeconfig


@pytest.mark.slow
def test_a_run_is_resumed_and_what_it_left_is_deleted(call: Call, kubeconfig: Path) -> None:
    context = yaml.safe_load(kubeconfig.read_text())["current-context"]
    cluster = ("--cluster", "kubeconfig", "--kubeconfig", kubeconfig, "--context", context)
    run = ("run", "--target", "cluster", *cluster, "-k", SCENARIO)
    done = call(*run, "--output", "results")
    assert (done.code, "1 passed" in done.out) == (0, True), done
    results = Path("results/results.ndjson")
    header = results.read_text().splitlines(keepends=True)[0]
    results.write_text(header)  # as if it had been killed during the scenario
    done = call(*run, "--resume", "results")
    assert (done.code, "1 passed" in done.out) == (0, True), done
    left = {"metadata": {"name": "left", "labels": {"dra-conformance.dev/run": "abc"}}}
    path = "/apis/resource.k8s.io/v1/deviceclasses"
    client = Client(kubeconfig)
    assert client.send("POST", path, {**left, "spec": {}}).status == 201
    done = call("cleanup", *cluster)
    assert "deleting DeviceClass left\n1 found, 0 left" in done.out, done
    assert client.send("GET", f"{path}/left").status == 404
