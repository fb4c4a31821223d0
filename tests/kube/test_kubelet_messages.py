"""The stubs speak the kubelet's wire format: names and numbers of k8s.io/kubelet v0.37.1."""

from __future__ import annotations

from typing import Any

import pytest

from kube.kubelet import dra_health_v1_pb2 as health_v1
from kube.kubelet import dra_health_v1alpha1_pb2 as health_v1alpha1
from kube.kubelet import dra_v1_pb2 as v1
from kube.kubelet import dra_v1beta1_pb2 as v1beta1
from kube.kubelet import pluginregistration_v1_pb2 as registration
from kube.kubelet import podresources_v1_pb2 as podresources

DRA = {
    "Claim": {"namespace": 1, "uid": 2, "name": 3},
    "NodePrepareResourcesRequest": {"claims": 1},
    "NodePrepareResourcesResponse": {"claims": 1},
    "NodePrepareResourceResponse": {"devices": 1, "error": 2},
    "Device": {"request_names": 1, "pool_name": 2, "device_name": 3, "cdi_device_ids": 4},
    "NodeUnprepareResourcesRequest": {"claims": 1},
    "NodeUnprepareResourcesResponse": {"claims": 1},
    "NodeUnprepareResourceResponse": {"error": 1},
}
DRA_V1 = {**DRA, "Device": {**DRA["Device"], "share_id": 5}}
REGISTRATION = {
    "InfoRequest": {},
    "PluginInfo": {"type": 1, "name": 2, "endpoint": 3, "supported_versions": 4},
    "RegistrationStatus": {"plugin_registered": 1, "error": 2},
    "RegistrationStatusResponse": {},
}
HEALTH = {
    "NodeWatchResourcesRequest": {},
    "DeviceIdentifier": {"pool_name": 1, "device_name": 2},
    "DeviceHealth": {
        "device": 1,
        "health": 2,
        "last_updated_time": 3,
        "health_check_timeout_seconds": 4,
        "message": 5,
    },
    "NodeWatchResourcesResponse": {"devices": 1},
}
POD_RESOURCES = {
    "ListPodResourcesRequest": {},
    "ListPodResourcesResponse": {"pod_resources": 1},
    "PodResources": {"name": 1, "namespace": 2, "containers": 3},
    "ContainerResources": {"name": 1, "dynamic_resources": 5},
    "DynamicResource": {"claim_name": 2, "claim_namespace": 3, "claim_resources": 4},
    "ClaimResource": {
        "cdi_devices": 1,
        "driver_name": 2,
        "pool_name": 3,
        "device_name": 4,
        "share_id": 5,
    },
    "CDIDevice": {"name": 1},
}
DRA_METHODS = ["NodePrepareResources", "NodeUnprepareResources"]


@pytest.mark.parametrize(
    ("module", "service", "methods", "messages"),
    [
        (v1, "k8s.io.kubelet.pkg.apis.dra.v1.DRAPlugin", DRA_METHODS, DRA_V1),
        (v1beta1, "k8s.io.kubelet.pkg.apis.dra.v1beta1.DRAPlugin", DRA_METHODS, DRA),
        (health_v1, "v1.DRAResourceHealth", ["NodeWatchResources"], HEALTH),
        (health_v1alpha1, "v1alpha1.DRAResourceHealth", ["NodeWatchResources"], HEALTH),
        (
            registration,
            "pluginregistration.Registration",
            ["GetInfo", "NotifyRegistrationStatus"],
            REGISTRATION,
        ),
        (podresources, "v1.PodResourcesLister", ["List"], POD_RESOURCES),
    ],
    ids=["dra v1", "dra v1beta1", "health v1", "health v1alpha1", "registration", "podresources"],
)
def test_names_and_numbers_are_the_kubelets(
    module: Any, service: str, methods: list[str], messages: dict[str, dict[str, int]]
) -> None:
    file = module.DESCRIPTOR
    [found] = file.services_by_name.values()
    assert found.full_name == service
    assert [method.name for method in found.methods] == methods
    assert {
        name: {field.name: field.number for field in message.fields}
        for name, message in file.message_types_by_name.items()
    } == messages


def test_a_response_is_a_map_by_uid_and_an_empty_entry_is_one() -> None:
    response = v1.NodePrepareResourcesResponse()
    response.claims["u"].error = ""
    # Field 1, an entry with key (1) "u" and an empty message as value (2).
    assert response.SerializeToString() == b"\x0a\x05\x0a\x01u\x12\x00"


def test_only_v1_can_leave_a_share_id_unset() -> None:
    device = v1.Device(share_id="")
    assert device.HasField("share_id")
    assert "share_id" not in v1beta1.Device.DESCRIPTOR.fields_by_name


@pytest.mark.parametrize("messages", [health_v1, health_v1alpha1])
def test_health_states_have_the_kubelets_numbers(messages: Any) -> None:
    assert dict(messages.HealthStatus.items()) == {"UNKNOWN": 0, "HEALTHY": 1, "UNHEALTHY": 2}
