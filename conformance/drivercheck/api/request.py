"""What a request asks for: the kind, the object, and which of a list."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from conformance.targets.base import ApiError, Obj, Ref
from conformance.targets.reference.resources import KINDS, Kind

_PATH: Final = re.compile(
    r"/(?:api/v1|apis/(?P<gv>[^/]+/[^/]+))(?:/namespaces/(?P<ns>[^/]+)(?=/[^/]+))?"
    r"/(?P<plural>[a-z]+)(?:/(?P<name>[^/]+))?(?:/(?P<sub>[^/]+))?"
)


@dataclass(frozen=True)
class Request:
    """A request for one kind.

    Attributes:
        namespace: None without one in the path.
        name: empty for a list or a creation.
        sub: subresource, such as status.
    """

    kind: Kind
    api_version: str
    namespace: str | None
    name: str
    sub: str | None
    query: Mapping[str, str]

    @property
    def ref(self) -> Ref:
        """The object that it is for."""
        return Ref(self.api_version, self.kind.name, self.name, self.namespace)

    def matches(self, obj: Obj) -> bool:
        """Whether an object is in the namespace and has the fields that were asked for."""
        if self.namespace and obj["metadata"].get("namespace") != self.namespace:
            return False
        for term in filter(None, self.query.get("fieldSelector", "").split(",")):
            path, differs, wanted = re.split(r"(!?=)=?", term, maxsplit=1)
            found: Any = obj
            for key in path.split("."):
                found = found.get(key) or "" if isinstance(found, dict) else ""
            if (found == wanted) == (differs == "!="):
                return False
        for term in filter(None, self.query.get("labelSelector", "").split(",")):
            key, _, wanted = term.partition("=")
            if (obj["metadata"].get("labels") or {}).get(key) != wanted.lstrip("="):
                return False
        return True

    def not_found(self) -> ApiError:
        """The answer where there is no such object."""
        return ApiError(404, "NotFound", f'{self.kind.resource} "{self.name}" not found')


def read_request(path: str, query: Mapping[str, str]) -> Request:
    """The request that a path and its query stand for.

    Raises:
        ApiError: 404, there is no such resource.
    """
    match = _PATH.fullmatch(path)
    gv = "v1" if match is None else match["gv"] or "v1"
    for kind in KINDS.values():
        if match is not None and kind.plural == match["plural"] and gv in kind.api_versions:
            return Request(kind, gv, match["ns"], match["name"] or "", match["sub"], query)
    raise ApiError(404, "NotFound", "the server could not find the requested resource")
