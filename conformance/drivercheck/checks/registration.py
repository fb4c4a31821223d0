"""How a driver makes itself known to the kubelet."""

from __future__ import annotations

import stat
import time
from contextlib import suppress
from pathlib import Path

from conformance.drivercheck import kubelet
from conformance.drivercheck.bench import Bench
from conformance.drivercheck.check import Section
from conformance.drivercheck.kubelet import HEALTH, SERVICES, RefusedError, Registrar
from conformance.drivercheck.violations import ViolationError
from kube.kubelet.plugins import PLUGIN_TYPE
from reference_allocator.api.names import dns_subdomain_problems

section = Section("registration")

_MANAGER = "kubernetes/pkg/kubelet/pluginmanager"
_PLUGIN = "kubernetes/pkg/kubelet/cm/dra/plugin"
_LONGEST_NAME = 63  # DriverNameMaxLength, resource/v1 types.go
_RETRY_SECONDS = 3.0
_GIVE_UP_SECONDS = 1.0  # one that gives up has ended by then


@section.required(f"{_MANAGER}/pluginwatcher/plugin_watcher.go, handleCreateEvent")
def socket_appears(bench: Bench) -> None:
    """A socket whose name does not begin with a dot appears in the registry directory."""
    bench.serve()


def _registrar(bench: Bench) -> Registrar:
    if bench.registrar is None:
        bench.serve()
    assert bench.registrar is not None
    return bench.registrar


@section.required(f"{_MANAGER}/operationexecutor/operation_generator.go, dialTimeoutDuration")
def info_within_a_second(bench: Bench) -> None:
    """GetInfo is answered within a second."""
    try:
        _registrar(bench).info()
    except RefusedError as error:
        raise ViolationError(f"expected an answer; found {error}") from None


@section.required(f"{_PLUGIN}/dra_plugin_manager.go; pluginregistration/v1/constants.go, DRAPlugin")
def type_is_dra_plugin(bench: Bench) -> None:
    """PluginInfo.type is DRAPlugin."""
    _expect("type", PLUGIN_TYPE, bench.info.type)


@section.required("k8s.io/api/resource/v1/types.go, ResourceSliceSpec.Driver")
def name_is_a_dns_subdomain(bench: Bench) -> None:
    """PluginInfo.name is a DNS subdomain of at most 63 characters."""
    name = bench.driver
    if dns_subdomain_problems(name) or len(name) > _LONGEST_NAME:
        raise ViolationError(f"expected a DNS subdomain as name; found {name[:100]!r}")


@section.required(f"{_PLUGIN}/dra_plugin_manager.go, RegisterPlugin")
def endpoint_is_a_socket(bench: Bench) -> None:
    """PluginInfo.endpoint is the absolute path of a socket, or empty for the registration's own."""
    if not bench.info.endpoint:
        return
    endpoint = Path(bench.info.endpoint)
    try:
        found = stat.S_ISSOCK(endpoint.stat().st_mode)
    except (OSError, ValueError):
        found = False
    if not found or not endpoint.is_absolute():
        raise ViolationError(
            f"expected the absolute path of a socket as endpoint; found {str(endpoint)[:200]!r}"
        )


@section.recommended("k8s.io/dynamic-resource-allocation/kubeletplugin, PluginDataDirectoryPath")
def endpoint_is_in_its_own_folder(bench: Bench) -> None:
    """The endpoint lies in the plugins directory, in the folder of the driver's name."""
    own = bench.plugins / bench.driver
    endpoint = Path(bench.info.endpoint or own / "none")
    if own not in endpoint.parents:
        raise ViolationError(f"expected an endpoint in {own}; found {endpoint}")


@section.required(f"{_PLUGIN}/dra_plugin_manager.go, ValidatePlugin")
def offers_a_known_version(bench: Bench) -> None:
    """supported_versions names a DRA service that kubelets know, which is v1 or v1beta1."""
    bench.plugin  # noqa: B018 -- it says which there are


@section.recommended(f"{_PLUGIN}/dra_plugin_manager.go: the first in the driver's order is taken")
def newest_version_first(bench: Bench) -> None:
    """Of several versions of the DRA service the newest stands first."""
    found = [one for one in bench.info.supported_versions if one in SERVICES]
    _expect("supported_versions", sorted(found, key=list(SERVICES).index), found)


@section.recommended("k8s.io/kubelet/pkg/apis/dra, dra-health: the names of services")
def offers_no_unknown_version(bench: Bench) -> None:
    """supported_versions has each service once, and none that no kubelet knows."""
    known = {*SERVICES, *HEALTH}
    found = list(bench.info.supported_versions)
    _expect("supported_versions", [one for one in dict.fromkeys(found) if one in known], found)


@section.required("kubernetes/pkg/kubelet/cm/dra/plugin/dra_plugin.go, NodePrepareResources")
def each_version_is_served(bench: Bench) -> None:
    """Every DRA service in supported_versions answers at the endpoint."""
    for version in bench.info.supported_versions:
        if version in SERVICES:
            other = bench.connect(version)
            try:
                other.prepare(())
            except RefusedError as error:
                raise ViolationError(f"expected {version} to be served; found {error}") from None
            finally:
                other.close()


@section.required(f"{_MANAGER}/operationexecutor/operation_generator.go, notifyPlugin")
def success_is_accepted(bench: Bench) -> None:
    """NotifyRegistrationStatus with success is answered within five seconds."""
    try:
        _registrar(bench).notify(True)
    except RefusedError as error:
        raise ViolationError(f"expected an answer; found {error}") from None


@section.required(f"{_MANAGER}/reconciler: a kubelet that was restarted asks again")
def info_stays_the_same(bench: Bench) -> None:
    """A new connection to the registration socket gets the same PluginInfo."""
    first = bench.info
    again = bench.serve()
    for name in ("type", "name", "endpoint", "supported_versions"):
        _expect(name, getattr(first, name), getattr(again, name))


@section.required(f"{_PLUGIN}/dra_plugin_manager.go: the same endpoint twice is refused")
def one_socket_registers_it(bench: Bench) -> None:
    """No two sockets in the registry directory name the same endpoint."""
    seen: dict[str, str] = {}
    for socket in kubelet.sockets(bench.registry):
        other = Registrar(socket)
        try:
            endpoint = other.info().endpoint or str(socket)
        except RefusedError:
            continue
        finally:
            other.close()
        if endpoint in seen:
            raise ViolationError(f"expected one; found {seen[endpoint]} and {socket.name}")
        seen[endpoint] = socket.name


@section.recommended("kubernetes/test/e2e_node/dra_test.go: registration is tried again")
def failure_is_survived(bench: Bench) -> None:
    """Told that its registration failed, the driver can be asked again."""
    with suppress(RefusedError):  # nobody looks at what it says to that
        _registrar(bench).notify(False, "refused by the check on purpose")
    time.sleep(_GIVE_UP_SECONDS)
    deadline = time.monotonic() + _RETRY_SECONDS
    bench.serve()
    if time.monotonic() > deadline or not bench.is_serving():
        raise ViolationError(f"expected the driver to go on; {bench.said()}")


@section.required(
    f"{_MANAGER}/pluginwatcher/README.md: services are up when registered", starts_driver=True
)
def serves_when_registered(bench: Bench) -> None:
    """At the first GetInfo that is answered, the DRA service answers, too."""
    bench.stop()
    bench.start()
    bench.serve()
    try:
        bench.plugin.prepare((), seconds=kubelet.CALL_SECONDS)
    except RefusedError as error:
        raise ViolationError(f"expected the service to be up; found {error}") from None


@section.required("kubernetes/test/e2e_node/dra_test.go: re-registers", starts_driver=True)
def registers_again_after_restart(bench: Bench) -> None:
    """A driver that is stopped and started registers with the same name and versions."""
    first = bench.info
    bench.restart()
    for name in ("type", "name", "supported_versions"):
        _expect(name, getattr(first, name), getattr(bench.info, name))


@section.recommended(
    "kubernetes/pkg/kubelet/pluginmanager/pluginwatcher: removal deregisters", starts_driver=True
)
def socket_goes_at_the_end(bench: Bench) -> None:
    """A driver that ends at SIGTERM takes its registration socket away."""
    # While it starts it may know no better, and slices of a process before say nothing of this one.
    bench.renew()
    bench.stop()
    left = [one.name for one in kubelet.sockets(bench.registry)]
    bench.start()
    bench.serve()
    if left:
        raise ViolationError(f"expected no registration socket; found {', '.join(left)}")


def _expect(field: str, wanted: object, found: object) -> None:
    if wanted != found:
        raise ViolationError(f"expected {field} {_shown(wanted)}; found {_shown(found)}")


def _shown(value: object) -> str:
    if isinstance(value, str):
        return repr(value[:200])
    return ", ".join(map(str, value))[:200] or "none" if hasattr(value, "__iter__") else str(value)
