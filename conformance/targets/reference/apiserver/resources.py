"""The kinds that the reference serves, and in which versions (an API server's discovery)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from conformance.targets.base import ApiError

DRA_GROUP: Final = "resource.k8s.io"
DRA_VERSIONS: Final = ("v1", "v1beta2", "v1beta1")


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
        gate: feature gate without which it is not served; empty for none.
    """

    name: str
    plural: str
    group: str
    versions: tuple[str, ...]
    namespaced: bool
    generation: bool = False
    gate: str = ""

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

    def at(self, version: str) -> str:
        """``apiVersion`` of one of the versions."""
        return f"{self.group}/{version}" if self.group else version


_ALL: Final = (
    Kind("Namespace", "namespaces", "", ("v1",), namespaced=False),
    Kind("Node", "nodes", "", ("v1",), namespaced=False),
    Kind("Pod", "pods", "", ("v1",), namespaced=True, generation=True),
    Kind("Event", "events", "", ("v1",), namespaced=True),
    Kind("Job", "jobs", "batch", ("v1",), namespaced=True, generation=True),
    Kind(
        "DeviceClass", "deviceclasses", DRA_GROUP, DRA_VERSIONS, namespaced=False, generation=True
    ),
    Kind(
        "ResourceSlice",
        "resourceslices",
        DRA_GROUP,
        DRA_VERSIONS,
        namespaced=False,
        generation=True,
    ),
    Kind("ResourceClaim", "resourceclaims", DRA_GROUP, DRA_VERSIONS, namespaced=True),
    Kind(
        "ResourceClaimTemplate", "resourceclaimtemplates", DRA_GROUP, DRA_VERSIONS, namespaced=True
    ),
    Kind(
        "DeviceTaintRule",
        "devicetaintrules",
        DRA_GROUP,
        ("v1", "v1beta2"),
        namespaced=False,
        generation=True,
        gate="DRADeviceTaintRules",
    ),
)

KINDS: Final[Mapping[str, Kind]] = {kind.name: kind for kind in _ALL}

SERVED_APIS: Final = frozenset(version for kind in _ALL for version in kind.api_versions)


def not_served() -> ApiError:
    """The answer to a path that the API server does not have."""
    return ApiError(404, "NotFound", "the server could not find the requested resource")


def resolve(api_version: str, name: str) -> Kind:
    """The kind that an object or reference names.

    Raises:
        ApiError: 404 NotFound, the answer to a path that the API server does not serve.
    """
    kind = KINDS.get(name)
    if kind is None or api_version not in kind.api_versions:
        raise not_served()
    return kind


def kind_of(obj: Mapping[str, Any]) -> Kind:
    """The kind of an object with ``apiVersion`` and ``kind``.

    Raises:
        ApiError: 400 BadRequest without them, 404 NotFound when it is not served.
    """
    api_version, name = obj.get("apiVersion"), obj.get("kind")
    if not isinstance(name, str) or not name:
        raise ApiError(400, "BadRequest", "Object 'Kind' is missing in the request")
    if not isinstance(api_version, str) or not api_version:
        raise ApiError(400, "BadRequest", "Object 'apiVersion' is missing in the request")
    return resolve(api_version, name)
