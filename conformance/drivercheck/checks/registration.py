"""How a driver makes itself known to the kubelet."""

from __future__ import annotations

import re
import stat
import time
from contextlib import suppress
from pathlib import Path

from conformance.drivercheck import kubelet
from conformance.drivercheck.bench import Bench
from conformance.drivercheck.check import Section
from conformance.drivercheck.kubelet import HEALTH, SERVICES, RefusedError, Registrar
from conformance.drivercheck.violations import ViolationError
from kube.kubelet.plugins import KUBELET_ROOT, PLUGIN_TYPE
from reference_allocator.api.names import dns_subdomain_problems

section = Section("registration")

_MANAGER = "kubernetes/pkg/kubelet/pluginmanager"
_PLUGIN = "kubernetes/pkg/kubelet/cm/dra/plugin"
_LONGEST_NAME = 63  # DriverNameMaxLength, resource/v1 types.go
_UNIX_PATH_MAX = 108  # unixPathMax, dra_plugin_manager.go
_NOT_PLAIN = re.compile(r"[%?#\x00-\x1f\x7f]")  # what url.Parse takes apart, decodes or refuses
_RETRY_SECONDS = 3.0
_GIVE_UP_SECONDS = 1.0  # one that gives up has ended by then


@section.required(f"{_MANAGER}/pluginwatcher/plugin_watcher.go, handleCreateEvent")
def socket_appears(bench: Bench) -> None:
    """A socket whose name does not begin with a dot appears in the registry directory."""
    bench.driver.await_registration()


def _registrar(bench: Bench) -> Registrar:
    if bench.driver.registrar is None:
        bench.driver.await_registration()
    assert bench.driver.registrar is not None
    return bench.driver.registrar


@section.required(f"{_MANAGER}/operationexecutor/operation_generator.go, dialTimeoutDuration")
def info_within_a_second(bench: Bench) -> None:
    """GetInfo is answered within a second."""
    try:
        _registrar(bench).get_info()
    except RefusedError as error:
        raise ViolationError(f"expected an answer; found {error}") from None


@section.required(f"{_PLUGIN}/dra_plugin_manager.go; pluginregistration/v1/constants.go, DRAPlugin")
def type_is_dra_plugin(bench: Bench) -> None:
    """PluginInfo.type is DRAPlugin."""
    _expect_field("type", PLUGIN_TYPE, bench.driver.info.type)


@section.required("k8s.io/api/resource/v1/types.go, ResourceSliceSpec.Driver")
def name_is_a_dns_subdomain(bench: Bench) -> None:
    """PluginInfo.name is a DNS subdomain of at most 63 characters."""
    name = bench.driver.name
    if dns_subdomain_problems(name) or len(name) > _LONGEST_NAME:
        raise ViolationError(f"expected a DNS subdomain as name; found {name[:100]!r}")


@section.required(f"{_PLUGIN}/dra_plugin_manager.go, RegisterPlugin")
def endpoint_is_a_socket(bench: Bench) -> None:
    """PluginInfo.endpoint is the absolute path of a socket, or empty for the registration's own."""
    if not bench.driver.info.endpoint:
        return
    endpoint = Path(bench.driver.info.endpoint)
    try:
        is_socket = stat.S_ISSOCK(endpoint.stat().st_mode)
    except (OSError, ValueError):
        is_socket = False
    if not is_socket or not endpoint.is_absolute():
        raise ViolationError(
            f"expected the absolute path of a socket as endpoint; found {str(endpoint)[:200]!r}"
        )


@section.recommended("k8s.io/dynamic-resource-allocation/kubeletplugin, PluginDataDirectoryPath")
def endpoint_is_in_its_own_folder(bench: Bench) -> None:
    """The endpoint lies in the plugins directory, in the folder of the driver's name."""
    own_folder = bench.driver.plugins / bench.driver.name
    endpoint = Path(bench.driver.info.endpoint or own_folder / "none")
    if own_folder not in endpoint.parents:
        raise ViolationError(f"expected an endpoint in {own_folder}; found {endpoint}")


@section.recommended(f"{_PLUGIN}/dra_plugin_manager.go, validateEndpoint; since Kubernetes 1.38")
def endpoint_is_a_plain_path(bench: Bench) -> None:
    """The endpoint has less than 108 bytes on a node, and no character with a meaning in a URL."""
    endpoint = bench.driver.info.endpoint
    folder = str(bench.driver.folder)
    if endpoint.startswith(folder):
        endpoint = f"{KUBELET_ROOT}{endpoint.removeprefix(folder)}"
    length = len(endpoint.encode())
    if length >= _UNIX_PATH_MAX:
        text = f"expected an endpoint of less than {_UNIX_PATH_MAX} bytes; found {length}"
        raise ViolationError(f"{text}: {endpoint[:200]!r}")
    if endpoint.startswith("//") or _NOT_PLAIN.search(endpoint):
        raise ViolationError(f"expected a plain path as endpoint; found {endpoint[:200]!r}")


@section.required(f"{_PLUGIN}/dra_plugin_manager.go, ValidatePlugin")
def offers_a_known_version(bench: Bench) -> None:
    """supported_versions names a DRA service that kubelets know, which is v1 or v1beta1."""
    bench.driver.plugin  # noqa: B018 -- it says which there are


@section.recommended(f"{_PLUGIN}/dra_plugin_manager.go: the first in the driver's order is taken")
def newest_version_first(bench: Bench) -> None:
    """Of several versions of the DRA service the newest stands first."""
    versions = [version for version in bench.driver.info.supported_versions if version in SERVICES]
    _expect_field("supported_versions", sorted(versions, key=list(SERVICES).index), versions)


@section.recommended("k8s.io/kubelet/pkg/apis/dra, dra-health: the names of services")
def offers_no_unknown_version(bench: Bench) -> None:
    """supported_versions has each service once, and none that no kubelet knows."""
    known_services = {*SERVICES, *HEALTH}
    offered = list(bench.driver.info.supported_versions)
    _expect_field(
        "supported_versions",
        [version for version in dict.fromkeys(offered) if version in known_services],
        offered,
    )


@section.required("kubernetes/pkg/kubelet/cm/dra/plugin/dra_plugin.go, NodePrepareResources")
def each_version_is_served(bench: Bench) -> None:
    """Every DRA service in supported_versions answers at the endpoint."""
    for version in bench.driver.info.supported_versions:
        if version in SERVICES:
            other = bench.driver.connect(version)
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
    first = bench.driver.info
    second = bench.driver.await_registration()
    for name in ("type", "name", "endpoint", "supported_versions"):
        _expect_field(name, getattr(first, name), getattr(second, name))


@section.required(f"{_PLUGIN}/dra_plugin_manager.go: the same endpoint twice is refused")
def one_socket_registers_it(bench: Bench) -> None:
    """No two sockets in the registry directory name the same endpoint."""
    registered: dict[str, str] = {}
    for socket in kubelet.list_sockets(bench.driver.registry):
        other = Registrar(socket)
        try:
            endpoint = other.get_info().endpoint or str(socket)
        except RefusedError:
            continue
        finally:
            other.close()
        if endpoint in registered:
            raise ViolationError(f"expected one; found {registered[endpoint]} and {socket.name}")
        registered[endpoint] = socket.name


@section.recommended("kubernetes/test/e2e_node/dra_test.go: registration is tried again")
def failure_is_survived(bench: Bench) -> None:
    """Told that its registration failed, the driver can be asked again."""
    with suppress(RefusedError):  # nobody looks at what it says to that
        _registrar(bench).notify(False, "refused by the check on purpose")
    time.sleep(_GIVE_UP_SECONDS)
    deadline = time.monotonic() + _RETRY_SECONDS
    bench.driver.await_registration()
    if time.monotonic() > deadline or not bench.driver.is_serving():
        raise ViolationError(f"expected the driver to go on; {bench.driver.describe_log()}")


@section.required(
    f"{_MANAGER}/pluginwatcher/README.md: services are up when registered", starts_driver=True
)
def serves_when_registered(bench: Bench) -> None:
    """At the first GetInfo that is answered, the DRA service answers, too."""
    bench.driver.stop()
    bench.driver.start()
    bench.driver.await_registration()
    try:
        bench.driver.plugin.prepare((), seconds=kubelet.CALL_SECONDS)
    except RefusedError as error:
        raise ViolationError(f"expected the service to be up; found {error}") from None


@section.required("kubernetes/test/e2e_node/dra_test.go: re-registers", starts_driver=True)
def registers_again_after_restart(bench: Bench) -> None:
    """A driver that is stopped and started registers with the same name and versions."""
    first = bench.driver.info
    bench.driver.restart()
    for name in ("type", "name", "supported_versions"):
        _expect_field(name, getattr(first, name), getattr(bench.driver.info, name))


@section.recommended(
    "kubernetes/pkg/kubelet/pluginmanager/pluginwatcher: removal deregisters", starts_driver=True
)
def socket_goes_at_the_end(bench: Bench) -> None:
    """A driver that ends at SIGTERM takes its registration socket away."""
    # While it starts it may know no better, and slices of a process before say nothing of this one.
    bench.driver.renew()
    bench.driver.stop()
    remaining = [socket.name for socket in kubelet.list_sockets(bench.driver.registry)]
    bench.driver.start()
    bench.driver.await_registration()
    if remaining:
        raise ViolationError(f"expected no registration socket; found {', '.join(remaining)}")


def _expect_field(field: str, expected: object, actual: object) -> None:
    if expected != actual:
        raise ViolationError(
            f"expected {field} {_describe_value(expected)}; found {_describe_value(actual)}"
        )


def _describe_value(value: object) -> str:
    if isinstance(value, str):
        return repr(value[:200])
    return ", ".join(map(str, value))[:200] or "none" if hasattr(value, "__iter__") else str(value)
