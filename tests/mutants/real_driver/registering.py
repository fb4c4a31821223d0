"""Defects of how the driver makes itself known to the kubelet."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from kube.kubelet import dra_v1beta1_pb2 as v1beta1
from kube.kubelet import pluginregistration_v1_pb2 as registration
from kube.kubelet.rpc import serve
from nvml_driver.errors import DriverError
from nvml_driver.kubelet import plugin, rolling, service
from nvml_driver.kubelet.service import dra_service, registration_service
from tests.mutants.real_driver.replacement import OfTheContract, PutIn, instead

another_name = instead(
    registration_service,
    lambda original, name, *others: original(f"other-{name}", *others),
    at=plugin,
)
unknown_version = instead(
    registration_service,
    lambda original, name, endpoint, _versions, registered: original(
        name, endpoint, ["v99.DRAPlugin"], registered
    ),
    at=plugin,
)


def _info(**changes: Callable[[str], str]) -> PutIn:
    """Another PluginInfo: field -> what becomes of it."""

    def plugin_info(**fields: Any) -> Any:
        for field, change in changes.items():
            fields[field] = change(fields[field])
        return registration.PluginInfo(**fields)

    def put_in() -> None:
        changed = {**vars(registration), "PluginInfo": plugin_info}
        vars(service)["registration"] = SimpleNamespace(**changed)

    return put_in


def _versions(change: Callable[[list[str]], list[str]]) -> PutIn:
    return instead(
        registration_service,
        lambda original, name, endpoint, versions, registered: original(
            name, endpoint, change(list(versions)), registered
        ),
        at=plugin,
    )


def _endpoint(change: Callable[[str], str]) -> PutIn:
    return instead(
        registration_service,
        lambda original, name, endpoint, *others: original(name, change(endpoint), *others),
        at=plugin,
    )


def _slow(text: str) -> str:
    time.sleep(1.5)
    return text


def _without_beta(original: Callable[..., Any], messages: Any, work: Any) -> Any:
    return original(messages, work) if messages is not v1beta1 else serve(v1beta1, {})


def _registrar_first(_original: Any, self: plugin.KubeletPlugin) -> None:
    self.instance.begin()
    both_sockets = ((self._registrar, self.registration_socket), (self._dra, self.dra_socket))
    for server, path in both_sockets:
        path.parent.mkdir(parents=True, exist_ok=True)
        server.add_insecure_port(f"unix:{path}")
        server.start()
        time.sleep(0.5)


def _refuses_leftovers(original: Callable[..., None], self: plugin.KubeletPlugin) -> None:
    if self.dra_socket.exists():
        raise DriverError(f"{self.dra_socket} exists")
    original(self)


def _hidden(original: Callable[..., Path], registry: Path, *others: Any) -> Path:
    found = original(registry, *others)
    return found.with_name(f".{found.name}")


def _with_its_kubeconfig(original: Callable[..., Any], *args: Any) -> Any:
    print(Path(os.environ["KUBECONFIG"]).read_text(), flush=True)
    return original(*args)


OF_THE_CONTRACT: OfTheContract = {
    "registers-as-device-plugin": (
        "the type of plugin is that of device plugins",
        _info(type=lambda _: "DevicePlugin"),
        "registration/type-is-dra-plugin",
    ),
    "registers-no-dns-name": (
        "the driver's name is no DNS subdomain",
        _info(name=lambda name: name.upper()),
        "registration/name-is-a-dns-subdomain",
    ),
    "endpoint-nowhere": (
        "the endpoint is a socket that there is not",
        _endpoint(lambda endpoint: f"{endpoint}.nowhere"),
        "registration/endpoint-is-a-socket",
    ),
    "endpoint-with-a-query": (
        "the endpoint ends as a URL may, and a path need not",
        _endpoint(lambda endpoint: f"{endpoint}?kubelet=yes"),
        "registration/endpoint-is-a-plain-path",
    ),
    "endpoint-too-long-for-a-socket": (
        "the endpoint goes in and out of a folder until it has 108 bytes",
        _endpoint(lambda endpoint: endpoint.replace("/dra.sock", "/../" * 30 + "dra.sock")),
        "registration/endpoint-is-a-plain-path",
    ),
    "slow-info": (
        "GetInfo takes a second and a half",
        _info(type=_slow),
        "registration/info-within-a-second",
    ),
    "oldest-version-first": (
        "the older version of the service is offered first",
        _versions(lambda versions: [versions[1], versions[0], *versions[2:]]),
        "registration/newest-version-first",
    ),
    "offers-nonsense-too": (
        "a version that no kubelet knows is offered, too",
        _versions(lambda versions: [*versions, "v99.DRAPlugin"]),
        "registration/offers-no-unknown-version",
    ),
    "offers-what-it-does-not-serve": (
        "v1beta1 is offered and not served",
        instead(dra_service, _without_beta, at=plugin),
        "registration/each-version-is-served",
    ),
    "registers-before-it-serves": (
        "the registration socket is there half a second before the service's",
        instead(plugin.KubeletPlugin.start, _registrar_first),
        "registration/serves-when-registered",
    ),
    "hides-its-socket": (
        "the name of the registration socket begins with a dot",
        instead(rolling.registration_socket, _hidden),
        "registration/socket-appears",
    ),
    "leaves-its-socket": (
        "a driver that ends leaves the registration socket",
        instead(plugin.KubeletPlugin.stop, lambda *_: os._exit(0)),
        "registration/socket-goes-at-the-end",
    ),
    "stops-for-leftovers": (
        "a driver does not start where a killed one left its socket",
        instead(plugin.KubeletPlugin.start, _refuses_leftovers),
        "restart/starts-over-what-was-killed",
    ),
    "logs-its-token": (
        "the log of a start has the kubeconfig",
        instead(plugin.KubeletPlugin.start, _with_its_kubeconfig),
        "rbac/token-is-not-logged",
    ),
    "stays-at-sigterm": (
        "the driver does not end at SIGTERM",
        instead(plugin.KubeletPlugin.stop, lambda *_: time.sleep(60)),
        "restart/ends-at-sigterm",
    ),
}
