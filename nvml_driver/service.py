"""The gRPC services behind the sockets: DRA v1 and v1beta1, and registration.

The two DRA versions have the same messages but for one field, so one handler serves both, built
from the version's own message classes.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping
from types import ModuleType
from typing import Any, Protocol

import grpc

from nvml_driver.core import DriverCore
from nvml_driver.errors import DriverError, PrepareError
from nvml_driver.kubeletapi.dra.v1 import api_pb2 as v1
from nvml_driver.kubeletapi.dra.v1beta1 import api_pb2 as v1beta1
from nvml_driver.kubeletapi.pluginregistration.v1 import api_pb2 as registration
from nvml_driver.prepared import PreparedDevice

_LOG = logging.getLogger(__name__)
PLUGIN_TYPE = "DRAPlugin"
SERVED = {"v1.DRAPlugin": v1, "v1beta1.DRAPlugin": v1beta1}
"""Advertised name to messages, best first: the kubelet takes the first that it knows."""

ClaimGetter = Callable[[str, str], Mapping[str, Any] | None]
"""Namespace and name to the ResourceClaim (resource.k8s.io/v1), None if there is none."""


class _ClaimReference(Protocol):
    """A ``Claim`` message of either version."""

    namespace: str
    uid: str
    name: str


class ClaimWork:
    """What a DRA service does with the claims of one call; each claim has its own fate."""

    def __init__(self, core: DriverCore, get_claim: ClaimGetter) -> None:
        """Prepare with ``core`` what ``get_claim`` finds."""
        self._core = core
        self._get_claim = get_claim

    def prepare(self, reference: _ClaimReference) -> list[PreparedDevice]:
        """Prepare one claim.

        Raises:
            PrepareError: with what the kubelet should tell of it.
        """
        where = f"claim {reference.namespace}/{reference.name} (uid {reference.uid})"
        try:
            claim = self._get_claim(reference.namespace, reference.name)
        except DriverError as error:
            raise PrepareError(f"{where} cannot be read: {error}") from None
        if claim is None:
            raise PrepareError(f"{where} does not exist")
        uid = (claim.get("metadata") or {}).get("uid")
        if uid != reference.uid:
            raise PrepareError(f"{where} was replaced: the claim of that name has uid {uid}")
        devices = self._core.prepare(claim)
        names = ", ".join(device.device_name for device in devices) or "no devices"
        _LOG.info("prepared %s: %s", where, names)
        return devices

    def prepare_each(
        self, references: Iterable[_ClaimReference]
    ) -> Iterator[tuple[str, list[PreparedDevice], str]]:
        """Uid, devices and error (empty: none) of each claim."""
        for reference in references:
            try:
                yield reference.uid, self.prepare(reference), ""
            except Exception as error:  # noqa: BLE001, one claim must not fail the others
                yield reference.uid, [], _message(error, f"prepare claim uid {reference.uid}")

    def unprepare_each(self, references: Iterable[_ClaimReference]) -> Iterator[tuple[str, str]]:
        """Uid and error (empty: none) of each claim; the claim object may be gone."""
        for reference in references:
            try:
                self._core.unprepare(reference.uid)
            except Exception as error:  # noqa: BLE001, one claim must not fail the others
                yield reference.uid, _message(error, f"unprepare claim uid {reference.uid}")
            else:
                _LOG.info("unprepared claim uid %s", reference.uid)
                yield reference.uid, ""


def _message(error: Exception, doing: str) -> str:
    """An error as one claim's error: never empty, for empty means success."""
    if isinstance(error, DriverError):
        _LOG.warning("%s: %s", doing, error)
        return str(error) or type(error).__name__
    _LOG.error("%s failed unexpectedly", doing, exc_info=error)
    return f"internal error of the driver: {type(error).__name__}: {error}"


def dra_service(messages: ModuleType, work: ClaimWork) -> grpc.GenericRpcHandler:
    """The service ``DRAPlugin`` of one version.

    Args:
        messages: the version's generated module.
        work: what to do.
    """
    has_share_id = "share_id" in messages.Device.DESCRIPTOR.fields_by_name

    def prepare(request: Any, _context: grpc.ServicerContext) -> Any:
        response = messages.NodePrepareResourcesResponse()
        for uid, devices, error in work.prepare_each(request.claims):
            entry = response.claims[uid]  # the look-up makes the entry
            entry.error = error
            for device in devices:
                message = entry.devices.add(
                    request_names=device.request_names,
                    pool_name=device.pool_name,
                    device_name=device.device_name,
                    cdi_device_ids=device.cdi_device_ids,
                )
                if has_share_id and device.share_id is not None:
                    message.share_id = device.share_id
        return response

    def unprepare(request: Any, _context: grpc.ServicerContext) -> Any:
        response = messages.NodeUnprepareResourcesResponse()
        for uid, error in work.unprepare_each(request.claims):
            response.claims[uid].error = error
        return response

    return _service(
        messages.DESCRIPTOR.services_by_name["DRAPlugin"].full_name,
        {
            "NodePrepareResources": (prepare, messages.NodePrepareResourcesRequest),
            "NodeUnprepareResources": (unprepare, messages.NodeUnprepareResourcesRequest),
        },
    )


def registration_service(
    driver_name: str, endpoint: str, registered: Callable[[], None]
) -> grpc.GenericRpcHandler:
    """The service ``Registration``.

    Args:
        driver_name: the plugin's name.
        endpoint: path of the DRA service's socket.
        registered: called when the kubelet says that it registered the plugin.
    """

    def get_info(_request: Any, _context: grpc.ServicerContext) -> registration.PluginInfo:
        return registration.PluginInfo(
            type=PLUGIN_TYPE,
            name=driver_name,
            endpoint=endpoint,
            supported_versions=list(SERVED),
        )

    def notify(
        request: registration.RegistrationStatus, _context: grpc.ServicerContext
    ) -> registration.RegistrationStatusResponse:
        if request.plugin_registered:
            _LOG.info("the kubelet registered %s", driver_name)
            registered()
        else:
            _LOG.error("the kubelet refused %s: %s", driver_name, request.error)
        return registration.RegistrationStatusResponse()

    return _service(
        registration.DESCRIPTOR.services_by_name["Registration"].full_name,
        {
            "GetInfo": (get_info, registration.InfoRequest),
            "NotifyRegistrationStatus": (notify, registration.RegistrationStatus),
        },
    )


def _service(
    name: str, methods: Mapping[str, tuple[Callable[..., Any], Any]]
) -> grpc.GenericRpcHandler:
    handlers: dict[str, grpc.RpcMethodHandler[Any, Any]] = {
        method: grpc.unary_unary_rpc_method_handler(
            function,
            request_deserializer=request.FromString,
            response_serializer=lambda answer: answer.SerializeToString(),
        )
        for method, (function, request) in methods.items()
    }
    return grpc.method_handlers_generic_handler(name, handlers)
