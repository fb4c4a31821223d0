"""The kubelet's side of the sockets: registration, and calls of the DRA service.

Times and names are the kubelet's own (kubernetes/pkg/kubelet, 1.37.1). Every call has a deadline,
and what comes back is at most `MAX_MESSAGE`; whatever else a socket does is a violation.
"""

from __future__ import annotations

import os
import stat
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any, Final

import grpc

from conformance.drivercheck.violations import SilenceError, ViolationError
from kube.base.text import one_line
from kube.kubelet import dra_health_v1_pb2 as health_v1
from kube.kubelet import dra_health_v1alpha1_pb2 as health_v1alpha1
from kube.kubelet import dra_v1_pb2 as v1
from kube.kubelet import dra_v1beta1_pb2 as v1beta1
from kube.kubelet import pluginregistration_v1_pb2 as registration
from kube.kubelet.plugins import INFO_SECONDS, KNOWN_SERVICES
from kube.kubelet.rpc import make_stub
from kube.values import Obj

SERVICES: Final[Mapping[str, ModuleType]] = dict(zip(KNOWN_SERVICES, (v1, v1beta1), strict=True))
"""What a kubelet of 1.34 to 1.37 knows, newest first, and the messages of each."""

HEALTH: Final[Mapping[str, ModuleType]] = {
    "v1.DRAResourceHealth": health_v1,
    "v1alpha1.DRAResourceHealth": health_v1alpha1,
}

# For NotifyRegistrationStatus (operation_generator.go, notifyPlugin).
NOTIFY_SECONDS: Final = 5.0
# For a prepare or unprepare call (cm/dra/plugin/dra_plugin.go, PluginClientTimeout).
CALL_SECONDS: Final = 45.0
# Bytes of an answer: gRPC's own limit, which the kubelet leaves as it is.
MAX_MESSAGE: Final = 4 << 20
MAX_SOCKETS: Final = 100
_OPTIONS: Final = (
    ("grpc.max_receive_message_length", MAX_MESSAGE),
    ("grpc.use_local_subchannel_pool", 1),  # a driver that was started again has a new connection
    ("grpc.enable_http_proxy", 0),
)


class RefusedError(Exception):
    """The driver answered a call with an error of gRPC."""

    def __init__(self, method: str, code: grpc.StatusCode, details: str) -> None:
        self.code = code
        self.text = f"{method} fails with {code.name}: {one_line(details, 200)}"
        super().__init__(self.text)


@dataclass(frozen=True)
class Device:
    """A prepared device, as the answer names it."""

    request_names: tuple[str, ...]
    pool: str
    name: str
    cdi_ids: tuple[str, ...]
    share_id: str = field(default="", compare=False)  # v1beta1 has none


@dataclass(frozen=True)
class Prepared:
    """What the answer says of one claim."""

    devices: tuple[Device, ...]
    error: str


def claim_reference(claim: Obj) -> dict[str, str]:
    """Return the fields of a message ``Claim``: namespace, uid and name."""
    metadata = claim["metadata"]
    return {key: metadata[key] for key in ("namespace", "uid", "name")}


def list_sockets(registry: Path) -> Iterator[Path]:
    """Yield the sockets that a kubelet would take for registrations, at most `MAX_SOCKETS`."""
    with os.scandir(registry) as entries:
        for count, entry in enumerate(entries):
            if count < MAX_SOCKETS and not entry.name.startswith("."):
                try:
                    if stat.S_ISSOCK(entry.stat().st_mode):
                        yield Path(entry.path)
                except OSError:
                    continue  # removed since


def connect(socket: Path) -> grpc.Channel:
    return grpc.insecure_channel(f"unix:{socket}", options=_OPTIONS)


def call(method: str, function: Any, request: Any, seconds: float) -> Any:
    """Call, with a deadline. Raises SilenceError: no answer in time; RefusedError: an error."""
    try:
        return function(request, timeout=max(0.001, seconds))
    except grpc.RpcError as error:
        code, details = error.code(), error.details() or ""
        if code is grpc.StatusCode.DEADLINE_EXCEEDED:
            raise SilenceError(f"{method} was not answered within {seconds:.0f} s") from None
        raise RefusedError(method, code, details) from None


class Registrar:
    """A registration socket."""

    def __init__(self, socket: Path) -> None:
        self.socket = socket
        self._channel = connect(socket)
        self._stub = make_stub(registration, self._channel)

    def get_info(self, seconds: float = INFO_SECONDS) -> Any:
        return call("GetInfo", self._stub.GetInfo, registration.InfoRequest(), seconds)

    def notify(self, registered: bool, error: str = "") -> None:
        """Tell it what came of its registration; raises as `call`."""
        status = registration.RegistrationStatus(plugin_registered=registered, error=error)
        name = "NotifyRegistrationStatus"
        call(name, self._stub.NotifyRegistrationStatus, status, NOTIFY_SECONDS)

    def close(self) -> None:
        self._channel.close()


class Plugin:
    """The DRA service behind an endpoint, in one of its versions."""

    def __init__(self, endpoint: Path, version: str) -> None:
        self.endpoint = endpoint
        self.version = version
        self.channel = connect(endpoint)
        self._messages = SERVICES[version]
        self._stub = make_stub(self._messages, self.channel)

    def prepare(
        self, references: Iterable[Mapping[str, str]], seconds: float = CALL_SECONDS
    ) -> dict[str, Prepared]:
        """Return uid -> what was prepared, of every claim in the answer; raises as `call`."""
        request = self._messages.NodePrepareResourcesRequest(claims=list(references))
        answer = call("NodePrepareResources", self._stub.NodePrepareResources, request, seconds)
        return {
            uid: Prepared(tuple(_device(device) for device in entry.devices), entry.error)
            for uid, entry in answer.claims.items()
        }

    def unprepare(
        self, references: Iterable[Mapping[str, str]], seconds: float = CALL_SECONDS
    ) -> dict[str, str]:
        """Return uid -> error (empty: none), of every claim in the answer; raises as `call`."""
        request = self._messages.NodeUnprepareResourcesRequest(claims=list(references))
        answer = call("NodeUnprepareResources", self._stub.NodeUnprepareResources, request, seconds)
        return {uid: entry.error for uid, entry in answer.claims.items()}

    def call_raw(self, path: str, request: bytes, seconds: float) -> bytes:
        """Call a method with any bytes; raises as `call`."""
        function = self.channel.unary_unary(path, bytes, bytes)
        answer: bytes = call(path, function, request, seconds)
        return answer

    def method_path(self, name: str) -> str:
        [service] = self._messages.DESCRIPTOR.services_by_name.values()
        return f"/{service.full_name}/{name}"

    def close(self) -> None:
        self.channel.close()


def _device(message: Any) -> Device:
    return Device(
        request_names=tuple(message.request_names),
        pool=message.pool_name,
        name=message.device_name,
        cdi_ids=tuple(message.cdi_device_ids),
        share_id=getattr(message, "share_id", ""),
    )


def watch_health(
    channel: grpc.Channel,
    version: str,
    is_enough: Callable[[Sequence[Any]], bool],
    seconds: float,
) -> list[Any]:
    """Return the first responses of a health stream, which is cancelled then.

    Args:
        is_enough: whether the responses until now are; it is asked after each.

    Raises RefusedError where it ended with an error, ViolationError where they were not enough in
    that time.
    """
    messages = HEALTH[version]
    stream = make_stub(messages, channel).NodeWatchResources(
        messages.NodeWatchResourcesRequest(), timeout=seconds
    )
    responses: list[Any] = []
    began = time.monotonic()
    try:
        for response in stream:
            responses.append(response)
            if is_enough(responses):
                return responses
    except grpc.RpcError as error:
        code = error.code()
        if code is not grpc.StatusCode.DEADLINE_EXCEEDED:
            details = error.details() or ""
            raise RefusedError("NodeWatchResources", code, details) from None
    finally:
        stream.cancel()
    took = time.monotonic() - began
    raise ViolationError(
        f"expected more of {version}/NodeWatchResources; found {len(responses)} responses in "
        f"{took:.0f} s"
    )
