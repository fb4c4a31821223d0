"""One API server as most of the suite needs it: its connection, its kinds, and reads of them."""

from __future__ import annotations

from collections.abc import Mapping

from conformance.kubeapi.connection import Connection
from conformance.kubeapi.discovery import Discovery, Resource
from conformance.kubeapi.errors import ApiError, Obj

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
        """All objects of a kind as the server has them now, ``apiVersion`` and ``kind`` set.

        With ``fields``, a field selector, those that it selects.

        Raises:
            ApiError: the server refuses.
            TargetError: no answer, or one that is not a list.
        """
        items: list[Obj] = request_list(
            self.connection, resource.path(namespace), agent, selected=selection(fields=fields)
        )["items"]
        for item in items:
            item.setdefault("apiVersion", resource.api_version)
            item.setdefault("kind", resource.kind)
        return items

    def read(
        self, resource: Resource, namespace: str | None, name: str, agent: str = ""
    ) -> Obj | None:
        """One object as the server has it now, None if there is none."""
        try:
            found: Obj = self.connection.request("GET", resource.path(namespace, name), agent=agent)
        except ApiError as error:
            if error.code == 404:
                return None
            raise
        return found


def selection(
    labels: Mapping[str, str] | None = None, fields: Mapping[str, str] | None = None
) -> dict[str, str]:
    """The query by which the server lists or watches what has these labels and fields."""
    selectors = {"labelSelector": labels, "fieldSelector": fields}
    return {
        name: ",".join(f"{key}={value}" for key, value in wanted.items())
        for name, wanted in selectors.items()
        if wanted
    }


def request_list(
    connection: Connection,
    path: str,
    agent: str = "",
    accept: str = _JSON,
    selected: Mapping[str, str] | None = None,
) -> Obj:
    """A list as the server answers it: ``metadata`` and ``items``, each of them an object.

    With ``selected``, a `selection`, of nothing else.

    Raises:
        ApiError: the server refuses.
        TargetError: no answer, or one that is not a list.
    """
    query = selected or None
    found: Obj = connection.request("GET", path, query, agent=agent, accept=accept)
    items = found["items"] = found.get("items") or []
    if (
        not isinstance(items, list)
        or not isinstance(found.get("metadata"), dict)
        or not all(isinstance(one, dict) and isinstance(one.get("metadata"), dict) for one in items)
    ):
        raise connection.unexpected("GET", path, "without a list of objects")
    return found
