"""The kinds that the reference serves, and in which versions (an API server's discovery)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from conformance.targets.base import ApiError

DRA_GROUP: Final = "resource.k8s.io"
DRA_VERSIONS: Final = ("v1", "v1beta2", "v1beta1")
_DRA_GATE: Final = "DynamicResourceAllocation"


@dataclass(frozen=True, slots=True)
class Kind:
    """One kind of object.

    Attributes:
        name: ``kind``, for example ``ResourceClaim``.
        plural: the resource's name in paths and messages.
        group: API group, empty for core.
        versions: served versions; the first is the one objects are stored in.
        namespaced: False for cluster-scoped kinds.
        generation: ``metadata.generation`` is counted for it.
        gates: feature gates without which it is not served.
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
        """``apiVersion`` of the stored form."""
        return self.at(self.versions[0])

    @property
    def api_versions(self) -> tuple[str, ...]:
        """Every served ``apiVersion``."""
        return tuple(self.at(version) for version in self.versions)

    @property
    def resource(self) -> str:
        """Resource with group, as in ``resourceclaims.resource.k8s.io "x" not found``."""
        return f"{self.plural}.{self.group}" if self.group else self.plural

    @property
    def group_kind(self) -> str:
        """Kind with group, as in ``ResourceClaim.resource.k8s.io "x" is invalid``."""
        return f"{self.name}.{self.group}" if self.group else self.name

    def is_served(self, gates: Mapping[str, bool]) -> bool:
        """Whether an API server with these feature gates has it."""
        return all(gates.get(gate, False) for gate in self.gates)

    def at(self, version: str) -> str:
        """``apiVersion`` of one of the versions."""
        return f"{self.group}/{version}" if self.group else version


def _dra(name: str, plural: str, *, namespaced: bool, generation: bool = False) -> Kind:
    return Kind(name, plural, DRA_GROUP, DRA_VERSIONS, namespaced, generation, (_DRA_GATE,))


_ALL: Final = (
    Kind("Namespace", "namespaces", "", ("v1",), namespaced=False),
    Kind("Node", "nodes", "", ("v1",), namespaced=False),
    Kind("Pod", "pods", "", ("v1",), namespaced=True, generation=True),
    Kind("ResourceQuota", "resourcequotas", "", ("v1",), namespaced=True),
    Kind("Event", "events", "", ("v1",), namespaced=True),
    Kind(
        "PriorityClass",
        "priorityclasses",
        "scheduling.k8s.io",
        ("v1",),
        namespaced=False,
        generation=True,
    ),
    Kind("DaemonSet", "daemonsets", "apps", ("v1",), namespaced=True, generation=True),
    Kind("Deployment", "deployments", "apps", ("v1",), namespaced=True, generation=True),
    Kind("ReplicaSet", "replicasets", "apps", ("v1",), namespaced=True, generation=True),
    Kind("StatefulSet", "statefulsets", "apps", ("v1",), namespaced=True, generation=True),
    Kind("Job", "jobs", "batch", ("v1",), namespaced=True, generation=True),
    _dra("DeviceClass", "deviceclasses", namespaced=False, generation=True),
    _dra("ResourceSlice", "resourceslices", namespaced=False, generation=True),
    _dra("ResourceClaim", "resourceclaims", namespaced=True),
    _dra("ResourceClaimTemplate", "resourceclaimtemplates", namespaced=True),
    Kind(
        "DeviceTaintRule",
        "devicetaintrules",
        DRA_GROUP,
        ("v1", "v1beta2"),
        namespaced=False,
        generation=True,
        gates=(_DRA_GATE, "DRADeviceTaintRules"),
    ),
)

KINDS: Final[Mapping[str, Kind]] = {kind.name: kind for kind in _ALL}


def served_apis(gates: Mapping[str, bool]) -> frozenset[str]:
    """The group/versions that are served with these feature gates."""
    return frozenset(
        version for kind in _ALL if kind.is_served(gates) for version in kind.api_versions
    )


def resolve(api_version: str, name: str, gates: Mapping[str, bool]) -> Kind:
    """The kind that an object or reference names.

    Args:
        api_version: its ``apiVersion``.
        name: its ``kind``.
        gates: feature gates as they are set.

    Raises:
        ApiError: 404 NotFound, the answer to a path that the API server does not serve.
    """
    kind = KINDS.get(name)
    if kind is None or api_version not in kind.api_versions or not kind.is_served(gates):
        raise ApiError(404, "NotFound", "the server could not find the requested resource")
    return kind


def kind_of(obj: Mapping[str, Any], gates: Mapping[str, bool]) -> Kind:
    """The kind of an object with ``apiVersion`` and ``kind``.

    Raises:
        ApiError: 400 BadRequest without them, 404 NotFound when it is not served.
    """
    api_version, name = obj.get("apiVersion"), obj.get("kind")
    if not isinstance(name, str) or not name:
        raise ApiError(400, "BadRequest", "Object 'Kind' is missing in the request")
    if not isinstance(api_version, str) or not api_version:
        raise ApiError(400, "BadRequest", "Object 'apiVersion' is missing in the request")
    return resolve(api_version, name, gates)
