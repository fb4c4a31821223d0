"""A request over HTTP: what its method, path and query ask for."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from kube.errors import ApiError
from kube.values import Obj, Ref, User
from kubesim.apiserver.authorization import Attributes, PathAttributes, RequestAttributes
from kubesim.apiserver.watches import field_selector, label_selector
from kubesim.resources import KINDS, Kind
from kubesim.store import namespace_of

_PATH: Final = re.compile(
    r"/(?:api/(?P<core>v1)|apis/(?P<gv>[^/]+/[^/]+))(?:/namespaces/(?P<ns>[^/]+)(?=/[^/]+))?"
    r"/(?P<plural>[a-z]+)(?:/(?P<name>[^/]+))?(?:/(?P<sub>[^/]+))?"
)
_NAMESPACE_STATUS: Final = re.compile(r"/api/v1/namespaces/([^/]+)/(status)")
_VERBS: Final = {"POST": "create", "PUT": "update", "PATCH": "patch", "DELETE": "delete"}


@dataclass(frozen=True)
class Call:
    """A request for one kind.

    Attributes:
        namespace: empty without one in the path.
        name: empty for a list or a creation.
        sub: subresource, such as ``status``; empty for the object itself.
        query: parameter -> its first value.
        user: in whose name; None may do everything.
    """

    method: str
    kind: Kind
    api_version: str
    namespace: str
    name: str
    sub: str
    query: Mapping[str, str]
    user: User | None = None

    @property
    def ref(self) -> Ref:
        return Ref(self.api_version, self.kind.name, self.name, self.namespace or None)

    @property
    def is_watch(self) -> bool:
        return self.method == "GET" and self.has_flag("watch")

    @property
    def attributes(self) -> Attributes:
        """What an authorizer judges."""
        verb = _verb_of(self.method, self.name, watches=self.is_watch)
        return Attributes(verb, self.kind, self.sub, self.namespace, self.name)

    def has_flag(self, name: str) -> bool:
        """Return whether a parameter that is a bool is true."""
        return is_true(self.query.get(name))

    def read_number(self, name: str, default: int = 0) -> int:
        """Return a parameter that is a whole number. Raises ApiError: 400, it is none."""
        text = self.query.get(name) or str(default)
        if not re.fullmatch(r"\d{1,18}", text):
            raise ApiError(400, "BadRequest", f'Invalid value: "{text}": {name} must be a number')
        return int(text)

    def build_selection(self) -> Selection:
        """Return which objects of the kind are meant. Raises ApiError: 400, a bad selector."""
        return Selection(self)


def is_true(text: str | None) -> bool:
    """Return whether a parameter that is a bool is true, as ``?watch`` and ``watch=True`` are.

    ``Convert_Slice_string_To_bool`` in k8s.io/apimachinery/pkg/runtime/conversion.go. ``text``: its
    value; None: it is not there.
    """
    return text is not None and text.lower() not in ("0", "false")


def _verb_of(method: str, name: str, *, watches: bool) -> str:
    verb = _VERBS.get(method) or ("get" if name else "list")
    if watches:
        return "watch"
    return "deletecollection" if verb == "delete" and not name else verb


def wanted_of(method: str, path: str, query: Mapping[str, str]) -> RequestAttributes:
    """Return what an authorizer judges of any request (``RequestInfo`` of k8s.io/apiserver)."""
    match = _PATH.fullmatch(path)
    if match is None:
        return PathAttributes(method.lower(), path)
    group, _, version = (match["core"] or match["gv"]).rpartition("/")
    plural, namespace, name, sub = (
        match[group_name] or "" for group_name in ("plural", "ns", "name", "sub")
    )
    kind = Kind(plural, plural, group, (version,), namespaced=bool(namespace))
    watches = method == "GET" and is_true(query.get("watch"))
    return Attributes(_verb_of(method, name, watches=watches), kind, sub, namespace, name)


class Selection:
    """The objects in a call's namespace that its selectors select."""

    def __init__(self, call: Call) -> None:
        query = call.query
        self._namespace = call.namespace if call.kind.namespaced else ""
        self._labels = label_selector(query.get("labelSelector", ""))
        self._fields = field_selector(call.kind, query.get("fieldSelector", ""))
        self._name = call.name

    def __call__(self, obj: Obj) -> bool:
        """Return whether an object is one of them."""
        return (
            self._namespace in ("", namespace_of(obj))
            and self._name in ("", obj["metadata"]["name"])
            and self._labels(obj)
            and self._fields(obj)
        )


def read_call(
    method: str,
    path: str,
    query: Mapping[str, str],
    gates: Mapping[str, bool],
    user: User | None = None,
) -> Call:
    """Return the call that a request is. Raises ApiError: 404, there is no such resource."""
    if namespace_status := _NAMESPACE_STATUS.fullmatch(path):
        return Call(
            method,
            KINDS["Namespace"],
            "v1",
            "",
            namespace_status[1],
            namespace_status[2],
            query,
            user,
        )
    match = _PATH.fullmatch(path)
    if match is not None:
        version = match["core"] or match["gv"]
        for kind in KINDS.values():
            served = kind.is_served(gates) and version in kind.api_versions
            if served and kind.plural == match["plural"]:
                namespace, name, sub = (
                    match[group_name] or "" for group_name in ("ns", "name", "sub")
                )
                return Call(method, kind, version, namespace, name, sub, query, user)
    raise ApiError(404, "NotFound", "the server could not find the requested resource")
