"""What drivers answer when a kubelet asks them who they are.

A kubelet tells a refusal to the driver alone, and takes a driver under any name, so that pods wait
for one that never comes. The same question on the same sockets tells both before a pod does.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import grpc

from nvml_driver.kubelet.rpc import stub
from nvml_driver.kubeletapi.pluginregistration.v1 import api_pb2 as registration

KNOWN_SERVICES: Final = ("v1.DRAPlugin", "v1beta1.DRAPlugin")
"""`servicesSupportedByKubelet` in pkg/kubelet/cm/dra/plugin/dra_plugin.go, in 1.34 to 1.37."""

PLUGIN_TYPE: Final = "DRAPlugin"
INFO_SECONDS: Final = 1.0
"""For GetInfo (pkg/kubelet/pluginmanager/operationexecutor, RegisterPlugin)."""


@dataclass(frozen=True, slots=True)
class Offer:
    """A driver's answer.

    Attributes:
        name: of the driver.
        services: that it serves, best first.
    """

    name: str
    services: tuple[str, ...]


def offers(registrar: Path) -> list[Offer]:
    """What the DRA drivers below a kubelet's directory for registration sockets answer now."""
    found = []
    for path in sorted(path for path in registrar.rglob("*") if path.is_socket()):
        with grpc.insecure_channel(f"unix:{path}") as channel:
            ask = stub(registration, channel).GetInfo
            try:
                info = ask(registration.InfoRequest(), timeout=INFO_SECONDS)
            except grpc.RpcError:
                continue  # it does not serve yet, or not any more
        if info.type == PLUGIN_TYPE:
            found.append(Offer(info.name, tuple(info.supported_versions)))
    return found


def refusal(found: Collection[Offer]) -> str:
    """Why no kubelet will register any of these drivers; "" if one can be, or there is none."""
    if not found or any(set(offer.services) & set(KNOWN_SERVICES) for offer in found):
        return ""
    told = (f"{one.name} offers {', '.join(one.services) or 'no service'}" for one in found)
    return (
        f"no kubelet registers it: {'; '.join(told)}; what kubelets of Kubernetes 1.34 to 1.37 "
        f"know is {', '.join(KNOWN_SERVICES)}"
    )
