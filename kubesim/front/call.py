"""A request over HTTP: what its method, path and query ask for."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from typing import Final

from kube.errors import ApiError
from kube.values import Obj, Ref, User
from kubesim.apiserver.authorization import Attributes, PathAttributes, RequestAttributes
from kubesim.apiserver.watches import Matches, field_selector, label_selector, split_field_selector
from kubesim.front.options import ListOptions, Parameters, parse_flag, read_list_options
from kubesim.goforms import Fields
from kubesim.resources import KINDS, RETIRED_VERSIONS, Kind, list_lacking_fields
from kubesim.store import name_of, namespace_of

_PATH: Final = re.compile(
    r"/(?:api/(?P<core>v1)|apis/(?P<gv>[^/]+/[^/]+))(?:/namespaces/(?P<ns>[^/]+)(?=/[^/]+))?"
    r"/(?P<plural>[a-z]+)(?:/(?P<name>[^/]+))?(?:/(?P<sub>[^/]+))?"
)
_NAMESPACE_STATUS: Final = re.compile(r"/api/v1/namespaces/([^/]+)/(status)")
_VERBS: Final = {"POST": "create", "PUT": "update", "PATCH": "patch", "DELETE": "delete"}

WITHOUT_STATUS: Final = frozenset(
    {"DeviceClass", "Event", "PriorityClass", "ResourceClaimTemplate", "ResourceSlice"}
)
"""Kinds that have no subresource ``status``."""


NEWEST_PLACE: Final = "pkg/runtime/scheme.go:111"
_LINES_UNTIL: Final = 34


@dataclass(frozen=True)
class Call:
    """A request for one kind.

    Attributes:
        namespace: empty without one in the path.
        name: empty for a list or a creation.
        sub: subresource, such as ``status``; empty for the object itself.
        query: parameter -> its values.
        kubernetes: the server's minor, for example 1.37.
        user: in whose name; None may do everything.
    """

    method: str
    kind: Kind
    api_version: str
    namespace: str
    name: str
    sub: str
    query: Parameters
    kubernetes: str
    user: User | None = None

    @property
    def minor(self) -> int:
        """Return 37 for a server of 1.37."""
        return int(self.kubernetes.partition(".")[2])

    @property
    def scheme(self) -> str:
        """The place in Kubernetes' source that errors of unknown kinds name."""
        return "pkg/runtime/scheme.go:110" if self.minor <= _LINES_UNTIL else NEWEST_PLACE

    @property
    def lacking(self) -> Fields:
        """Fields that the server does not know."""
        return list_lacking_fields(self.kubernetes)

    @property
    def ref(self) -> Ref:
        return Ref(self.api_version, self.kind.name, self.name, self.namespace or None)

    @property
    def is_watch(self) -> bool:
        return not self.name and _is_watch(self.method, self.query)

    def explain_deprecation(self) -> str:
        """Return the server's warning that the version will be gone, "" for none."""
        version = self.api_version.rpartition("/")[2]
        deprecated, removed = RETIRED_VERSIONS.get((version, self.kind.name), (self.minor + 1, 0))
        if self.minor < deprecated:
            return ""
        return (
            f"{self.api_version} {self.kind.name} is deprecated in v1.{deprecated}+, unavailable in"
            f" v1.{removed}+"
        )

    @property
    def attributes(self) -> Attributes:
        """What an authorizer judges."""
        verb = _verb_of(self.method, self.name, watches=self.is_watch)
        fields = self._list_selected_fields() if self.user and self.user.is_kubelet else {}
        return Attributes(verb, self.kind, self.sub, self.namespace, self.name, fields)

    def _list_selected_fields(self) -> dict[str, str]:
        """Return what an authorizer sees of a field selector: nothing where it is malformed."""
        with suppress(ApiError):
            terms = split_field_selector(self.list_options.field_selector)
            return {field: value for field, operator, value in terms if operator != "!="}
        return {}

    @cached_property
    def list_options(self) -> ListOptions:
        """Options of a request for many objects. Raises ApiError: 400 or 422."""
        return read_list_options(self.query)

    def build_selection(self) -> Selection:
        """Return which objects of the kind are meant. Raises ApiError: 400, a bad selector."""
        return Selection(self)


def _verb_of(method: str, name: str, *, watches: bool) -> str:
    verb = _VERBS.get(method) or ("get" if name else "list")
    if watches:
        return "watch"
    return "deletecollection" if verb == "delete" and not name else verb


def wanted_of(method: str, path: str, query: Parameters) -> RequestAttributes:
    """Return what an authorizer judges of any request (``RequestInfo`` of k8s.io/apiserver)."""
    match = _PATH.fullmatch(path)
    if match is None:
        return PathAttributes(method.lower(), path)
    group, _, version = (match["core"] or match["gv"]).rpartition("/")
    plural, namespace, name, sub = (
        match[group_name] or "" for group_name in ("plural", "ns", "name", "sub")
    )
    kind = Kind(plural, plural, group, (version,), namespaced=bool(namespace))
    verb = _verb_of(method, name, watches=not name and _is_watch(method, query))
    return Attributes(verb, kind, sub, namespace, name)


def _is_watch(method: str, query: Parameters) -> bool:
    return method == "GET" and "watch" in query and parse_flag(query["watch"])


class Selection:
    """The objects in a call's namespace that its selectors select."""

    def __init__(self, call: Call) -> None:
        options, namespace = call.list_options, call.namespace if call.kind.namespaced else ""
        labels = label_selector(options.label_selector)
        fields = field_selector(call.kind, call.api_version, options.field_selector)
        # Most ask for all of a namespace or of a kind: what selects nothing is not asked.
        tests: list[Matches] = []
        if namespace:
            tests.append(lambda obj: namespace_of(obj) == namespace)
        if call.name:
            tests.append(lambda obj: name_of(obj) == call.name)
        if options.label_selector:
            tests.append(labels)
        if options.field_selector:
            tests.append(fields)
        self._tests = tests

    def __call__(self, obj: Obj) -> bool:
        """Return whether an object is one of them."""
        for matches in self._tests:  # noqa: SIM110 -- all() would make a generator for each
            if not matches(obj):
                return False
        return True


def read_call(
    method: str,
    path: str,
    query: Parameters,
    kinds: Mapping[str, Kind],
    kubernetes: str,
    user: User | None = None,
) -> Call:
    """Return the call that a request is to a server of a minor with these kinds.

    Raises ApiError: 404, there is no such resource; 405, it has another method.
    """
    call = _find_call(method, path, query, kinds, kubernetes, user)
    if call is None:
        text = "the server could not find the requested resource"
        raise ApiError(404, "NotFound", text, details={})
    if method not in _allowed_methods(call):
        text = "the server does not allow this method on the requested resource"
        raise ApiError(405, "MethodNotAllowed", text, details={})
    return call


def _find_call(
    method: str,
    path: str,
    query: Parameters,
    kinds: Mapping[str, Kind],
    kubernetes: str,
    user: User | None,
) -> Call | None:
    if named := _NAMESPACE_STATUS.fullmatch(path):
        kind = KINDS["Namespace"]
        return Call(method, kind, "v1", "", named[1], named[2], query, kubernetes, user)
    match = _PATH.fullmatch(path)
    if match is None:
        return None
    version = match["core"] or match["gv"]
    for kind in kinds.values():
        if kind.plural != match["plural"] or version not in kind.api_versions:
            continue
        namespace, name, sub = (match[group_name] or "" for group_name in ("ns", "name", "sub"))
        is_placed = kind.namespaced == bool(namespace) or (kind.namespaced and not name)
        if is_placed and sub in list_subresources(kind):
            return Call(method, kind, version, namespace, name, sub, query, kubernetes, user)
    return None


def list_subresources(kind: Kind) -> Sequence[str]:
    """Return the subresources of a kind that are served; the object itself is the empty one."""
    subresources = [""] if kind.name in WITHOUT_STATUS else ["", "status"]
    return [*subresources, "binding", "eviction"] if kind.name == "Pod" else subresources


def _allowed_methods(call: Call) -> Sequence[str]:
    if call.sub:
        return ("POST",) if call.sub != "status" else ("GET", "PUT", "PATCH")
    if call.name:
        return ("GET", "PUT", "PATCH", "DELETE")
    is_writable = call.namespace or not call.kind.namespaced
    # Namespaces are not deleted all at once (pkg/registry/core/namespace).
    deletes = ("DELETE",) if call.kind.name != "Namespace" else ()
    return ("GET", "POST", *deletes) if is_writable else ("GET",)
