"""Puts all parts of the driver on one node together, and starts and stops them in order."""

from __future__ import annotations

import ctypes
import gc
import logging
from pathlib import Path

from nvml_driver.cluster.collector import Collector
from nvml_driver.cluster.kube import KubeClient
from nvml_driver.cluster.publish import Publisher
from nvml_driver.core import DriverCore
from nvml_driver.health.device_watch import DeviceWatch
from nvml_driver.health.stream import HealthFeed
from nvml_driver.kubelet.plugin import KubeletPlugin, LivenessServer
from nvml_driver.metrics import Metrics, MetricsServer
from nvml_driver.nvml.library import NvmlLibrary
from nvml_driver.options import DriverOptions

_LOG = logging.getLogger(__name__)


class RunningDriver:
    """The driver as a process runs it; a server is None if not wanted or not started."""

    def __init__(
        self,
        options: DriverOptions,
        library: NvmlLibrary,
        kube: KubeClient,
        *,
        plugins: Path,
        registry: Path,
        pod_uid: str = "",
        healthcheck_port: int = -1,
        metrics_port: int = -1,
    ) -> None:
        """Find the devices and take up what was left; nothing is served yet. Raises DriverError."""
        self.core = DriverCore(options, library)
        inventory = self.core.inventory
        _LOG.info(
            "driver %s on node %s: %d %sdevices",
            *(options.driver_name, options.node_name, len(inventory)),
            "simulated " if inventory.simulated else "",
        )
        self._ports = (healthcheck_port, metrics_port)
        self.metrics_server: MetricsServer | None = None
        self.liveness_server: LivenessServer | None = None
        self._metrics = Metrics(options.driver_name)
        self._metrics.watch_devices(
            lambda: sum(len(devices) for devices in self.core.list_prepared().values()),
            lambda: len(self.core.inventory),
        )
        self._device_watch = DeviceWatch(self.core, library)
        self.plugin = KubeletPlugin(
            self.core,
            kube.get_claim,
            plugins=plugins,
            registry=registry,
            pod_uid=pod_uid,
            metrics=self._metrics,
            health=HealthFeed(
                lambda: self.core.inventory,
                options.node_name,
                checked_at=self._device_watch.checked_at,
            ),
        )
        is_newest = self.plugin.instance.is_newest
        self._publisher = Publisher(
            kube,
            self.core.resource_slices,
            driver_name=options.driver_name,
            node_name=options.node_name,
            active=is_newest,
        )
        self.core.subscribe(self._publisher.refresh)
        self._collector = Collector(self.core, kube.get_claim, active=is_newest)

    def start(self) -> None:
        """Serve the kubelet, then publish what can be prepared. Raises DriverError."""
        healthcheck_port, metrics_port = self._ports
        # Before the plugin: the kubelet may ask for the health of devices once it is registered.
        self._device_watch.start()
        self.plugin.start()
        if healthcheck_port >= 0:
            self.liveness_server = LivenessServer(
                healthcheck_port,
                dra_socket=self.plugin.dra_socket,
                registration_socket=self.plugin.registration_socket,
            )
            _LOG.info("health checks on port %d", self.liveness_server.port)
        if metrics_port >= 0:
            self.metrics_server = MetricsServer(self._metrics, metrics_port)
            _LOG.info("metrics on port %d", self.metrics_server.port)
        self._publisher.start()
        self._collector.start()
        _give_memory_back()

    def stop(self) -> None:
        """Stop in reverse; prepared claims and published slices stay."""
        self._collector.stop()
        self._publisher.stop()
        if self.metrics_server is not None:
            self.metrics_server.stop()
        if self.liveness_server is not None:
            self.liveness_server.stop()
        self.plugin.stop()
        self._device_watch.stop()


def _give_memory_back() -> None:
    """Return to the system what starting took and the driver will not need again: some MiB.

    The C library keeps freed memory for its process; glibc can be asked to let go of it, others
    do not know the call.
    """
    gc.collect()
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)
