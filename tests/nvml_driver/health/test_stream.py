"""Device health as the kubelet hears it, over a real stream."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import grpc
import pytest

from kube.kubelet import dra_health_v1_pb2 as v1
from kube.kubelet import dra_health_v1alpha1_pb2 as v1alpha1
from kube.kubelet.rpc import make_stub as stub_of
from nvml_driver.health.stream import LEASE_SECONDS, MAX_STREAMS, RESEND_SECONDS, HealthFeed
from nvml_driver.kubelet.service import health_service
from nvml_driver.model.inventory import Inventory
from tests.nvml_driver.helpers import make_core

BOTH = pytest.mark.parametrize("messages", [v1, v1alpha1], ids=["v1", "v1alpha1"])


class Served:
    """A feed behind a socket."""

    def __init__(self, root: Path, resend: float = 60.0) -> None:
        self.core = make_core(root)
        self.feed = HealthFeed(lambda: self.core.inventory, "node-a", resend_seconds=resend)
        self.core.subscribe(self.feed.notify)
        self.server = grpc.server(ThreadPoolExecutor(MAX_STREAMS + 2))
        self.server.add_generic_rpc_handlers(
            tuple(health_service(messages, self.feed) for messages in (v1, v1alpha1))
        )
        self.server.add_insecure_port(f"unix://{root}/h.sock")
        self.server.start()
        self.channel = grpc.insecure_channel(f"unix://{root}/h.sock")

    def watch(self, messages: Any = v1) -> Any:
        stub = stub_of(messages, self.channel)
        return stub.NodeWatchResources(messages.NodeWatchResourcesRequest(), timeout=20)

    def change(self, **changes: Any) -> None:
        devices = tuple(
            replace(device, **changes) if device.name == "gpu-1" else device
            for device in self.core.inventory
        )
        self.core.set_inventory(Inventory(devices=devices, simulated=True))

    def close(self) -> None:
        self.feed.stop()
        self.channel.close()
        self.server.stop(0).wait()


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Served]:
    running = Served(tmp_path)
    yield running
    running.close()


@BOTH
def test_all_devices_are_sent_at_first_and_again_after_a_change(
    served: Served, messages: Any
) -> None:
    stream = served.watch(messages)
    first = next(stream)
    assert [(d.device.pool_name, d.device.device_name) for d in first.devices] == [
        ("node-a", f"gpu-{minor}") for minor in range(4)
    ]
    assert {d.health for d in first.devices} == {messages.HealthStatus.HEALTHY}
    assert {d.health_check_timeout_seconds for d in first.devices} == {LEASE_SECONDS}
    assert all(d.last_updated_time > 1_700_000_000 for d in first.devices)

    served.change(health="Unhealthy", health_message="XID 79: the GPU fell off the bus")
    second = {d.device.device_name: d for d in next(stream).devices}
    assert len(second) == 4
    assert second["gpu-1"].health == messages.HealthStatus.UNHEALTHY
    assert second["gpu-1"].message == "XID 79: the GPU fell off the bus"

    served.change(health="Unknown", health_message="")
    third = {d.device.device_name: d for d in next(stream).devices}
    assert third["gpu-1"].health == messages.HealthStatus.UNKNOWN


def test_it_is_sent_again_within_the_lease_without_a_change(tmp_path: Path) -> None:
    assert RESEND_SECONDS * 2 < LEASE_SECONDS
    served = Served(tmp_path, resend=0.05)
    try:
        stream = served.watch()
        assert [len(next(stream).devices) for _ in range(3)] == [4, 4, 4]
    finally:
        served.close()


def test_what_nobody_verified_is_not_sent_again(tmp_path: Path) -> None:
    core = make_core(tmp_path)
    moments = iter([1e12, 1e12])  # looked at in time once, with the response; then never again
    feed = HealthFeed(
        lambda: core.inventory, "node-a", checked_at=lambda: next(moments, 0.0), resend_seconds=0.02
    )

    class Context:
        def __init__(self) -> None:
            self.callbacks: list[Any] = []

        def add_callback(self, callback: Any) -> bool:
            self.callbacks.append(callback)
            return True

    context: Any = Context()
    stream = feed.stream_health(v1, context)
    assert len(next(stream).devices) == 4
    with ThreadPoolExecutor(1) as thread:
        waiting = thread.submit(lambda: list(stream))
        with pytest.raises(TimeoutError):
            waiting.result(0.3)
        context.callbacks[0]()
        assert waiting.result(5) == []


def test_a_kubelet_that_goes_away_frees_its_stream(served: Served) -> None:
    for _ in range(MAX_STREAMS * 3):
        stream = served.watch()
        next(stream)
        stream.cancel()
        with served.feed._changed:
            assert served.feed._changed.wait_for(lambda: served.feed._streams == 0, 5)


def test_more_streams_than_a_kubelet_needs_are_refused(served: Served) -> None:
    streams = [served.watch() for _ in range(MAX_STREAMS)]
    for stream in streams:
        next(stream)
    with pytest.raises(grpc.RpcError) as caught:
        next(served.watch())
    assert caught.value.code() is grpc.StatusCode.RESOURCE_EXHAUSTED


def test_stopping_the_driver_ends_the_stream(served: Served) -> None:
    stream = served.watch()
    next(stream)
    served.feed.stop()
    assert list(stream) == []


def test_a_long_message_is_cut_between_characters(served: Served) -> None:
    stream = served.watch()
    next(stream)
    served.change(health="Unhealthy", health_message="é" * 1000)
    message = next(d.message for d in next(stream).devices if d.device.device_name == "gpu-1")
    assert len(message.encode()) <= 1024
    assert message.endswith("é...")
