"""gRPC health checking (grpc.health.v1) of the driver by calling itself as the kubelet does.

A process that runs but whose sockets do not answer is of no use, so the check goes through both
unix sockets: GetInfo on the registrar, and a prepare call without claims. For a pod's
``livenessProbe.grpc``; the service name may be empty or ``liveness``.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import grpc
from grpc_health.v1 import health_pb2, health_pb2_grpc

from nvml_driver.errors import DriverError
from nvml_driver.kubeletapi.dra.v1 import api_pb2 as dra
from nvml_driver.kubeletapi.dra.v1 import api_pb2_grpc as dra_grpc
from nvml_driver.kubeletapi.pluginregistration.v1 import api_pb2 as registration
from nvml_driver.kubeletapi.pluginregistration.v1 import api_pb2_grpc as registration_grpc

_SECONDS = 5.0


class _Health(health_pb2_grpc.HealthServicer):  # type: ignore[misc]
    def __init__(self, registrar: grpc.Channel, service: grpc.Channel) -> None:
        self._registrar = registration_grpc.RegistrationStub(registrar)  # type: ignore[no-untyped-call]
        self._dra = dra_grpc.DRAPluginStub(service)  # type: ignore[no-untyped-call]

    def Check(self, request: Any, context: grpc.ServicerContext) -> Any:  # noqa: N802
        if request.service not in ("", "liveness"):
            context.abort(grpc.StatusCode.NOT_FOUND, f"no service {request.service!r} here")
        status = health_pb2.HealthCheckResponse.SERVING
        try:
            self._registrar.GetInfo(registration.InfoRequest(), timeout=_SECONDS)
            self._dra.NodePrepareResources(dra.NodePrepareResourcesRequest(), timeout=_SECONDS)
        except grpc.RpcError:
            status = health_pb2.HealthCheckResponse.NOT_SERVING
        return health_pb2.HealthCheckResponse(status=status)


class LivenessServer:
    """Answers health checks on a TCP port until stopped.

    Attributes:
        port: the port, also if 0 was asked for.
    """

    def __init__(self, port: int, *, dra_socket: Path, registration_socket: Path) -> None:
        """Listen on all addresses, as the kubelet checks the pod's address.

        Raises:
            DriverError: the port cannot be had.
        """
        self._channels = [
            grpc.insecure_channel(f"unix:{path}") for path in (registration_socket, dra_socket)
        ]
        self._server = grpc.server(ThreadPoolExecutor(2, thread_name_prefix="liveness"))
        health_pb2_grpc.add_HealthServicer_to_server(_Health(*self._channels), self._server)
        try:
            self.port = self._server.add_insecure_port(f"[::]:{port}")
        except RuntimeError as error:
            raise DriverError(f"cannot serve health checks on port {port}: {error}") from None
        self._server.start()

    def stop(self) -> None:
        """Close the port."""
        self._server.stop(0).wait()
        for channel in self._channels:
            channel.close()
