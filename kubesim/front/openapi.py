"""The OpenAPI documents of the served kinds: what ``kubectl explain`` and ``kubectl apply`` read.

There is one for each group and version (``/openapi/v3``), with the fields and types of its kinds,
without descriptions; of the operations they have what tells a client that the server validates
fields by itself (``QueryParamVerifierV3`` of k8s.io/cli-runtime).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from kube.values import Obj
from kubesim.apiserver import fieldsets
from kubesim.resources import Kind
from reference_allocator.api import schema
from reference_allocator.api.schema import LIST, MAP

_META: Final = "io.k8s.apimachinery.pkg.apis.meta.v1"
_SCALARS: Final[Mapping[str, Obj]] = {
    "any": {"type": "object"},
    "bool": {"type": "boolean"},
    "int32": {"type": "integer", "format": "int32"},
    "int64": {"type": "integer", "format": "int64"},
    "intorstring": {
        "oneOf": [{"type": "integer"}, {"type": "string"}],
        "format": "int-or-string",
    },
    "quantity": {"oneOf": [{"type": "string"}, {"type": "number"}]},
    "string": {"type": "string"},
    "time": {"type": "string", "format": "date-time"},
}
_NAMES: Final[Mapping[str, str]] = {
    "intorstring": "io.k8s.apimachinery.pkg.util.intstr.IntOrString",
    "quantity": "io.k8s.apimachinery.pkg.api.resource.Quantity",
    "time": f"{_META}.Time",
}
"""Scalars that have a schema of their own -> its name."""


def path_of(api_version: str) -> str:
    """Return where the document of a group and version is, below ``/openapi/v3``."""
    return f"apis/{api_version}" if "/" in api_version else f"api/{api_version}"


def build_index(api_versions: Sequence[str]) -> Obj:
    """Return which documents there are."""
    paths = (path_of(version) for version in api_versions)
    return {"paths": {path: {"serverRelativeURL": f"/openapi/v3/{path}"} for path in paths}}


def build_document(api_version: str, kinds: Sequence[Kind]) -> Obj:
    """Return the document of a group and version, of which these kinds are served."""
    parameter = {"name": "fieldValidation", "in": "query", "schema": {"type": "string"}}
    version = api_version.rpartition("/")[2]
    paths, schemas = {}, {}
    for kind in kinds:
        if api_version not in kind.api_versions:
            continue
        gvk = {"group": kind.group, "version": version, "kind": kind.name}
        operation = {"parameters": [parameter], "x-kubernetes-group-version-kind": gvk}
        namespace_path = "/namespaces/{namespace}" if kind.namespaced else ""
        path = f"/{path_of(api_version)}{namespace_path}/{kind.plural}/{{name}}"
        paths[path] = {"patch": {**operation, "responses": {}}}
        root = schema.roots()[f"{api_version}/{kind.name}"]
        for shape in _list_shapes(root, set()):
            schemas[_name_schema(shape)] = _build_schema(shape)
        schemas[_name_schema(root)]["x-kubernetes-group-version-kind"] = [gvk]
    info = {"title": "Kubernetes", "version": "unversioned"}
    return {"openapi": "3.0.0", "info": info, "paths": paths, "components": {"schemas": schemas}}


def _list_shapes(shape: str, seen: set[str]) -> Iterator[str]:
    """Yield the shapes with schemas of their own that a shape needs, each once."""
    while shape.startswith((LIST, MAP)):
        shape = shape.removeprefix(LIST) if shape.startswith(LIST) else shape.removeprefix(MAP)
    if shape in seen or (shape not in schema.types() and shape not in _NAMES):
        return
    seen.add(shape)
    yield shape
    for inner in schema.types().get(shape, {}).values():
        yield from _list_shapes(inner, seen)


def _name_schema(shape: str) -> str:
    """Return ``io.k8s.api.core.v1.Pod`` for ``core/v1.Pod``."""
    if shape in _NAMES:
        return _NAMES[shape]
    package, _, name = shape.rpartition(".")
    is_meta = package == "meta/v1"
    return f"{_META}.{name}" if is_meta else f"io.k8s.api.{package.replace('/', '.')}.{name}"


def _build_schema(shape: str) -> Obj:
    fields = schema.types().get(shape)
    if fields is None:
        return {**_SCALARS[shape]}
    properties = {}
    for name, inner in sorted(fields.items()):
        properties[name] = _refer(inner)
        mark = fieldsets.find_mark(shape, name)
        if inner.startswith(LIST):
            properties[name]["x-kubernetes-list-type"] = mark.partition(":")[0] or "atomic"
        if mark.startswith("map:"):
            keys = [key.partition("=")[0] for key in mark.removeprefix("map:").split(",")]
            properties[name]["x-kubernetes-list-map-keys"] = keys
    return {"type": "object", "properties": properties}


def _refer(shape: str) -> dict[str, Any]:
    if shape.startswith(LIST):
        return {"type": "array", "items": _refer(shape.removeprefix(LIST))}
    if shape.startswith(MAP):
        return {"type": "object", "additionalProperties": _refer(shape.removeprefix(MAP))}
    if shape in schema.types() or shape in _NAMES:
        return {"allOf": [{"$ref": f"#/components/schemas/{_name_schema(shape)}"}]}
    return {**_SCALARS[shape]}
