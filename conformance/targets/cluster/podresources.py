"""What the kubelets of nodes list by the PodResources API, where their sockets can be reached."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Final

import grpc

from conformance.scenario.observation import ListedClaim, ListedDevice
from nvml_driver.kubelet.rpc import stub
from nvml_driver.kubeletapi.podresources.v1 import api_pb2 as api

_SECONDS: Final = 5.0


def listed(socket: Path, namespace: str, pod: str, container: str) -> Sequence[ListedClaim] | None:
    """The claims of a container; None: the kubelet does not list it, or does not answer."""
    with grpc.insecure_channel(f"unix:{socket}") as channel:
        try:
            answer = stub(api, channel).List(api.ListPodResourcesRequest(), timeout=_SECONDS)
        except grpc.RpcError:  # a kubelet that restarts is asked again
            return None
    for item in answer.pod_resources:
        if (item.namespace, item.name) == (namespace, pod):
            for one in item.containers:
                if one.name == container:
                    return [_claim(claim) for claim in one.dynamic_resources]
    return None


def _claim(claim: api.DynamicResource) -> ListedClaim:
    devices = tuple(
        ListedDevice(
            device.driver_name,
            device.pool_name,
            device.device_name,
            tuple(cdi.name for cdi in device.cdi_devices),
        )
        for device in claim.claim_resources
    )
    return ListedClaim(claim.claim_namespace, claim.claim_name, devices)
