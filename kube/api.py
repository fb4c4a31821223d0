"""One API server as most of the suite needs it: its connection, its kinds, and reads of them.

Scenarios use any group, version and kind that is served (and some that are not, on purpose), so
paths come from the server's discovery documents and not from a table of ours.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TypeVar
from urllib.parse import quote

from kube.connection import Connection
from kube.errors import ApiError, not_served
from kube.values import Obj

T = TypeVar("T")

DRA_GROUP = "resource.k8s.io"
DRA_VERSIONS = ("v1", "v1beta2", "v1beta1")  # Best first.

_AGGREGATED = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
"""All groups in one answer (KEP-3352; k8s.io/api/apidiscovery/v2, GA in 1.30)."""


@dataclass(frozen=True, slots=True)
class Resource:
    """A served kind, for example ``("resource.k8s.io/v1", "ResourceClaim", "resourceclaims")``."""

    api_version: str
    kind: str
    plural: str
    namespaced: bool

    @property
    def group(self) -> str:
        """The API group, empty for the core group."""
        return self.api_version.rpartition("/")[0]

    def path(self, namespace: str | None = None, name: str = "", subresource: str = "") -> str:
        """Return the URL path of one object, or of all (of a namespace if one is given)."""
        path = base_path(self.api_version)
        if self.namespaced and namespace:
            path += f"/namespaces/{quote(namespace, safe='')}"
        path += f"/{self.plural}"
        if name:
            path += f"/{quote(name, safe='')}"
        return f"{path}/{subresource}" if subresource else path


class Discovery:
    """The served kinds of one API server. Safe for threads."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._lock = threading.Lock()
        self._known: dict[tuple[str, str], Resource] = {}

    def find(self, api_version: str, kind: str) -> Resource:
        """Return the resource of a kind.

        What is not served is asked for again each time: it may be served later.
        Raises ApiError: 404, the group, version or kind is not served; TargetError: no answer.
        """
        with self._lock:
            resource = self._known.get((api_version, kind))
            if resource is None:
                self._load(api_version)
                resource = self._known.get((api_version, kind))
        if resource is None:
            raise not_served(api_version, kind)
        return resource

    def find_or_guess(self, api_version: str, kind: str, *, namespaced: bool) -> Resource:
        """Return the resource of a kind; where it is not served, the path on which it would be.

        So that it is the server that refuses a retired kind, in its own words.
        """
        try:
            return self.find(api_version, kind)
        except ApiError as error:
            if error.code != 404:
                raise
        plural = kind.lower() + ("es" if kind.endswith("s") else "s")
        return Resource(api_version, kind, plural, namespaced)

    def list_served(self) -> frozenset[str]:
        """Return all served group/versions, for example ``v1`` and ``resource.k8s.io/v1beta1``."""
        groups = self._connection.request("GET", "/apis")
        core = self._connection.request("GET", "/api")
        try:
            return frozenset(core["versions"]) | {
                version["groupVersion"]
                for group in groups["groups"]
                for version in group["versions"]
            }
        except (KeyError, TypeError):
            raise self._connection.make_unexpected_error(
                "GET", "/apis", "without a list of API groups"
            ) from None

    def list_removable(self) -> tuple[Resource, ...]:
        """Return each kind whose objects can be listed and deleted, in its group's best version.

        Kinds of an extension server that does not answer (``Stale``) are left out.

        Raises:
            ApiError: the server refuses.
            TargetError: no answer, or another one than discovery gives.
        """
        resources: dict[tuple[str, str], Resource] = {}
        for path in ("/api", "/apis"):
            answer = self._connection.request("GET", path, accept=_AGGREGATED)
            try:
                for group in answer["items"]:
                    name = group["metadata"].get("name", "")
                    for version in group["versions"]:
                        if version.get("freshness") == "Stale":
                            continue
                        api_version = f"{name}/{version['version']}".removeprefix("/")
                        for entry in version.get("resources") or ():
                            if {"list", "delete"} <= set(entry["verbs"]):
                                kind = entry["responseKind"]["kind"]
                                here = entry["scope"] == "Namespaced"
                                resource = Resource(api_version, kind, entry["resource"], here)
                                resources.setdefault((name, kind), resource)
            except (KeyError, TypeError, AttributeError):
                raise self._connection.make_unexpected_error(
                    "GET", path, "without its resources"
                ) from None
        return tuple(resources.values())

    def dra_version(self) -> str:
        """Return the best served version of ``resource.k8s.io``. Raises ApiError."""
        for version in DRA_VERSIONS:
            try:
                self.find(f"{DRA_GROUP}/{version}", "ResourceSlice")
            except ApiError as error:
                if error.code != 404:
                    raise
            else:
                return f"{DRA_GROUP}/{version}"
        raise not_served(f"{DRA_GROUP}/{DRA_VERSIONS[0]}", "ResourceSlice")

    def _load(self, api_version: str) -> None:
        try:
            resource_list = self._connection.request("GET", base_path(api_version))
        except ApiError as error:
            if error.code == 404:
                return
            raise
        try:
            for entry in resource_list.get("resources") or []:
                if "/" not in entry["name"]:  # a subresource
                    self._known[api_version, entry["kind"]] = Resource(
                        api_version, entry["kind"], entry["name"], entry["namespaced"]
                    )
        except (KeyError, TypeError):
            path = base_path(api_version)
            raise self._connection.make_unexpected_error(
                "GET", path, "without a list of resources"
            ) from None


def base_path(api_version: str) -> str:
    """``/api/v1`` for the core group, ``/apis/GROUP/VERSION`` for the others."""
    prefix = "/apis/" if "/" in api_version else "/api/"
    return prefix + quote(api_version)


_JSON = "application/json"


class Api:
    """A connection, and the kinds that its server serves."""

    def __init__(self, connection: Connection) -> None:
        self.connection = connection
        self.discovery = Discovery(connection)

    def list(
        self,
        resource: Resource,
        namespace: str | None = None,
        agent: str = "",
        fields: Mapping[str, str] | None = None,
    ) -> list[Obj]:
        """Return all objects of a kind as the server has them now, ``apiVersion`` and ``kind`` set.

        With ``fields``, a field selector, those that it selects.
        Raises ApiError: the server refuses; TargetError: no answer, or one that is not a list.
        """
        items: list[Obj] = request_list(
            self.connection,
            resource.path(namespace),
            agent,
            selected=make_selector_query(fields=fields),
        )["items"]
        for item in items:
            item.setdefault("apiVersion", resource.api_version)
            item.setdefault("kind", resource.kind)
        return items

    def read(
        self, resource: Resource, namespace: str | None, name: str, agent: str = ""
    ) -> Obj | None:
        """Return one object as the server has it now, None if there is none."""
        try:
            obj: Obj = self.connection.request("GET", resource.path(namespace, name), agent=agent)
        except ApiError as error:
            if error.code == 404:
                return None
            raise
        return obj


def make_selector_query(
    labels: Mapping[str, str] | None = None, fields: Mapping[str, str] | None = None
) -> dict[str, str]:
    """Return the query by which the server lists or watches what has these labels and fields."""
    selectors = {"labelSelector": labels, "fieldSelector": fields}
    return {
        name: ",".join(f"{key}={value}" for key, value in values.items())
        for name, values in selectors.items()
        if values
    }


def request_list(
    connection: Connection,
    path: str,
    agent: str = "",
    accept: str = _JSON,
    selected: Mapping[str, str] | None = None,
) -> Obj:
    """Return a list as the server answers it: ``metadata`` and ``items``, each of them an object.

    With ``selected``, a `selection`, of nothing else.
    Raises ApiError: the server refuses; TargetError: no answer, or one that is not a list.
    """
    query = selected or None
    object_list: Obj = connection.request("GET", path, query, agent=agent, accept=accept)
    items = object_list["items"] = object_list.get("items") or []
    if (
        not isinstance(items, list)
        or not isinstance(object_list.get("metadata"), dict)
        or not all(
            isinstance(item, dict) and isinstance(item.get("metadata"), dict) for item in items
        )
    ):
        raise connection.make_unexpected_error("GET", path, "without a list of objects")
    return object_list


def collect_objects(
    connection: Connection,
    resource: Resource,
    keep: Callable[[Obj], T | None],
    namespace: str | None = None,
    page: int = 500,
) -> tuple[list[T], Obj]:
    """Return what ``keep`` makes of all objects of a kind but for None, and the list's metadata.

    A page of the list at a time, so that no more is in memory as it came. Where a page comes too
    late (410), the list is asked for again in one piece, as client-go's pager does (tools/pager).
    Raises ApiError: the server refuses; TargetError: no answer, or one that is not a list.
    """
    collected: list[T] = []
    query = {"limit": str(page)}
    while True:
        try:
            answer = request_list(connection, resource.path(namespace), selected=query)
        except ApiError as error:
            if error.code != 410 or "continue" not in query:
                raise
            collected, query = [], {}
            continue
        for item in answer["items"]:
            item.setdefault("apiVersion", resource.api_version)
            item.setdefault("kind", resource.kind)
            value = keep(item)
            if value is not None:
                collected.append(value)
        token = answer["metadata"].get("continue")
        if not token:
            return collected, answer["metadata"]
        query = {"limit": str(page), "continue": str(token)}
