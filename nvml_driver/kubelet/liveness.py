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
from grpc_health.v1 import health_pb2

from nvml_driver.errors import DriverError
from nvml_driver.kubelet.rpc import serve, stub
from nvml_driver.kubeletapi.dra.v1 import api_pb2 as dra
from nvml_driver.kubeletapi.pluginregistration.v1 import api_pb2 as registration

_SECONDS = 5.0


class LivenessServer:
    """Answers health checks on a TCP port until stopped; ``port`` is the real one for 0, too."""

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
        self._server.stop(0).wait()
        for channel in self._channels:
            channel.close()

    def _check(self, request: Any, context: grpc.ServicerContext) -> Any:
        if request.service not in ("", "liveness"):
            context.abort(grpc.StatusCode.NOT_FOUND, f"no service {request.service!r} here")
        registrar, service = self._channels
        status = health_pb2.HealthCheckResponse.SERVING
        try:
            stub(registration, registrar).GetInfo(registration.InfoRequest(), timeout=_SECONDS)
            no_claims = dra.NodePrepareResourcesRequest()
            stub(dra, service).NodePrepareResources(no_claims, timeout=_SECONDS)
        except grpc.RpcError:
            status = health_pb2.HealthCheckResponse.NOT_SERVING
        return health_pb2.HealthCheckResponse(status=status)
