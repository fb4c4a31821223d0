"""Fields whose gate is off, and devices that only nodes with a declared feature may have.

Fields behind a gate that is off are dropped without a word from what did not have them before.
Sources: the functions dropDisabled... in pkg/registry/resource and pkg/registry/scheduling, and for
devices that stand for a node's own resources the admission plugin NodeDeclaredFeatures
(plugin/pkg/admission/nodedeclaredfeatures).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from kube.slices import results_of
from kube.values import Obj
from kubesim import pods
from kubesim.apiserver.conversion import claim_devices, device_requests, list_devices
from kubesim.store import Store, name_of, new_forbidden
from reference_allocator.api import NodeSelector
from reference_allocator.rules.node_eligibility import selector_matches

_REQUEST_FIELDS: Final = {
    "adminAccess": ("DRAAdminAccess",),
    "capacity": ("DRAConsumableCapacity",),
    "derivedAttributes": ("DRADerivedAttributes",),
    "tolerations": ("DRADeviceTaints",),
}
_SLICE_FIELDS: Final = {
    "partitionTypeAttribute": ("DRAPartitionableDevicesType",),
    "perDeviceNodeSelection": ("DRAPartitionableDevices",),
    "sharedCounters": ("DRAPartitionableDevices",),
    "skipNodeOperations": ("DRAOptionalNodeOperations",),
}
_BINDING: Final = ("DRADeviceBindingConditions", "DRAResourceClaimDeviceStatus")
_RESULT_FIELDS: Final = {
    "adminAccess": ("DRAAdminAccess",),
    "bindingConditions": _BINDING,
    "bindingFailureConditions": _BINDING,
    "consumedCapacity": ("DRAConsumableCapacity",),
    "shareID": ("DRAConsumableCapacity",),
    "skipNodeOperations": ("DRAOptionalNodeOperations",),
}
_POD_STATUS_FIELDS: Final = {
    "extendedResourceClaimStatus": ("DRAExtendedResource",),
    "nodeAllocatableResourceClaimStatuses": ("DRANodeAllocatableResources",),
    "resourceClaimStatuses": ("DynamicResourceAllocation",),
}
_GROUP_CLAIMS: Final = ("DRAWorkloadResourceClaims",)
_OTHER_GROUP_FIELDS: Final = (
    "parentCompositePodGroupName",
    "preemptionPolicy",
    "schedulingConstraints",
)
"""Fields of a PodGroup whose gates are always off here."""
_NODE_FEATURE: Final = "DRANodeAllocatableResources"
_DEVICE_FIELDS: Final = {
    "allNodes": ("DRAPartitionableDevices",),
    "allowMultipleAllocations": ("DRAConsumableCapacity",),
    "bindingConditions": _BINDING,
    "bindingFailureConditions": _BINDING,
    "bindsToNode": _BINDING,
    "consumesCounters": ("DRAPartitionableDevices",),
    "nodeAllocatableResources": (_NODE_FEATURE,),
    "nodeName": ("DRAPartitionableDevices",),
    "nodeSelector": ("DRAPartitionableDevices",),
    "taints": ("DRADeviceTaints",),
}


_ATTRIBUTE_FIELDS: Final = dict.fromkeys(
    ("bools", "ints", "strings", "versions"), ("DRAListTypeAttributes",)
)


def drop_disabled_fields(
    gates: Mapping[str, bool], kubernetes: str, obj: Obj, old: Obj | None = None
) -> None:
    """Drop what is off from a new or changed object in its stored version, in place.

    What belongs to a gate stays if there was something of it before the change, in ``old``.
    ``kubernetes``: the server's minor; 1.34 keeps some fields, gate or no gate.
    """
    if obj["kind"] == "PodGroup":
        for field in _OTHER_GROUP_FIELDS:
            obj["spec"].pop(field, None)
    kept = {"distinctAttribute", "tolerations"} if kubernetes == "1.34" else set()
    used = {
        gate: True
        for _, _, needed in (() if old is None else list_gated_fields(old))
        for gate in needed
    }
    for struct, field, needed in [*list_gated_fields(obj)]:
        if field not in kept and not all(gate in used or gates.get(gate) for gate in needed):
            del struct[field]


def list_gated_fields(obj: Obj) -> Iterator[tuple[Obj, str, tuple[str, ...]]]:
    """Yield each field that gates are for: the part of a stored object with it, name, gates."""
    for struct, fields in _list_gated_fields(obj):
        for field, needed in fields.items():
            if field in struct:
                yield struct, field, needed


def _list_gated_fields(obj: Obj) -> Iterator[tuple[Any, Mapping[str, Any]]]:
    """Yield each part of an object that may have fields of gates, and these fields."""
    spec = obj.get("spec") or {}
    if obj["kind"] == "DeviceClass":
        yield spec, {"extendedResourceName": ("DRAExtendedResource",)}
    elif obj["kind"] == "Pod":
        gate = ("DynamicResourceAllocation",)
        yield spec, {"resourceClaims": gate, "schedulingGroup": ("GenericWorkload",)}
        yield obj.get("status") or {}, _POD_STATUS_FIELDS
        for container in pods.list_containers(spec):
            yield container.get("resources") or {}, {"claims": gate}
    elif obj["kind"] == "PodGroup":
        yield spec, {"resourceClaims": _GROUP_CLAIMS}
        yield obj.get("status") or {}, {"resourceClaimStatuses": _GROUP_CLAIMS}
    elif obj["kind"] == "ResourceSlice":
        yield spec, _SLICE_FIELDS
        for device in list_devices(obj):
            yield from _list_gated_device_fields(device)
    elif obj["kind"] == "Node":
        yield obj.get("status") or {}, {"declaredFeatures": ("NodeDeclaredFeatures",)}
    elif obj["kind"] == "ResourcePoolStatusRequest":
        yield spec, {"defaultPartitionTypeAttribute": ("DRAPartitionableDevicesType",)}
    elif obj["kind"] == "ResourceClaim":
        yield obj.get("status") or {}, {"devices": ("DRAResourceClaimDeviceStatus",)}
        for result in results_of(obj):
            yield result, _RESULT_FIELDS
    for request in device_requests(obj):
        yield request, {"firstAvailable": ("DRAPrioritizedList",)}
        for device_request in (
            request.get("exactly") or {},
            *(request.get("firstAvailable") or []),
        ):
            yield device_request, _REQUEST_FIELDS
    for constraint in claim_devices(obj).get("constraints") or []:
        yield constraint, {"distinctAttribute": ("DRAConsumableCapacity",)}


def _list_gated_device_fields(device: Obj) -> Iterator[tuple[Any, Mapping[str, Any]]]:
    yield device, _DEVICE_FIELDS
    for attribute in (device.get("attributes") or {}).values():
        yield attribute, _ATTRIBUTE_FIELDS
    for capacity in (device.get("capacity") or {}).values():
        yield capacity, {"requestPolicy": ("DRAConsumableCapacity",)}
    for consumed in device.get("consumesCounters") or []:
        yield consumed, {"compatibilityGroups": ("DRADeviceCompatibilityGroups",)}


def admit_slice(gates: Mapping[str, bool], store: Store, obj: Obj) -> None:
    """Refuse a slice with devices of a node's own resources where the node does not know of them.

    Raises ApiError: 403 Forbidden.
    """
    if obj["kind"] != "ResourceSlice" or not gates.get(_NODE_FEATURE):
        return
    spec = obj["spec"]
    for device in list_devices(obj):
        if not device.get("nodeAllocatableResources"):
            continue
        node_selection = device if spec.get("perDeviceNodeSelection") else spec
        for node in _list_device_nodes(store, obj, device, node_selection):
            if _NODE_FEATURE not in ((node.get("status") or {}).get("declaredFeatures") or []):
                text = f'node "{name_of(node)}" does not support {_NODE_FEATURE} feature'
                raise new_forbidden(obj, text)


def _list_device_nodes(store: Store, obj: Obj, device: Obj, node_selection: Obj) -> Iterator[Obj]:
    if node_selection.get("nodeName"):
        node = store.get("Node", "", node_selection["nodeName"])
        if node is None:
            text = f'node "{node_selection["nodeName"]}" not found for device "{device["name"]}"'
            raise new_forbidden(obj, text)
        yield node
    elif node_selection.get("nodeSelector") or node_selection.get("allNodes"):
        for node in store.all("Node"):
            if node_selection.get("allNodes") or selector_matches(
                NodeSelector.from_dict(node_selection["nodeSelector"]), node
            ):
                yield node
    else:
        text = (
            f'device "{device["name"]}" in ResourceSlice has NodeAllocatableResources but does '
            "not map to any nodes"
        )
        raise new_forbidden(obj, text)
