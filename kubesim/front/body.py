"""Bodies of requests, by their type, and of refusals."""

from __future__ import annotations

import json
from typing import Any, Final

import yaml

from kube.base import strictyaml
from kube.base.strictjson import check_bounds
from kube.errors import ApiError
from kube.values import Obj
from kubesim.front import protobuf
from kubesim.front.call import Call
from reference_allocator.api import schema
from reference_allocator.api.quantity import WrittenNumber

MAX_BODY: Final = 3 << 20  # Bytes of a request (MaxRequestBodyBytes of apiserver's config).

APPLY: Final = "application/apply-patch+yaml"
JSON_PATCH: Final = "application/json-patch+json"
STRATEGIC: Final = "application/strategic-merge-patch+json"
_PATCHES: Final = frozenset({APPLY, JSON_PATCH, STRATEGIC, "application/merge-patch+json"})
_OBJECTS: Final = frozenset({"application/json", "application/yaml", protobuf.CONTENT_TYPE})


def decode_body(method: str, content_type: str, data: bytes) -> Any:
    """Return the body of a request: an object, or a list (a JSON patch); {} where there is none.

    Raises ApiError: 415, another type than the method takes; 400, it cannot be decoded.
    """
    if not data:
        return {}
    kind = content_type.partition(";")[0].strip() or "application/json"
    allowed = _PATCHES if method == "PATCH" else _OBJECTS
    if kind not in allowed:
        accepted = ", ".join(sorted(allowed))
        raise ApiError(415, "UnsupportedMediaType", f"{kind} is not one of {accepted}")
    try:
        if kind == protobuf.CONTENT_TYPE:
            return protobuf.decode_protobuf(data)
        body = strictyaml.load(data.decode()) if kind.endswith("yaml") else _decode_json(data)
    except (ValueError, RecursionError, yaml.YAMLError) as error:
        raise ApiError(400, "BadRequest", f"the body cannot be decoded: {error}") from None
    if not isinstance(body, list if kind == JSON_PATCH else dict):
        raise ApiError(400, "BadRequest", "the body is not an object")
    return body


def _decode_json(data: bytes) -> Any:
    """Return a JSON value that can be answered again. Raises ValueError or RecursionError.

    As encoding/json of Go has it, what is no Unicode becomes U+FFFD (half of a surrogate pair, too,
    which only an escape can name), and a number that no float64 can hold is refused.
    """
    check_bounds(data)
    value = json.loads(data.decode("utf-8", "replace"), parse_float=WrittenNumber)
    text = json.dumps(value, ensure_ascii=False, allow_nan=False)
    try:
        text.encode()
    except UnicodeEncodeError:
        value = json.loads(text.encode("utf-16", "surrogatepass").decode("utf-16", "replace"))
    return value


def check_object(call: Call, body: Obj) -> Obj:
    """Return an object with the kind and the namespace of the path. Raises ApiError."""
    typed = {"apiVersion": call.api_version, "kind": call.kind.name}
    meta = {} if body.get("metadata") is None else body["metadata"]
    if not isinstance(meta, dict):
        raise ApiError(400, "BadRequest", "the body's metadata is not an object")
    expected = {**typed, "namespace": call.namespace, "name": call.name}
    actual = {**body, "namespace": meta.get("namespace"), "name": meta.get("name")}
    for field, expected_value in expected.items():
        if expected_value and actual.get(field) not in (None, "", expected_value):
            raise ApiError(
                400,
                "BadRequest",
                f"the {field} of the object ({actual[field]}) does not match that of the request "
                f"({expected_value})",
            )
    return {**body, **typed, "metadata": meta}


def without_unknown_fields(call: Call, body: Obj) -> Obj:
    """Drop unknown fields of a body where ``fieldValidation`` is ``Ignore`` or ``Warn``."""
    if call.query.get("fieldValidation", "Strict") == "Strict":
        return body
    root = schema.roots().get(f"{call.api_version}/{call.kind.name}", "")
    for mistake in list(schema.find_mistakes(root, body)) if root else ():
        if isinstance(mistake, schema.UnknownField):
            *parents, last = mistake.path
            owner: Any = body
            for segment in parents:
                owner = owner[segment]
            del owner[last]
    return body


def build_status(error: ApiError) -> Obj:
    """Return the ``metav1.Status`` of a refusal."""
    causes = [
        {"field": cause.field, "reason": cause.reason, "message": cause.message}
        for cause in error.causes
    ]
    return {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "code": error.code,
        "reason": error.reason,
        "message": error.message,
        "details": {"causes": causes},
    }
