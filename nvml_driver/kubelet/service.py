"""Builds the gRPC services behind the sockets: DRA v1 and v1beta1, health, and registration.

The two DRA versions have the same messages but for one field, so one handler serves both, built
from the version's own message classes.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from types import ModuleType
from typing import Any

import grpc

from kube.kubelet import dra_health_v1_pb2 as health_v1
from kube.kubelet import dra_health_v1alpha1_pb2 as health_v1alpha1
from kube.kubelet import dra_v1_pb2 as v1
from kube.kubelet import dra_v1beta1_pb2 as v1beta1
from kube.kubelet import pluginregistration_v1_pb2 as registration
from kube.kubelet.rpc import serve
from nvml_driver.core import DriverCore
from nvml_driver.errors import DriverError, PrepareError
from nvml_driver.health.stream import HealthFeed
from nvml_driver.metrics import Metrics
from nvml_driver.model.prepared import PreparedDevice
from nvml_driver.prepare.claims import (
    ClaimFetcher,
    ClaimGetter,
    ClaimReference,
    describe_claim,
    limit_seconds,
)

_LOG = logging.getLogger(__name__)
PLUGIN_TYPE = "DRAPlugin"
SERVED = {"v1.DRAPlugin": v1, "v1beta1.DRAPlugin": v1beta1}
"""Advertised name to messages, best first: the kubelet takes the first that it knows."""

HEALTH_SERVED = {"v1.DRAResourceHealth": health_v1, "v1alpha1.DRAResourceHealth": health_v1alpha1}


class ClaimWork:
    """Prepares and unprepares the claims of one call; each claim has its own fate."""

    def __init__(
        self, core: DriverCore, get_claim: ClaimGetter, metrics: Metrics | None = None
    ) -> None:
        self._core = core
        self._fetcher = ClaimFetcher(get_claim)
        self._unprepared: dict[object, set[str]] = {}  # of each prepare call: uids, since it began
        self.metrics = metrics or Metrics(core.options.driver_name)

    def stop(self) -> None:
        """Give up the claims that are not read yet."""
        self._fetcher.stop()

    def prepare_each(
        self,
        references: Sequence[ClaimReference],
        *,
        seconds: float,
        still_wanted: Callable[[], bool],
    ) -> Iterator[tuple[str, list[PreparedDevice], str]]:
        """Yield uid, devices and error (empty: none) of each claim.

        A claim that is unprepared before its turn comes is not prepared: the kubelet's reconcile
        loop (``reconcileLoop`` in kubernetes ``pkg/kubelet/cm/dra/manager.go``) unprepares the
        claims of a pod that was deleted by force while another call still prepares them, forgets
        them, and would never unprepare them again.
        """
        with self.metrics.measure_request("prepare"), self._watch_unprepare() as unprepared:
            for reference, claim in self._fetcher.fetch(references, seconds):
                where, uid = describe_claim(reference), reference.uid

                def wanted(uid: str = uid) -> bool:
                    return uid not in unprepared and still_wanted()

                try:
                    if isinstance(claim, PrepareError):
                        raise claim
                    devices = self._core.prepare(claim, still_wanted=wanted)
                except Exception as error:  # noqa: BLE001, one claim must not fail the others
                    self.metrics.count_error("prepare", error)
                    yield reference.uid, [], _report_error(error, f"prepare {where}")
                else:
                    names = ", ".join(device.device_name for device in devices) or "no devices"
                    _LOG.info("prepared %s: %s", where, names)
                    yield reference.uid, devices, ""

    @contextmanager
    def _watch_unprepare(self) -> Iterator[set[str]]:
        """Collect the uids of claims that are unprepared meanwhile in the set that is given."""
        call, unprepared = object(), set[str]()
        self._unprepared[call] = unprepared
        try:
            yield unprepared
        finally:
            del self._unprepared[call]

    def unprepare_each(self, references: Iterable[ClaimReference]) -> Iterator[tuple[str, str]]:
        """Yield uid and error (empty: none) of each claim; the claim object may be gone."""
        with self.metrics.measure_request("unprepare"):
            for reference in references:
                for unprepared in list(self._unprepared.values()):
                    unprepared.add(reference.uid)
                try:
                    self._core.unprepare(reference.uid)
                except Exception as error:  # noqa: BLE001, one claim must not fail the others
                    self.metrics.count_error("unprepare", error)
                    yield (
                        reference.uid,
                        _report_error(error, f"unprepare {describe_claim(reference)}"),
                    )
                else:
                    _LOG.info("unprepared %s", describe_claim(reference))
                    yield reference.uid, ""


def _report_error(error: Exception, doing: str) -> str:
    """Log an error and return it as a claim's error: never empty, for empty means success."""
    if isinstance(error, DriverError):
        _LOG.warning("%s: %s", doing, error)
        return str(error) or type(error).__name__
    _LOG.error("%s failed unexpectedly", doing, exc_info=error)
    return f"internal error of the driver: {type(error).__name__}: {error}"


def dra_service(messages: ModuleType, work: ClaimWork) -> grpc.GenericRpcHandler:
    """Build the service ``DRAPlugin`` of one version, whose generated module is ``messages``."""
    has_share_id = "share_id" in messages.Device.DESCRIPTOR.fields_by_name

    def prepare(request: Any, context: grpc.ServicerContext) -> Any:
        response = messages.NodePrepareResourcesResponse()
        outcomes = work.prepare_each(
            request.claims,
            seconds=limit_seconds(context.time_remaining()),
            still_wanted=context.is_active,
        )
        for uid, devices, error in outcomes:
            entry = response.claims[uid]  # the look-up makes the entry
            entry.error = error
            del entry.devices[:]  # of a claim that the call names twice
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

    return serve(messages, {"NodePrepareResources": prepare, "NodeUnprepareResources": unprepare})


def health_service(messages: ModuleType, feed: HealthFeed) -> grpc.GenericRpcHandler:
    """Build the service ``DRAResourceHealth`` of one version."""

    def watch(_request: Any, context: grpc.ServicerContext) -> Iterator[Any]:
        return feed.stream_health(messages, context)

    return serve(messages, {"NodeWatchResources": watch})


def registration_service(
    driver_name: str, endpoint: str, versions: Sequence[str], registered: Callable[[], None]
) -> grpc.GenericRpcHandler:
    """Build the service ``Registration``; ``versions`` are the endpoint's services, best first."""

    def get_info(_request: Any, _context: grpc.ServicerContext) -> registration.PluginInfo:
        return registration.PluginInfo(
            type=PLUGIN_TYPE, name=driver_name, endpoint=endpoint, supported_versions=list(versions)
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

    return serve(registration, {"GetInfo": get_info, "NotifyRegistrationStatus": notify})
