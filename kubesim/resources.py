"""The kinds that the reference serves, and in which versions (an API server's discovery)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
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
)

KINDS: Final[Mapping[str, Kind]] = {kind.name: kind for kind in _ALL}


def served_apis(gates: Mapping[str, bool]) -> frozenset[str]:
    """Return the group/versions that are served with these feature gates."""
    return frozenset(
        version for kind in _ALL if kind.is_served(gates) for version in kind.api_versions
    )


def served_groups(gates: Mapping[str, bool]) -> frozenset[str]:
    """Return the API groups that are served with these feature gates, but for core."""
    return frozenset(kind.group for kind in _ALL if kind.group and kind.is_served(gates))


def resolve_kind(api_version: str, name: str, gates: Mapping[str, bool]) -> Kind:
    """Return the kind that an object or reference names.

    Args:
        api_version: its ``apiVersion``.
        name: its ``kind``.

    Raises ApiError: 404 NotFound, the answer to a path that the API server does not serve.
    """
    kind = KINDS.get(name)
    if kind is None or api_version not in kind.api_versions or not kind.is_served(gates):
        raise ApiError(404, "NotFound", "the server could not find the requested resource")
    return kind


def kind_of(obj: Mapping[str, Any], gates: Mapping[str, bool]) -> Kind:
    """Return the kind of an object with ``apiVersion`` and ``kind``.

    Raises ApiError: 400 BadRequest without them, 404 NotFound when it is not served.
    """
    api_version, name = obj.get("apiVersion"), obj.get("kind")
    if not isinstance(name, str) or not name:
        raise ApiError(400, "BadRequest", "Object 'Kind' is missing in the request")
    if not isinstance(api_version, str) or not api_version:
        raise ApiError(400, "BadRequest", "Object 'apiVersion' is missing in the request")
    return resolve_kind(api_version, name, gates)
