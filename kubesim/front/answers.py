"""Answers of requests: objects and lists in the form that a client accepts, and refusals.

Sources: negotiation and response.go in pkg/endpoints/handlers of k8s.io/apiserver.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import yaml
from starlette.responses import JSONResponse, PlainTextResponse, Response

from kube.errors import ApiError, Cause
from kube.values import Obj
from kubesim.apiserver import conversion
from kubesim.apiserver.server import ApiServer
from kubesim.front import body as bodies
from kubesim.front.backend import Backend
from kubesim.front.call import Call
from kubesim.front.encoded import dump_json, write_type
from kubesim.goforms import encode_object, load_forms_of
from kubesim.resources import Kind

SUCCESS: Final[Mapping[str, Any]] = {
    "kind": "Status",
    "apiVersion": "v1",
    "metadata": {},
    "status": "Success",
}
_META: Final = "meta.k8s.io/v1"
_WARNINGS_MAX: Final = 4 * 1024
_LONG_WARNING: Final = 256
_TYPES: Final = ("application/json", "application/yaml", "application/vnd.kubernetes.protobuf")
_WATCH_TYPES: Final = (
    "application/json;stream=watch",
    "application/vnd.kubernetes.protobuf;stream=watch",
)
_JSON_RANGES: Final = ("application/json", "application/*", "*/*")
_TARGETS: Final = ("Table", "PartialObjectMetadata", "PartialObjectMetadataList")


class NoRouteError(ApiError):
    """Refusal of a media type before the request has come to its handler: without warnings."""


class Warnings:
    """The ``Warning`` headers of an answer (pkg/endpoints/filters/warning.go of k8s.io/apiserver).

    Where all of them together are long, each is cut, and what comes behind the limit is left out.
    """

    def __init__(self) -> None:
        self._texts: list[str] = []

    def add(self, text: str) -> None:
        """Add one, unless it was said already."""
        if text not in self._texts:
            self._texts.append(text)

    def clear(self) -> None:
        """Forget them."""
        self._texts.clear()

    def list_headers(self) -> Iterator[str]:
        """Yield the values of the headers."""
        written, longest = 0, None
        if sum(map(len, self._texts)) > _WARNINGS_MAX:
            longest = _LONG_WARNING
        for text in self._texts:
            if longest is not None and written >= _WARNINGS_MAX:
                return
            shown = text[:longest]
            written += len(shown)
            quoted = shown.replace("\\", "\\\\").replace('"', '\\"')
            yield f'299 - "{quoted}"'.encode().decode("latin-1")


@dataclass(frozen=True, slots=True)
class Form:
    """How an answer is written.

    ``target``: ``Table`` or ``PartialObjectMetadata`` (or a list of it), empty for the object.
    """

    media_type: str = "application/json"
    target: str = ""

    def respond(self, backend: Backend, call: Call, result: Obj, code: int) -> Response:
        """Return the response with an object, a list or a Status.

        ``result``: in the call's version, or as it is or was stored; so are the items of a list.
        """
        is_yaml = self.media_type == "application/yaml"
        if not (is_yaml or self.target or result["kind"] == "Status"):
            text = b"".join(_write_json(backend, call, result))
            return Response(text, code, media_type=self.media_type)
        content = self.shape(backend.api, call, result)
        if is_yaml:
            return Response(yaml.safe_dump(content), code, media_type=self.media_type)
        return JSONResponse(content, code)

    def shape(self, api: ApiServer, call: Call, result: Obj) -> Obj:
        """Return an object or a list as it is to be read."""
        if result["kind"] == "Status":
            return result
        items = _items_of(call, result)
        if self.target == "Table":
            return self._shape_table(api, call, result, items)
        if items is None and self.target == "PartialObjectMetadataList":
            text = (
                "you requested PartialObjectMetadataList, but the requested object is not a list "
                f"(*{_internal_package(call)}.{call.kind.name})"
            )
            raise ApiError(406, "NotAcceptable", text)
        if items is not None and self.target == "PartialObjectMetadata":
            text = (
                "you requested PartialObjectMetadata, but the requested object is a list "
                f"(*{_internal_package(call)}.{call.kind.name}List)"
            )
            raise ApiError(406, "NotAcceptable", text)
        if items is None:
            return _partial(result) if self.target else _encode(call, result)
        if self.target:
            meta = result["metadata"]
            kind = "PartialObjectMetadataList"
            partials = [_partial(item) for item in items] or None  # as Go writes a list without any
            return {"kind": kind, "apiVersion": _META, "metadata": meta, "items": partials}
        return {**result, "items": [_without_type(_encode(call, item)) for item in items]}

    def _shape_table(
        self, api: ApiServer, call: Call, result: Obj, items: Sequence[Obj] | None
    ) -> Obj:
        if items is None:
            meta: Obj = {"resourceVersion": result["metadata"]["resourceVersion"]}
            items = [result]
        else:
            meta = result["metadata"]
        table = api.build_table(call.kind.name, items, meta)
        includes = call.query.get("includeObject", [""])[0]
        for row, item in zip(table["rows"], items, strict=True):
            row["object"] = _encode(call, item) if includes == "Object" else _partial(item)
            if includes == "None":
                row["object"] = None
        return table


def _items_of(call: Call, result: Obj) -> list[Obj] | None:
    """Return the items of a result that is a list, None of any other."""
    return result["items"] if result["kind"] == f"{call.kind.name}List" else None


def _write_json(backend: Backend, call: Call, result: Obj) -> Iterator[bytes]:
    """Yield the JSON of an object or a list."""
    encoded, version, items = backend.encoded, call.api_version, _items_of(call, result)
    if items is None:
        yield write_type(call.kind.name, version)
        stored = backend.store.by_uid(result["metadata"].get("uid", ""))
        # A dry run's object, or one that is gone, has the resourceVersion of another state.
        if stored is not None and stored == result:
            yield encoded.encode_stored(stored, version)
        else:
            yield encoded.encode_other(result, version)
        return
    yield dump_json({**result, "items": []})[:-2].encode()
    separator = b"{"
    for item in items:
        yield separator
        yield encoded.encode_stored(item, version)
        separator = b",{"
    yield b"]}"


def _encode(call: Call, obj: Obj) -> Obj:
    written = conversion.as_version(obj, call.api_version)
    return encode_object(written, load_forms_of(call.kubernetes))


def _internal_package(call: Call) -> str:
    return (call.kind.group or "core").partition(".")[0]


def _partial(obj: Obj) -> Obj:
    metadata = encode_object(obj)["metadata"]
    return {"kind": "PartialObjectMetadata", "apiVersion": _META, "metadata": metadata}


def _without_type(obj: Obj) -> Obj:
    return {field: value for field, value in obj.items() if field not in ("apiVersion", "kind")}


def negotiate(accept: str, *, watchable: bool = False) -> Form:
    """Return the first form that a client accepts and that can be written.

    ``watchable``: what is asked for could be watched, too, in forms of their own.

    Raises ApiError: 406, there is none.
    """
    clauses = [_parse_clause(clause) for clause in accept.split(",")]
    clauses.sort(key=lambda clause: -float(clause[1].get("q") or 1))
    for media_type, parameters in clauses:
        target = parameters.get("as", "")
        if target and (target not in _TARGETS or parameters.get("g") != "meta.k8s.io"):
            continue
        if media_type in _JSON_RANGES:
            return Form(target=target)
        if media_type == "application/yaml":
            return Form(media_type, target)
    if any(media_type in _TYPES for media_type, _ in clauses):
        text = f"only the following media types are accepted: {', '.join(_TYPES)}"
        raise ApiError(406, "NotAcceptable", text)
    listed = ", ".join((*_TYPES, *(_WATCH_TYPES if watchable else ())))
    text = f"406: Not Acceptable\n\nAvailable representations: {listed}"
    raise NoRouteError(406, "NotAcceptable", text, details={})


def _parse_clause(clause: str) -> tuple[str, Mapping[str, str]]:
    media_type, *pairs = (piece.strip() for piece in clause.split(";"))
    return media_type or "*/*", dict(pair.split("=", 1) for pair in pairs if "=" in pair)


def build_list(call: Call, metadata: Obj, objects: Sequence[Obj]) -> Obj:
    """Return objects of a call's kind, which are or were stored so, as a list."""
    return {
        "kind": f"{call.kind.name}List",
        "apiVersion": call.api_version,
        "metadata": metadata,
        "items": [*objects],
    }


def refuse(path: str, error: ApiError, kinds: Mapping[str, Kind]) -> Response:
    """Return the response of a refusal; of a path of no group it is a line of text."""
    group = path.removeprefix("/apis/").partition("/")[0] if path.startswith("/apis/") else ""
    is_served = path.startswith("/api/v1/") or (
        group and group in {kind.group for kind in kinds.values()}
    )
    if error.code == 404 and error.details == {} and not is_served:
        return PlainTextResponse("404 page not found\n", 404)
    return JSONResponse(bodies.build_status(error), error.code)


def too_large_revision(revision: int, current: int) -> ApiError:
    """Return the refusal of a list at a version that is not there yet."""
    cause = Cause("", "ResourceVersionTooLarge", "Too large resource version")
    text = f"Timeout: Too large resource version: {revision}, current: {current}"
    return ApiError(504, "Timeout", text, [cause], {"retryAfterSeconds": 1})
