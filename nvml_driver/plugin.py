"""The driver as a kubelet plugin: two gRPC servers on unix sockets.

The kubelet finds the registration socket in its registry directory, asks who is there, and then
calls the DRA service on the socket it was told. So the DRA service is up before the registration
socket appears, and the registration socket goes first at the end. Contract: k8s.io/kubelet
v0.37.1 (protos), kubernetes/pkg/kubelet/cm/dra/plugin, pkg/kubelet/pluginmanager.
"""

from __future__ import annotations

import logging
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import grpc

from nvml_driver.core import DriverCore
from nvml_driver.errors import DriverError
from nvml_driver.service import SERVED, ClaimGetter, ClaimWork, dra_service, registration_service

_LOG = logging.getLogger(__name__)
MAX_SOCKET_PATH = 107  # sun_path of unix(7), without the terminating zero


class KubeletPlugin:
    """Serves a DriverCore to the kubelet of this node.

    Attributes:
        dra_socket: ``<plugins>/<driver>/dra.sock``.
        registration_socket: ``<registry>/<driver>-reg.sock``.
        registered: set when the kubelet says that it registered the plugin.
    """

    def __init__(
        self, core: DriverCore, get_claim: ClaimGetter, *, plugins: Path, registry: Path
    ) -> None:
        """Check the socket paths; nothing is served yet.

        Raises:
            DriverError: a path is longer than a unix socket's can be.
        """
        name = core.options.driver_name
        self.dra_socket = plugins.absolute() / name / "dra.sock"
        self.registration_socket = registry.absolute() / f"{name}-reg.sock"
        self.registered = threading.Event()
        for path in (self.dra_socket, self.registration_socket):
            length = len(str(path).encode())
            if length > MAX_SOCKET_PATH:
                raise DriverError(
                    f"socket path {path} has {length} bytes, a unix socket's path at most "
                    f"{MAX_SOCKET_PATH}: use shorter directories"
                )
        # One worker: claims of one node are prepared one after the other anyway.
        self._dra = grpc.server(ThreadPoolExecutor(1, thread_name_prefix="dra"))
        self._registrar = grpc.server(ThreadPoolExecutor(1, thread_name_prefix="registration"))
        work = ClaimWork(core, get_claim)
        self._dra.add_generic_rpc_handlers(
            tuple(dra_service(messages, work) for messages in SERVED.values())
        )
        self._registrar.add_generic_rpc_handlers(
            (registration_service(name, str(self.dra_socket), self.registered.set),)
        )

    def start(self) -> None:
        """Serve, the DRA service first.

        Raises:
            DriverError: a socket cannot be made.
        """
        for server, path in (
            (self._dra, self.dra_socket),
            (self._registrar, self.registration_socket),
        ):
            try:
                path.parent.mkdir(parents=True, exist_ok=True, mode=0o750)
                server.add_insecure_port(f"unix://{path}")
            except (OSError, RuntimeError) as error:
                raise DriverError(f"cannot listen on {path}: {error}") from None
            server.start()
            _LOG.info("listening on %s", path)

    def stop(self, grace: float = 10.0) -> None:
        """Deregister, let running calls end for ``grace`` seconds, and stop."""
        self._registrar.stop(grace).wait()
        self._dra.stop(grace).wait()
