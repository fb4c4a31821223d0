"""What an operator sees: metrics, liveness, logs."""

from __future__ import annotations

import json
import logging
import re
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import grpc
import pytest
from grpc_health.v1 import health_pb2

from kube.kubelet import dra_v1_pb2 as v1
from kube.kubelet.rpc import make_stub as stub_of
from nvml_driver.errors import DriverError
from nvml_driver.kubelet.plugin import KubeletPlugin, LivenessServer
from nvml_driver.logs import JsonFormatter, TextFormatter
from nvml_driver.metrics import Metrics, MetricsServer
from tests.nvml_driver.helpers import make_claim, make_core, result


def scrape(server: MetricsServer) -> dict[str, float]:
    with urllib.request.urlopen(f"http://127.0.0.1:{server.port}/metrics") as answer:
        text = answer.read().decode()
    lines = [line.rsplit(" ", 1) for line in text.splitlines() if not line.startswith("#")]
    return {name.replace('driver="gpu.nvidia.com",', ""): float(value) for name, value in lines}


@pytest.fixture
def metrics() -> Metrics:
    return Metrics("gpu.nvidia.com")


@pytest.fixture
def plugin(tmp_path: Path, metrics: Metrics) -> Iterator[KubeletPlugin]:
    claims = {"claim-a": make_claim(result("gpu-0"), result("gpu-1", "b"), uid="a")}
    core = make_core(tmp_path)
    metrics.watch_devices(
        lambda: sum(map(len, core.list_prepared().values())), lambda: len(core.inventory)
    )
    running = KubeletPlugin(
        core,
        lambda _namespace, name: claims.get(name),
        plugins=tmp_path / "p",
        registry=tmp_path / "r",
        metrics=metrics,
    )
    running.start()
    yield running
    running.stop(grace=0)


def test_metrics_count_calls_devices_and_errors(plugin: KubeletPlugin, metrics: Metrics) -> None:
    server = MetricsServer(metrics, 0, "127.0.0.1")
    try:
        assert scrape(server)['nvidia_dra_requests_total{operation="prepare"}'] == 0
        with grpc.insecure_channel(f"unix://{plugin.dra_socket}") as channel:
            stub = stub_of(v1, channel)
            claims = [v1.Claim(namespace="n", name=f"claim-{uid}", uid=uid) for uid in "ab"]
            request = v1.NodePrepareResourcesRequest(claims=claims)
            stub.NodePrepareResources(request, timeout=10)
        found = scrape(server)
    finally:
        server.stop()
    assert found['nvidia_dra_requests_total{operation="prepare"}'] == 1
    assert found['nvidia_dra_requests_total{operation="unprepare"}'] == 0
    assert found['nvidia_dra_requests_inflight{operation="prepare"}'] == 0
    assert found['nvidia_dra_request_duration_seconds_count{operation="prepare"}'] == 1
    assert found['nvidia_dra_request_duration_seconds_bucket{le="45.0",operation="prepare"}'] == 1
    assert found['nvidia_dra_node_prepare_errors_total{error_type="PrepareError"}'] == 1
    assert found['nvidia_dra_prepared_devices{driver="gpu.nvidia.com"}'] == 2
    assert found['nvidia_dra_devices{driver="gpu.nvidia.com"}'] == 4
    assert found["process_resident_memory_bytes"] > 0


def test_a_port_that_is_taken_is_one_message(metrics: Metrics) -> None:
    server = MetricsServer(metrics, 0, "127.0.0.1")
    try:
        with pytest.raises(DriverError, match=f"cannot serve metrics on port {server.port}"):
            MetricsServer(metrics, server.port, "127.0.0.1")
    finally:
        server.stop()


def test_liveness_goes_through_the_sockets_that_the_kubelet_uses(plugin: KubeletPlugin) -> None:
    server = LivenessServer(
        0, dra_socket=plugin.dra_socket, registration_socket=plugin.registration_socket
    )
    serving, failing = (
        health_pb2.HealthCheckResponse.SERVING,
        health_pb2.HealthCheckResponse.NOT_SERVING,
    )
    try:
        with grpc.insecure_channel(f"127.0.0.1:{server.port}") as channel:
            check = stub_of(health_pb2, channel).Check
            for service in ("", "liveness"):
                request = health_pb2.HealthCheckRequest(service=service)
                assert check(request, timeout=10).status == serving
            with pytest.raises(grpc.RpcError) as caught:
                check(health_pb2.HealthCheckRequest(service="other"), timeout=10)
            assert caught.value.code() is grpc.StatusCode.NOT_FOUND
            plugin._dra.stop(0).wait()
            assert check(health_pb2.HealthCheckRequest(), timeout=20).status == failing
    finally:
        server.stop()


def record(message: str, level: int = logging.WARNING) -> logging.LogRecord:
    return logging.LogRecord("nvml_driver.core", level, "/x/core.py", 12, message, ("é\n",), None)


def test_json_logs_are_one_object_a_line() -> None:
    line = JsonFormatter().format(record("claim %s"))
    assert "\n" not in line
    entry = json.loads(line)
    assert entry.pop("ts") > 1_600_000_000_000
    assert entry == {
        "caller": "core.py:12",
        "level": "warning",
        "logger": "nvml_driver.core",
        "msg": "claim é\n",
    }


def test_text_logs_look_like_klogs() -> None:
    line = TextFormatter().format(record("claim %.1s", logging.INFO))
    assert re.fullmatch(r"I\d{4} \d\d:\d\d:\d\d\.\d{6} +\d+ core\.py:12\] claim é", line)
