"""Bodies of requests, by their type, and of refusals."""

from __future__ import annotations

import dataclasses
import json
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Final

import yaml

from kube.base import strictyaml
from kube.base.strictjson import check_bounds
from kube.errors import ApiError
from kube.values import Obj
from kubesim.apiserver import fieldsets
from kubesim.apiserver.decoding import (
    DecodingError,
    RepeatedKeys,
    copy_repeated,
    decode_object,
    list_strict_errors,
)
from kubesim.apiserver.unstructured import convert_numbers, find_unconvertible, without_place
from kubesim.front import protobuf
from kubesim.front.call import Call
from kubesim.front.options import WriteOptions
from kubesim.front.syntax import explain_json, explain_yaml
from kubesim.goforms import Fields
from kubesim.rawjson import keep_texts
from kubesim.resources import KINDS, is_registered
from kubesim.validation.errors import invalid, new_invalid
from reference_allocator.api import schema
from reference_allocator.api.names import dns_label_problems
from reference_allocator.api.quantity import WrittenNumber
from reference_allocator.api.quoting import go_quote, show_go

_WITHOUT_EMBEDDED_UNTIL: Final = 34
"""The last minor built with a Go whose decoder does not name embedded structs in paths."""
_DRIVER_UNWARNED_UNTIL: Final = 34
"""The last minor that says nothing of capitals in a driver's name."""
IDENTITY: Final = ("name", "namespace", "uid", "resourceVersion")
"""Fields of metadata that say which object it is, in which state."""
MAX_BODY: Final = 3 << 20  # Bytes of a request (MaxRequestBodyBytes of apiserver's config).

APPLY: Final = "application/apply-patch+yaml"
JSON_PATCH: Final = "application/json-patch+json"
STRATEGIC: Final = "application/strategic-merge-patch+json"
_PATCHES: Final = (JSON_PATCH, "application/merge-patch+json", STRATEGIC, APPLY)
_OBJECTS: Final = ("application/json", "application/yaml", protobuf.CONTENT_TYPE)

_JSON_TYPES: Final = {list: "array", dict: "object", str: "string", bool: "bool"}
_SUMMARY_BYTES: Final = 30
_STANDARD_FINALIZERS: Final = frozenset({"kubernetes", "orphan", "foregroundDeletion"})

Warn = Callable[[str], None]
"""Adds a text to the warnings of an answer."""


@dataclass(frozen=True, slots=True)
class Sent:
    """What came with a request.

    ``agent``: of the client, in the form of a field manager (``prefixFromUserAgent``).
    """

    content_type: str
    data: bytes
    agent: str

    def decode(self, method: str) -> Any:
        """Return the JSON value that the body is. Raises ApiError: 415 or 400."""
        return decode_body(negotiate_body(method, self.content_type), self.data)


def negotiate_body(method: str, content_type: str) -> str:
    """Return the media type of a body. Raises ApiError: 415, one that the method does not take."""
    media_type = content_type.partition(";")[0].strip()
    if method != "PATCH":
        media_type = media_type or "application/json"
    allowed = _PATCHES if method == "PATCH" else _OBJECTS
    if media_type not in allowed and method == "PATCH":
        text = "415: Unsupported Media Type"
        raise ApiError(415, "UnsupportedMediaType", text, details={})
    if media_type not in allowed:
        text = (
            "the body of the request was in an unknown format - accepted media types include: "
            f"{', '.join(allowed)}"
        )
        raise ApiError(415, "UnsupportedMediaType", text)
    return media_type


def decode_body(media_type: str, data: bytes) -> Any:
    """Return the JSON value that a body of an accepted media type is.

    Raises ApiError: 400, it cannot be decoded.
    """
    try:
        if media_type == protobuf.CONTENT_TYPE:
            return protobuf.decode_protobuf(data)
        return _load_first(data) if media_type.endswith("yaml") else decode_json(data)
    except (ValueError, RecursionError, yaml.YAMLError) as error:
        if media_type == "application/yaml":
            raise UnreadableBodyError(explain_yaml(error)) from None
        why = f"json parse error: {explain_json(data) or error}"
        raise UnreadableBodyError(f"couldn't get version/kind; {why}") from None


def _load_first(data: bytes) -> Any:
    """Return the first document of a YAML text, which is all that go-yaml reads."""
    return next(strictyaml.load_all(data.decode()), None)


class UnreadableBodyError(ApiError):
    """400: not even the kind of a body can be read."""

    def __init__(self, why: str) -> None:
        super().__init__(400, "BadRequest", why)


def _summarize(data: bytes) -> str:
    """Return the beginning of a body as messages show it (``summarizeData``)."""
    end = " ..." if len(data) > _SUMMARY_BYTES else ""
    if not data:
        return "<empty>"
    start = data[:_SUMMARY_BYTES]
    return (start.decode("utf-8", "replace") if data[:1] == b"{" else start.hex()) + end


def decode_json(data: bytes) -> Any:
    """Return a JSON value that can be answered again. Raises ValueError or RecursionError.

    As encoding/json of Go has it, what is no Unicode becomes U+FFFD (half of a surrogate pair, too,
    which only an escape can name), and a number that no float64 can hold is refused.
    """
    check_bounds(data)
    sent = data.decode("utf-8", "replace")
    value = keep_texts(sent, _DECODER.decode(sent))
    if "\\u" in sent:
        text = json.dumps(value, ensure_ascii=False)
        try:
            text.encode()
        except UnicodeEncodeError:
            value = json.loads(text.encode("utf-16", "surrogatepass").decode("utf-16", "replace"))
    return value


def _read_number(text: str) -> WrittenNumber:
    number = WrittenNumber(text)
    if not math.isfinite(number):
        raise ValueError(f"the number {text} cannot be held by a float64")
    return number


def _note_repeated_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    obj: dict[str, Any] = {}
    for key, value in pairs:
        # Go decodes the second into what the first has made.
        earlier_value = obj.get(key)
        if isinstance(earlier_value, dict) and isinstance(value, dict):
            obj[key] = {**earlier_value, **value}
        else:
            obj[key] = value
    if len(obj) == len(pairs):
        return obj
    repeated = RepeatedKeys(obj)
    repeated.pairs = pairs
    return repeated


_DECODER: Final = json.JSONDecoder(
    object_pairs_hook=_note_repeated_keys, parse_float=_read_number, parse_constant=_read_number
)


def decode_sent_object(
    call: Call, sent: Sent, method: str, options: WriteOptions, warn: Warn
) -> Obj:
    """Return the object in the body of a creation or an update, as its version has it.

    Raises ApiError: 415, of another media type; 400, it is none of the call's kind, version,
    namespace and name, or has fields that its kind does not have where the options are strict.
    """
    kind, expected_version = call.kind, call.api_version
    try:
        body = sent.decode(method)
        if body is None:
            body = {}
        if not isinstance(body, dict):
            type_name = _JSON_TYPES.get(type(body), "number")
            go_type = (
                'struct { APIVersion string "json:\\"apiVersion,omitempty\\""; '
                'Kind string "json:\\"kind,omitempty\\"" }'
            )
            why = (
                "couldn't get version/kind; json parse error: json: cannot unmarshal "
                f"{type_name} into Go value of type {go_type}"
            )
            raise UnreadableBodyError(why)
    except UnreadableBodyError as error:
        text = f"the object provided is unrecognized (must be of type {kind.name}): {error}"
        raise ApiError(400, "BadRequest", f"{text} ({_summarize(sent.data)})") from None
    sent_version = body.get("apiVersion") or expected_version
    sent_kind = body.get("kind") or kind.name
    typed = copy_repeated(body, {**body, "apiVersion": sent_version, "kind": sent_kind})
    if sent_kind != kind.name or sent_version not in kind.api_versions:
        why = (
            f'no kind "{sent_kind}" is registered for version "{sent_version}" in scheme '
            f'"{call.scheme}"'
        )
        is_known = is_registered(sent_version, sent_kind, call.kubernetes)
        if is_known:
            go_type = f"{sent_version.rpartition('/')[2]}.{sent_kind}"
            internal = f"{(kind.group or 'core').partition('.')[0]}.{kind.name}"
            why = f"converting ({go_type}) to ({internal}): unknown conversion"
        if is_known:  # it is read as what it says it is
            try:
                decode_object(KINDS[sent_kind], typed, lambda _: None)
            except DecodingError as error:
                why = error.why
        raise DecodingError(kind, sent_version, why, sent_kind)
    if options.field_validation == "Warn" and "yaml" in sent.content_type:
        repeated = strictyaml.find_repeated_keys(sent.data.decode())
        if repeated:
            lines = [f'line {line}: key "{key}" already set in map' for line, key in repeated]
            warn("\n  ".join(dict.fromkeys(lines)))
    obj = apply_field_validation(call, typed, options, warn)
    if sent_version != expected_version:
        text = (
            f"the API version in the data ({sent_version}) does not match the expected API version"
            f" ({expected_version})"
        )
        raise ApiError(400, "BadRequest", text)
    drop_repeated_owners(obj, warn)
    check_names(call, obj)
    return obj


def drop_repeated_owners(obj: Obj, warn: Warn, when: str = "") -> None:
    """Leave one of equal owner references, in place (``dedupOwnerReferences``).

    ``when``: what the warning says of the time.
    """
    owners = (obj.get("metadata") or {}).get("ownerReferences") or []
    repeated = [owner for index, owner in enumerate(owners) if owner in owners[:index]]
    if repeated:
        uids = ", ".join(owner.get("uid", "") for owner in repeated)
        text = (
            f".metadata.ownerReferences contains duplicate entries{when}; API server dedups owner "
            "references in 1.20+, and may reject such requests as early as 1.24; please fix your "
            f"requests; duplicate UID(s) observed: {uids}"
        )
        warn(text)
        obj["metadata"]["ownerReferences"] = [
            owner for index, owner in enumerate(owners) if owner not in owners[:index]
        ]


_AFTER_ADMISSION: Final = " after mutating admission happens"


def check_names(call: Call, obj: Obj) -> None:
    """Check that an object is the one of its call. Raises ApiError: 400."""
    meta = obj.setdefault("metadata", {})
    if not call.kind.namespaced:
        meta.pop("namespace", None)
    elif (meta.get("namespace") or call.namespace) != call.namespace:
        text = (
            "the namespace of the provided object does not match the namespace sent on the request"
        )
        raise ApiError(400, "BadRequest", text)
    if call.name and not meta.get("name"):
        text = (
            f"the name of the object ({call.name} based on URL) was undeterminable: "
            "name must be provided"
        )
        raise ApiError(400, "BadRequest", text)
    if call.name and meta["name"] != call.name:
        text = (
            f"the name of the object ({meta['name']}) does not match the name on the URL"
            f" ({call.name})"
        )
        raise ApiError(400, "BadRequest", text)


def decode_patch(media_type: str, data: bytes, options: WriteOptions, warn: Warn) -> Any:
    """Return what a patch says: an object, or the list of operations of a JSON patch.

    Raises ApiError: 400, it is something else, or cannot be decoded.
    """
    if media_type == APPLY:
        try:
            patch = _load_first(data)
        except (ValueError, RecursionError, yaml.YAMLError) as error:
            text = f"error encoding patch: {explain_yaml(error)}"
            raise ApiError(400, "BadRequest", text) from None
    else:
        try:
            patch = decode_json(data)
        except (ValueError, RecursionError):
            raise ApiError(400, "BadRequest", "invalid JSON patch") from None
    if not isinstance(patch, list if media_type == JSON_PATCH else dict):
        raise ApiError(400, "BadRequest", _explain_patch_type(media_type, patch))
    if media_type != APPLY and options.field_validation == "Warn":
        prefix = "json patch " if media_type == JSON_PATCH else ""
        for text in _list_patch_errors(patch):
            warn(f"{prefix}{text}")
    return patch


def _explain_patch_type(media_type: str, patch: Any) -> str:
    type_name = _JSON_TYPES.get(type(patch), "number")
    is_json_patch = media_type == JSON_PATCH
    expected = "[]handlers.jsonPatchOp" if is_json_patch else "map[string]interface {}"
    why = f"json: cannot unmarshal {type_name} into Go value of type {expected}"
    prefixes = {
        APPLY: "error decoding patch: error unmarshaling JSON: while decoding JSON: ",
        STRATEGIC: "",
    }
    return prefixes.get(media_type, "error decoding patch: ") + why


def _list_patch_errors(patch: Any) -> Iterator[str]:
    """Yield the fields of operations that there are not; of a merge patch the repeated keys."""
    operations = patch if isinstance(patch, list) else ()
    for index, operation in enumerate(operations):
        for field in operation if isinstance(operation, dict) else ():
            if field not in ("op", "path", "from", "value"):
                yield f'unknown field "[{index}].{field}"'
    if isinstance(patch, RepeatedKeys):
        yield from list_strict_errors("map[string]any", patch, "")


def decode_patched_object(
    call: Call, patched: Obj, options: WriteOptions, warn: Warn, strategic: Obj | None = None
) -> Obj:
    """Return what a patch made of an object, if it still is one.

    ``strategic``: the patch, if it is a strategic merge patch, whose result is converted.

    Raises ApiError: 422, it cannot be decoded; 400, it has another name or namespace.
    """
    sent_kind, sent_version = patched.get("kind") or "", patched.get("apiVersion") or ""
    text = json.dumps(patched, separators=(",", ":"), ensure_ascii=False)
    if sent_kind != call.kind.name or sent_version != call.api_version:
        why = (
            f'no kind "{sent_kind}" is registered for version "{sent_version}" in scheme '
            f'"{call.scheme}"'
        )
        raise new_invalid("", "", "", [invalid("patch", text, why)])
    root = schema.roots()[f"{call.api_version}/{call.kind.name}"]
    in_maps = strategic is None
    if strategic is not None:
        text = show_go(strategic, quotes=False)
        if why := find_unconvertible(root, patched):
            raise new_invalid("", "", "", [invalid("patch", text, why)])
        patched = convert_numbers(root, patched)
    try:
        obj = apply_field_validation(call, patched, options, warn, in_maps=in_maps)
    except DecodingError as error:
        why = error.why if strategic is None else without_place(error.why)
        raise new_invalid("", "", "", [invalid("patch", text, why)]) from None
    check_names(call, obj)
    drop_repeated_owners(obj, warn, _AFTER_ADMISSION)
    return obj


def check_applied(call: Call, body: Obj) -> Obj:
    """Return what is to be applied, with its metadata; nulls in it are kept.

    Raises ApiError: 400, of another kind or with ``managedFields``; 500, with a field that its kind
    does not have.
    """
    version, kind = body.get("apiVersion") or "", body.get("kind") or ""
    if (version, kind) != (call.api_version, call.kind.name):
        group, _, short_version = version.rpartition("/")
        text = f"invalid object type: {group}/{short_version}, Kind={kind}"
        raise ApiError(400, "BadRequest", text)
    meta = body.get("metadata")
    named = meta if isinstance(meta, dict) else {}
    if named.get("managedFields") is not None:
        raise ApiError(400, "BadRequest", "metadata.managedFields must be nil")
    root = schema.roots()[f"{call.api_version}/{call.kind.name}"]
    place = f"{named.get('namespace') or ''}/{named.get('name') or ''}"
    place = f"({place}; {_show_kind(call)})"
    if errors := [
        f"{path}: {why}" for path, why in _list_typed_errors(root, body, "", call.lacking)
    ]:
        lines = "\n  ".join(["errors:", *errors])
        listed = errors[0] if len(errors) == 1 else lines
        raise ApiError(500, "", f"failed to create typed patch object {place}: {listed}")
    return {**body, "metadata": {}} if "metadata" in body and meta is None else body


def _show_kind(call: Call) -> str:
    """Return the kind as Go prints a ``GroupVersionKind``, also where the group has no name."""
    slash = "" if call.kind.group else "/"
    return f"{slash}{call.api_version}, Kind={call.kind.name}"


def convert_merged(call: Call, merged: Obj, applied: Obj) -> Obj:
    """Return what an apply made of an object, its numbers as Go has them.

    ``applied``: what was sent, by whose names an error calls the object.

    Raises ApiError: 500, a value cannot be converted to the type of its field.
    """
    root = schema.roots()[f"{call.api_version}/{call.kind.name}"]
    why = find_unconvertible(root, merged)
    try:
        merged = convert_numbers(root, merged)
        decode_object(call.kind, merged)
    except DecodingError as error:
        why = why or without_place(error.why)
    if why:
        meta = applied.get("metadata") or {}
        place = f"{meta.get('namespace') or ''}/{meta.get('name') or ''}"
        kind = _show_kind(call)
        text = (
            f"failed to convert new object ({place}; {kind}) to proper version: unable to convert "
            f"unstructured object to {kind}: {why}"
        )
        raise ApiError(500, "", text)
    return merged


def _list_typed_errors(
    shape: str, value: Any, path: str, lacking: Fields, mark: str = ""
) -> Iterator[tuple[str, str]]:
    """Yield path and error of what does not fit its shape (structured-merge-diff's validation).

    Args:
        lacking: fields that the server does not know.
        mark: of a list whose items have owners of their own, as `fieldsets.find_mark` gives it.
    """
    fields = schema.types().get(shape)
    if value is None or shape == "any":
        return
    if fields is not None or shape.startswith(schema.MAP):
        if not isinstance(value, dict):
            yield path, f"expected map, got {_show_untyped(value)}"
            return
        for key, item in value.items():
            inner = shape[len(schema.MAP) :] if fields is None else fields.get(key)
            if inner is None or (shape, key) in lacking:
                yield f"{path}.{key}", "field not declared in schema"
                return
            inner_mark = fieldsets.find_mark(shape, key)
            yield from _list_typed_errors(inner, item, f"{path}.{key}", lacking, inner_mark)
    elif shape.startswith(schema.LIST):
        if not isinstance(value, list):
            yield path, f"expected list, got {_show_untyped(value)}"
            return
        yield from _list_item_errors(shape[len(schema.LIST) :], value, path, lacking, mark)
    elif not _fits_scalar(shape, value):
        expected, form = _SCALARS[shape]
        shown = {
            "%#v": f"&value.valueUnstructured{{Value:{show_go(value, quotes=True)}}}",
            "%T": _GO_TYPES.get(type(value), "string"),
            "%v": _show_untyped(value),
        }
        yield path, f"expected {expected}, got {shown[form]}"


def _list_item_errors(
    shape: str, items: list[Any], path: str, lacking: Fields, mark: str
) -> Iterator[tuple[str, str]]:
    seen: set[str] = set()
    for index, item in enumerate(items):
        segment = f"[{index}]"
        if mark:
            try:
                segment = fieldsets.identify_item(mark, item)
            except ValueError as error:
                yield path, f"element {index}: {error}"
                return
            if segment in seen:
                yield path, f"duplicate entries for key {segment}"
            seen.add(segment)
        yield from _list_typed_errors(shape, item, f"{path}{segment}", lacking)


_GO_TYPES: Final = {bool: "bool", list: "[]interface {}", dict: "map[string]interface {}"}
_SCALARS: Final = {
    **dict.fromkeys(("int32", "int64"), ("numeric (int or float)", "%T")),
    **dict.fromkeys(("intorstring", "quantity", "time"), ("any scalar", "%v")),
    "string": ("string", "%#v"),
    "bool": ("boolean", "%v"),
}
"""Shape -> what is expected, and the verb of Go that shows what is there."""


def _fits_scalar(shape: str, value: Any) -> bool:
    if shape in ("intorstring", "quantity", "time"):
        return not isinstance(value, dict | list)
    if shape == "bool" or isinstance(value, bool):
        return shape == "bool" and isinstance(value, bool)
    return isinstance(value, str if shape == "string" else int | float)


def _show_untyped(value: Any) -> str:
    return f"&{{{show_go(value, quotes=False)}}}"


def warn_of_object(call: Call, obj: Obj, warn: Warn) -> None:
    """Warn of what is valid in a new or changed object and unwise (``WarningsOnCreate``)."""
    driver = (obj.get("spec") or {}).get("driver", "") if obj["kind"] == "ResourceSlice" else ""
    if driver != driver.lower() and call.minor > _DRIVER_UNWARNED_UNTIL:
        text = (
            f"spec.driver: driver names should be lowercase; {go_quote(driver)} contains uppercase "
            "characters"
        )
        warn(text)
    if obj["kind"] == "Pod" and (problems := dns_label_problems(obj["metadata"]["name"])):
        text = (
            "metadata.name: this is used in the Pod's hostname, which can result in surprising "
            f"behavior; a DNS label is recommended: [{' '.join(problems)}]"
        )
        warn(text)
    for finalizer in obj["metadata"].get("finalizers") or ():
        if "/" not in finalizer and finalizer not in _STANDARD_FINALIZERS:
            text = (
                f"metadata.finalizers: {go_quote(finalizer)}: prefer a domain-qualified finalizer "
                "name including a path (/) to avoid accidental conflicts with other finalizer "
                "writers"
            )
            warn(text)


def warn_of_empty_selector(obj: Obj, warn: Warn) -> None:
    """Warn of a DeviceTaintRule about all devices (``warningsForDeviceTaintRule``)."""
    selector = obj["spec"].get("deviceSelector") if obj["kind"] == "DeviceTaintRule" else None
    if selector is not None and not any(selector.get(k) for k in ("driver", "pool", "device")):
        text = "an empty selector matches every device from every driver in the cluster"
        warn(f"spec.deviceSelector: {text}")


def apply_field_validation(
    call: Call, obj: Obj, options: WriteOptions, warn: Warn, *, in_maps: bool = True
) -> Obj:
    """Return an object without unknown fields; tell or refuse them as the options say.

    ``in_maps``: whether paths in what is said have the keys of maps.

    Raises ApiError: 400, a value is of a wrong type, or a field is unknown or repeated.
    """
    match options.field_validation:
        case "Strict":
            told = None
        case "Warn":
            told = warn
        case _:
            told = _tell_nobody
    try:
        return decode_object(call.kind, obj, told, in_maps=in_maps, lacking=call.lacking)
    except DecodingError as error:
        if call.minor <= _WITHOUT_EMBEDDED_UNTIL:
            error.message = error.message.replace(".DeviceConfiguration.", ".")
            error.why = error.why.replace(".DeviceConfiguration.", ".")
        raise


def _tell_nobody(_text: str) -> None:
    """Warn nobody."""


def build_status(error: ApiError) -> Obj:
    """Return the ``metav1.Status`` of a refusal."""
    causes = [
        {name: text for name, text in dataclasses.asdict(cause).items() if text}
        for cause in error.causes
    ]
    status: Obj = {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": error.message,
        "reason": error.reason,
        "details": {**(error.details or {}), **({"causes": causes} if causes else {})},
        "code": error.code,
    }
    if error.details is None and not causes:
        del status["details"]
    if not error.reason:
        del status["reason"]
    return status
