"""The kinds that the reference serves, and in which versions (an API server's discovery)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache, cached_property
from typing import Any, Final

from kube.errors import ApiError
from reference_allocator.api import schema

DRA_GROUP: Final = "resource.k8s.io"
_DRA_GATE: Final = "DynamicResourceAllocation"


@dataclass(frozen=True)
class Kind:
    """One kind of object.

    Attributes:
        name: ``kind``, for example ``ResourceClaim``.
        group: API group, empty for core.
        versions: served versions; the first is the one objects are stored in.
        generation: ``metadata.generation`` is counted for it.
    """

    name: str
    plural: str
    group: str
    versions: tuple[str, ...]
    namespaced: bool
    generation: bool = False
    gates: tuple[str, ...] = ()

    @property
    def api_version(self) -> str:
        return self.api_version_in(self.versions[0])

    @cached_property
    def api_versions(self) -> tuple[str, ...]:
        return tuple(self.api_version_in(version) for version in self.versions)

    @property
    def resource(self) -> str:
        """Resource with group, as in ``resourceclaims.resource.k8s.io "x" not found``."""
        return f"{self.plural}.{self.group}" if self.group else self.plural

    @property
    def group_kind(self) -> str:
        """Kind with group, as in ``ResourceClaim.resource.k8s.io "x" is invalid``."""
        return f"{self.name}.{self.group}" if self.group else self.name

    def is_served(self, gates: Mapping[str, bool]) -> bool:
        """Return whether an API server with these feature gates has it."""
        return all(gates.get(gate, False) for gate in self.gates)

    def api_version_in(self, version: str) -> str:
        """Return ``apiVersion`` of one of the versions."""
        return f"{self.group}/{version}" if self.group else version


def _kind(name: str, *, generation: bool = False, gates: tuple[str, ...] = ()) -> Kind:
    """Return a kind of the table of the API's types, which has its group and versions."""
    apis = [root.rpartition("/")[0] for root in schema.roots() if root.endswith(f"/{name}")]
    group, versions = apis[0].rpartition("/")[0], [api.rpartition("/")[2] for api in apis]
    versions.sort(key=lambda version: (version == "v1", version), reverse=True)
    plural = name.lower() + ("es" if name.endswith("s") else "s")
    namespaced = name not in schema.CLUSTER_SCOPED
    gates = (_DRA_GATE, *gates) if group == DRA_GROUP else gates
    return Kind(name, plural, group, tuple(versions), namespaced, generation, gates)


_ALL: Final = (
    _kind("Namespace"),
    _kind("Node"),
    _kind("Pod", generation=True),
    _kind("ResourceQuota"),
    _kind("Event"),
    _kind("PriorityClass", generation=True),
    _kind("PodGroup", gates=("GenericWorkload",)),
    _kind("DaemonSet", generation=True),
    _kind("Deployment", generation=True),
    _kind("ReplicaSet", generation=True),
    _kind("StatefulSet", generation=True),
    _kind("Job", generation=True),
    _kind("DeviceClass", generation=True),
    _kind("ResourceSlice", generation=True),
    _kind("ResourceClaim"),
    _kind("ResourceClaimTemplate"),
    _kind("DeviceTaintRule", generation=True, gates=("DRADeviceTaintRules",)),
    _kind("ResourcePoolStatusRequest", gates=("DRAResourcePoolStatus",)),
)

KINDS: Final[Mapping[str, Kind]] = {kind.name: kind for kind in _ALL}

_DRA_KINDS: Final = ("DeviceClass", "ResourceClaim", "ResourceClaimTemplate", "ResourceSlice")
RETIRED_VERSIONS: Final = {
    **{("v1beta1", kind): (35, 38) for kind in _DRA_KINDS},
    **{("v1beta2", kind): (36, 39) for kind in _DRA_KINDS},
    ("v1beta2", "DeviceTaintRule"): (39, 42),
    ("v1alpha3", "DeviceTaintRule"): (36, 39),
    ("v1alpha3", "ResourcePoolStatusRequest"): (39, 42),
}
"""Version and kind -> the minors that deprecate and remove them.

Source: zz_generated.prerelease-lifecycle.go of k8s.io/api.
"""


_FIRST_MINORS: Final = {
    ("v1", "DeviceTaintRule"): 37,
    ("v1beta2", "DeviceTaintRule"): 36,
    ("v1alpha3", "ResourcePoolStatusRequest"): 36,
    ("v1beta1", "PodGroup"): 37,
}
"""Version and kind -> the minor that has it first, where that is later than 1.34."""

_NEW_FIELDS: Final[Mapping[int, Mapping[str, tuple[str, ...]]]] = {
    35: {"core/v1.NodeStatus": ("declaredFeatures",)},
    36: {"DeviceAttribute": ("bools", "ints", "strings", "versions")},
    37: {
        "BasicDevice": ("nodeAllocatableResources",),
        "Device": ("nodeAllocatableResources",),
        "DeviceCounterConsumption": ("compatibilityGroups",),
        "DeviceRequest": ("derivedAttributes",),
        "DeviceRequestAllocationResult": ("skipNodeOperations",),
        "DeviceSubRequest": ("derivedAttributes",),
        "ExactDeviceRequest": ("derivedAttributes",),
        "PoolStatus": ("partitionSummary", "shareableSummary"),
        "ResourcePoolStatusRequestSpec": ("defaultPartitionTypeAttribute",),
        "ResourceSliceSpec": ("partitionTypeAttribute", "skipNodeOperations"),
    },
}
"""Minor -> type -> its fields that no minor before has; of resource.k8s.io in all versions."""


@cache
def list_lacking_fields(kubernetes: str) -> frozenset[tuple[str, str]]:
    """Return the fields that a minor does not know, each by its type in the table and its name."""
    minor = int(kubernetes.partition(".")[2])
    versions = [f"resource/{version}" for version in ("v1", "v1alpha3", "v1beta1", "v1beta2")]
    return frozenset(
        (owner if "/" in owner else f"{version}.{owner}", field)
        for first, fields_by_owner in _NEW_FIELDS.items()
        for owner, fields in fields_by_owner.items()
        for field in fields
        for version in versions
        if first > minor
    )


def is_registered(api_version: str, kind: str, kubernetes: str) -> bool:
    """Return whether the API server of a minor knows a kind in a version, served or not."""
    first = _FIRST_MINORS.get((api_version.rpartition("/")[2], kind), 0)
    minor = int(kubernetes.partition(".")[2])
    return f"{api_version}/{kind}" in schema.roots() and first <= minor


def find_removal(version: str, kind: str) -> int:
    """Return the minor (38 of 1.38) that serves a version of a kind no more; 0 for none known."""
    return RETIRED_VERSIONS.get((version, kind), (0, 0))[1]


def list_served_kinds(gates: Mapping[str, bool], kubernetes: str) -> dict[str, Kind]:
    """Return the kinds that an API server has, by name, with the versions that it serves.

    Args:
        gates: its feature gates.
        kubernetes: its minor, for example 1.37. What a minor has removed cannot be switched on;
            all else is taken for switched on.
    """
    minor = int(kubernetes.partition(".")[2])
    kinds = {}
    for kind in (kind for kind in _ALL if kind.is_served(gates)):
        versions = tuple(
            version
            for version in kind.versions
            if not 0 < find_removal(version, kind.name) <= minor
            and _FIRST_MINORS.get((version, kind.name), 0) <= minor
        )
        if versions:
            known = versions == kind.versions
            kinds[kind.name] = kind if known else replace(kind, versions=versions)
    return kinds


def served_apis(kinds: Mapping[str, Kind]) -> frozenset[str]:
    """Return the group/versions that are served with these kinds."""
    return frozenset(version for kind in kinds.values() for version in kind.api_versions)


def resolve_kind(api_version: str, name: str, kinds: Mapping[str, Kind]) -> Kind:
    """Return the kind that an object or reference names.

    Args:
        api_version: its ``apiVersion``.
        name: its ``kind``.
        kinds: those that are served.

    Raises ApiError: 404 NotFound, the answer to a path that the API server does not serve.
    """
    kind = kinds.get(name)
    if kind is None or api_version not in kind.api_versions:
        raise ApiError(404, "NotFound", "the server could not find the requested resource")
    return kind


def kind_of(obj: Mapping[str, Any], kinds: Mapping[str, Kind]) -> Kind:
    """Return which of the served kinds an object with ``apiVersion`` and ``kind`` is.

    Raises ApiError: 400 BadRequest without them, 404 NotFound when it is not served.
    """
    api_version, name = obj.get("apiVersion"), obj.get("kind")
    if not isinstance(name, str) or not name:
        raise ApiError(400, "BadRequest", "Object 'Kind' is missing in the request")
    if not isinstance(api_version, str) or not api_version:
        raise ApiError(400, "BadRequest", "Object 'apiVersion' is missing in the request")
    return resolve_kind(api_version, name, kinds)
