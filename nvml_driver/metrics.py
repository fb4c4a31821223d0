"""Counts for Prometheus, with the names that NVIDIA's driver has where it has the same.

(kubernetes-sigs/dra-driver-nvidia-gpu at 95932046: ``nvidia_dra_requests_total``,
``_request_duration_seconds``, ``_requests_inflight``, ``_prepared_devices``,
``_node_prepare_errors_total``, ``_node_unprepare_errors_total``; the labels are our own.)
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Literal

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    PlatformCollector,
    ProcessCollector,
    start_http_server,
)

from nvml_driver.errors import DriverError

Operation = Literal["prepare", "unprepare"]
_BUCKETS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 20, 45)


class Metrics:
    """The metrics of one driver."""

    def __init__(self, driver_name: str) -> None:
        self.registry = CollectorRegistry()
        self._driver = driver_name
        labels = ("driver", "operation")
        self._requests = Counter(
            "nvidia_dra_requests", "Calls of the kubelet.", labels, registry=self.registry
        )
        self._seconds = Histogram(
            "nvidia_dra_request_duration_seconds",
            "How long a call of the kubelet took.",
            labels,
            buckets=_BUCKETS,
            registry=self.registry,
        )
        self._inflight = Gauge(
            "nvidia_dra_requests_inflight",
            "Calls of the kubelet that are not answered yet.",
            labels,
            registry=self.registry,
        )
        self._errors: dict[Operation, Counter] = {
            "prepare": Counter(
                "nvidia_dra_node_prepare_errors",
                "Claims that could not be prepared, by kind of error.",
                ("driver", "error_type"),
                registry=self.registry,
            ),
            "unprepare": Counter(
                "nvidia_dra_node_unprepare_errors",
                "Claims that could not be unprepared, by kind of error.",
                ("driver", "error_type"),
                registry=self.registry,
            ),
        }
        ProcessCollector(registry=self.registry)
        PlatformCollector(registry=self.registry)
        for operation in self._errors:
            self._requests.labels(driver_name, operation)
            self._inflight.labels(driver_name, operation)

    def watch_devices(self, prepared: Callable[[], float], published: Callable[[], float]) -> None:
        """Let two gauges say, when read, how many devices are prepared and how many there are."""
        for name, text, function in (
            ("prepared_devices", "Devices that are prepared for claims.", prepared),
            ("devices", "Devices that the node publishes.", published),
        ):
            gauge = Gauge(f"nvidia_dra_{name}", text, ("driver",), registry=self.registry)
            gauge.labels(self._driver).set_function(function)

    @contextmanager
    def measure_request(self, operation: Operation) -> Iterator[None]:
        """Count a call of the kubelet, and measure how long it takes."""
        began = time.monotonic()
        inflight = self._inflight.labels(self._driver, operation)
        inflight.inc()
        try:
            yield
        finally:
            inflight.dec()
            self._requests.labels(self._driver, operation).inc()
            self._seconds.labels(self._driver, operation).observe(time.monotonic() - began)

    def count_error(self, operation: Operation, error: Exception) -> None:
        """Count a claim that could not be prepared or unprepared, by the error's class."""
        self._errors[operation].labels(self._driver, type(error).__name__).inc()


class MetricsServer:
    """Serves ``/metrics`` on a TCP port until stopped; ``port`` is the real one for 0, too."""

    def __init__(self, metrics: Metrics, port: int, address: str = "0.0.0.0") -> None:  # noqa: S104
        """Listen on all addresses for scrapers outside. Raises DriverError: port in use."""
        try:
            self._server, self._thread = start_http_server(port, address, metrics.registry)
        except OSError as error:
            raise DriverError(f"cannot serve metrics on port {port}: {error}") from None
        self.port = int(self._server.server_port)

    def stop(self) -> None:
        """Stop listening, and wait until the server's thread has ended."""
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()
