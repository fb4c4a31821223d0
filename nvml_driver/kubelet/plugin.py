"""Runs the driver as a kubelet plugin: two gRPC servers on unix sockets.

The kubelet finds the registration socket in its registry directory, asks it for the driver's name
and the socket of its DRA service, and calls that. So the DRA service is up before the registration
socket appears, and the registration socket goes first at the end. Contract: k8s.io/kubelet v0.37.1
(protos), kubernetes/pkg/kubelet/cm/dra/plugin, pkg/kubelet/pluginmanager.
"""

from __future__ import annotations

import logging
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import grpc
from grpc_health.v1 import health_pb2

from kube.kubelet import dra_v1_pb2 as dra
from kube.kubelet import pluginregistration_v1_pb2 as registration
from kube.kubelet.rpc import make_stub, serve
from nvml_driver.core import DriverCore
from nvml_driver.errors import DriverError
from nvml_driver.health.stream import MAX_STREAMS, HealthFeed
from nvml_driver.kubelet.rolling import Instance
from nvml_driver.kubelet.service import (
    HEALTH_SERVED,
    SERVED,
    ClaimWork,
    dra_service,
    health_service,
    registration_service,
)
from nvml_driver.metrics import Metrics
from nvml_driver.prepare.claims import ClaimGetter

_LOG = logging.getLogger(__name__)
_WORKERS = 16  # Calls that wait for the API server; preparing itself is one after the other anyway.


class KubeletPlugin:
    """Serves a DriverCore to the kubelet of this node.

    Attributes:
        dra_socket: ``<plugins>/<driver>/dra.sock``.
        registration_socket: ``<registry>/<driver>-reg.sock``.
        registered: set when the kubelet says that it registered the plugin.
    """

    def __init__(
        self,
        core: DriverCore,
        get_claim: ClaimGetter,
        *,
        plugins: Path,
        registry: Path,
        pod_uid: str = "",
        metrics: Metrics | None = None,
        health: HealthFeed | None = None,
    ) -> None:
        """Check the socket paths; nothing is served yet.

        Args:
            registry: the kubelet's directory for registration sockets.
            pod_uid: another instance may run beside this one; empty: none may.
            health: what to stream; None: the health services are not served.

        Raises DriverError: a path is longer than a unix socket's can be.
        """
        name = core.options.driver_name
        self.instance = Instance(
            core.options.state_dir,
            driver_name=name,
            plugins=plugins,
            registry=registry,
            pod_uid=pod_uid,
        )
        self.dra_socket = self.instance.dra_socket
        self.registration_socket = self.instance.registration_socket
        self.registered = threading.Event()
        self._health = health
        self._work = ClaimWork(core, get_claim, metrics)
        # A stream keeps its thread as long as it lasts, so streams must not use up the workers.
        self._dra = grpc.server(
            ThreadPoolExecutor(_WORKERS + MAX_STREAMS, thread_name_prefix="dra")
        )
        self._registrar = grpc.server(ThreadPoolExecutor(1, thread_name_prefix="registration"))
        handlers = [dra_service(messages, self._work) for messages in SERVED.values()]
        versions = list(SERVED)
        if health is not None:
            handlers += [health_service(messages, health) for messages in HEALTH_SERVED.values()]
            versions += HEALTH_SERVED
            core.subscribe(health.notify)
        self._dra.add_generic_rpc_handlers(tuple(handlers))
        self._registrar.add_generic_rpc_handlers(
            (registration_service(name, str(self.dra_socket), versions, self.registered.set),)
        )

    def start(self) -> None:
        """Serve, the DRA service first. Raises DriverError: another instance, or no socket."""
        self.instance.begin()
        for server, path in (
            (self._dra, self.dra_socket),
            (self._registrar, self.registration_socket),
        ):
            try:
                path.parent.mkdir(parents=True, exist_ok=True, mode=0o750)
                server.add_insecure_port(f"unix:{path}")
            except (OSError, RuntimeError) as error:
                raise DriverError(f"cannot listen on {path}: {error}") from None
            server.start()
            _LOG.info("listening on %s", path)

    def stop(self, grace: float = 10.0) -> None:
        """Deregister, let running calls end for ``grace`` seconds, and stop."""
        self._registrar.stop(grace).wait()
        # gRPC takes the socket away in a thread of its own, which our end may overtake.
        self.registration_socket.unlink(missing_ok=True)
        if self._health is not None:
            self._health.stop()
        self._dra.stop(grace).wait()
        self._work.stop()
        self.instance.end()


_SECONDS = 5.0  # For each of the two calls of a health check.


class LivenessServer:
    """Answers gRPC health checks (grpc.health.v1) on a TCP port until stopped.

    A process whose sockets do not answer is of no use, so a check calls both unix sockets as the
    kubelet does: GetInfo, and a prepare call without claims. For a pod's ``livenessProbe.grpc``;
    the service name may be empty or ``liveness``. ``port`` is the real one for 0, too.
    """

    def __init__(self, port: int, *, dra_socket: Path, registration_socket: Path) -> None:
        """Listen on all addresses: the kubelet uses the pod's. Raises DriverError: port in use."""
        self._channels = [
            grpc.insecure_channel(f"unix:{path}") for path in (registration_socket, dra_socket)
        ]
        self._server = grpc.server(ThreadPoolExecutor(2, thread_name_prefix="liveness"))
        self._server.add_generic_rpc_handlers((serve(health_pb2, {"Check": self._check}),))
        try:
            self.port = self._server.add_insecure_port(f"[::]:{port}")
        except RuntimeError as error:
            raise DriverError(f"cannot serve health checks on port {port}: {error}") from None
        self._server.start()

    def stop(self) -> None:
        """Stop listening, and close the connections to the sockets."""
        self._server.stop(0).wait()
        for channel in self._channels:
            channel.close()

    def _check(self, request: Any, context: grpc.ServicerContext) -> Any:
        if request.service not in ("", "liveness"):
            context.abort(grpc.StatusCode.NOT_FOUND, f"no service {request.service!r} here")
        registrar, service = self._channels
        status = health_pb2.HealthCheckResponse.SERVING
        try:
            make_stub(registration, registrar).GetInfo(registration.InfoRequest(), timeout=_SECONDS)
            no_claims = dra.NodePrepareResourcesRequest()
            make_stub(dra, service).NodePrepareResources(no_claims, timeout=_SECONDS)
        except grpc.RpcError:
            status = health_pb2.HealthCheckResponse.NOT_SERVING
        return health_pb2.HealthCheckResponse(status=status)
