"""Strict decoding: which fields a kind has, and the API server's answer to any other.

An API server asked with ``fieldValidation=Strict`` refuses unknown fields. That is how an outdated
manifest is found out (a pod's ``resourceClaims[].source``), so the reference needs the whole
list of fields, not just those that it acts upon.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache
from typing import Any

from kube.errors import ApiError
from kube.values import Obj
from kubesim.goforms import Fields, is_unset, load_go_types, zero_of
from kubesim.rawjson import RawObject
from kubesim.resources import Kind
from kubesim.store import clone
from reference_allocator.api import schema
from reference_allocator.api.quantity import (
    NO_QUANTITY,
    QuantityError,
    WrittenNumber,
    as_quantity,
)
from reference_allocator.api.schema import LIST, MAP, WrongType

_GO_KINDS = {
    str: "string",
    int: "number",
    float: "number",
    WrittenNumber: "number",
    bool: "bool",
    list: "array",
}
_READ_THEMSELVES = frozenset({"quantity", "time"})
_EMBEDDED = frozenset(
    {"DeviceAllocationConfiguration", "DeviceClaimConfiguration", "DeviceClassConfiguration"}
)
"""Types that have the fields of DeviceConfiguration, which Go names in a path."""

_GO_TYPES = {"time": "string", "quantity": "string"}


class DecodingError(ApiError):
    """400 BadRequest: an object cannot be decoded (``transformDecodeError``).

    ``why``: the decoder's own words.
    """

    def __init__(self, kind: Kind, api_version: str, why: str, sent_kind: str = "") -> None:
        """Refuse an object of a kind; ``sent_kind`` is the one that it names, if it is another."""
        version = api_version.rpartition("/")[2]
        name = sent_kind or kind.name
        text = f'{name} in version "{version}" cannot be handled as a {kind.name}: {why}'
        super().__init__(400, "BadRequest", text)
        self.why = why


class RepeatedKeys(dict[str, Any]):
    """A JSON object in which a key stood more than once: the last value counts.

    ``pairs``: all keys and values, in their order.
    """

    pairs: list[tuple[str, Any]]


def copy_repeated(obj: Obj, changed: Obj) -> Obj:
    """Return a changed copy of an object, which still knows which keys were repeated."""
    if not isinstance(obj, RepeatedKeys):
        return changed
    repeated = RepeatedKeys(changed)
    repeated.pairs = obj.pairs
    return repeated


def decode_object(
    kind: Kind,
    obj: Obj,
    warn: Callable[[str], None] | None = None,
    *,
    in_maps: bool = True,
    lacking: Fields = frozenset(),
) -> Obj:
    """Refuse values of a wrong type, then unknown and repeated fields, as the API server does.

    Args:
        obj: as the client sends it; not changed.
        warn: called with each unknown or repeated field instead; such are not in the result.
        in_maps: whether paths of those have the keys of maps; they have none where what a strategic
            patch made is converted.
        lacking: fields that the server does not know.

    Returns:
        A copy without nulls and what Go cannot tell from them: a field that is null is absent, an
        element that is null is empty.

    Raises DecodingError: with the path of every unknown field.
    """
    root = schema.roots()[f"{obj['apiVersion']}/{kind.name}"]
    known = without_fields(root, obj, lacking) if lacking else obj
    try:
        decoded: Obj = _decoder_of(root, is_lenient=False)(known)
    except _UnfitError:
        decoded = {}
    if decoded and (known is obj or known == obj):
        return decoded
    mismatches = [item for item in schema.find_mistakes(root, known) if isinstance(item, WrongType)]
    if mismatches:
        # What reads itself (UnmarshalJSON) ends the decoding; the first of all others is kept.
        first = next((item for item in mismatches if item.shape in _READ_THEMSELVES), mismatches[0])
        raise DecodingError(kind, obj["apiVersion"], _explain_mismatch(root, first))
    errors = [*list_strict_errors(root, obj, "", in_maps=in_maps, lacking=lacking)]
    if errors and warn is None:
        text = f"strict decoding error: {', '.join(errors)}"
        raise DecodingError(kind, obj["apiVersion"], text)
    for text in errors:
        assert warn is not None
        warn(text)
    lenient: Obj = copy_decoded(root, known)
    return lenient


def without_fields(shape: str, value: Any, lacking: Fields) -> Any:
    """Return a value of a shape without some fields, as far as it has the right types."""
    if shape.startswith(LIST) and isinstance(value, list):
        return [without_fields(shape[len(LIST) :], item, lacking) for item in value]
    fields = schema.types().get(shape)
    if not isinstance(value, dict) or (fields is None and not shape.startswith(MAP)):
        return value
    kept = {
        key: item
        if fields is not None and key not in fields
        else without_fields(shape[len(MAP) :] if fields is None else fields[key], item, lacking)
        for key, item in value.items()
        if (shape, key) not in lacking
    }
    return copy_repeated(value, kept)


def list_strict_errors(
    shape: str, value: Any, path: str, *, in_maps: bool = True, lacking: Fields = frozenset()
) -> Iterator[str]:
    """Yield what strict decoding finds in a value of a shape, in the order of the value.

    Args:
        in_maps: whether paths have the keys of maps.
        lacking: fields that the server does not know.
    """
    options: dict[str, Any] = {"in_maps": in_maps, "lacking": lacking}
    if shape.startswith(LIST) and isinstance(value, list):
        for index, item in enumerate(value):
            place = f"{path}[{index}]"
            yield from list_strict_errors(shape[len(LIST) :], item, place, **options)
        return
    fields = schema.types().get(shape)
    if not isinstance(value, dict) or (fields is None and not shape.startswith(MAP)):
        return
    seen_keys: set[str] = set()
    for key, item in value.pairs if isinstance(value, RepeatedKeys) else value.items():
        place = f"{path}.{key}" if path else key
        inner = shape[len(MAP) :] if fields is None else fields.get(key)
        if (shape, key) in lacking:
            inner = None
        if key in seen_keys:
            yield f'duplicate field "{place}"'
        elif inner is None:
            yield f'unknown field "{place}"'
        seen_keys.add(key)
        if inner is not None:
            inner_place = place if in_maps or fields is not None else path
            yield from list_strict_errors(inner, item, inner_place, **options)


def copy_decoded(shape: str, value: Any) -> Any:
    """Return a copy of a value of the right type, as Go's decoder leaves it; unknown fields go."""
    return _decoder_of(shape, is_lenient=True)(value)


class _UnfitError(Exception):
    """Something in a value is not of its shape, unknown or repeated; a slower look says what."""


@cache
def _decoder_of(shape: str, *, is_lenient: bool) -> Callable[[Any], Any]:
    """Return what copies a value of a shape as Go's decoder leaves it. It raises _UnfitError.

    ``is_lenient``: it leaves out unknown fields instead.
    """
    if shape.startswith((LIST, MAP)):
        return _collection_decoder_of(shape, is_lenient=is_lenient)
    fields = schema.types().get(shape)
    if fields is None:
        return _scalar_decoder_of(shape)

    decoders: dict[str, Callable[[Any], Any]] = {}  # made when used: types may hold themselves

    def decode_struct(value: Any) -> Obj:
        if not isinstance(value, dict) or (isinstance(value, RepeatedKeys) and not is_lenient):
            raise _UnfitError
        decoded: Obj = {}
        for field, item in value.items():
            decode = decoders.get(field)
            if decode is None:
                inner = fields.get(field)
                if inner is None and not is_lenient:
                    raise _UnfitError
                if inner is None:
                    continue
                decode = decoders[field] = _decoder_of(inner, is_lenient=is_lenient)
            if item is None:
                continue
            is_text = decode is _decode_text and item.__class__ is str  # most values are
            copied = item if is_text else decode(item)
            # Validation can tell an empty list or map from none; what is stored cannot
            # (`drop_unset`).
            if copied or isinstance(copied, (list, dict)) or not is_unset(shape, field, copied):
                decoded[field] = copied
        return decoded

    return decode_struct


def _collection_decoder_of(shape: str, *, is_lenient: bool) -> Callable[[Any], Any]:
    is_list = shape.startswith(LIST)
    inner = shape[len(LIST if is_list else MAP) :]

    def decode_list(value: Any) -> list[Any]:
        if not isinstance(value, list):
            raise _UnfitError
        decode = _decoder_of(inner, is_lenient=is_lenient)
        return [zero_of(inner) if item is None else decode(item) for item in value]

    def decode_map(value: Any) -> Obj:
        if not isinstance(value, dict) or (isinstance(value, RepeatedKeys) and not is_lenient):
            raise _UnfitError
        decode = _decoder_of(inner, is_lenient=is_lenient)
        return {
            key: zero_of(inner) if item is None else decode(item) for key, item in value.items()
        }

    return decode_list if is_list else decode_map


def _scalar_decoder_of(shape: str) -> Callable[[Any], Any]:
    def decode_quantity(value: Any) -> str:
        try:
            return str(as_quantity(value))  # a number is read back as a text
        except QuantityError:
            raise _UnfitError from None

    def decode_scalar(value: Any) -> Any:
        if any(schema.find_mistakes(shape, value)):
            raise _UnfitError
        return value if isinstance(value, RawObject) else clone(value)

    return {"quantity": decode_quantity, "string": _decode_text}.get(shape, decode_scalar)


def _decode_text(value: Any) -> str:
    if not isinstance(value, str):
        raise _UnfitError
    return value


def _explain_mismatch(root: str, mistake: WrongType) -> str:
    """Return what Go's JSON decoder says of a value of a wrong type."""
    is_integer = mistake.shape.startswith("int")
    if mistake.shape == "time" and mistake.why:
        parsing = f'parsing time "{mistake.value}" as "2006-01-02T15:04:05Z07:00"'
        return f'{parsing}: cannot parse "{mistake.value}" as "2006"'
    if mistake.shape == "quantity" and not mistake.why:
        return str(NO_QUANTITY)
    if mistake.why and not is_integer:
        return mistake.why
    value = mistake.value
    found_type = "bool" if isinstance(value, bool) else _GO_KINDS.get(type(value), "object")
    if is_integer and found_type == "number":
        found_type = f"number {value.text if isinstance(value, WrittenNumber) else value}"
    field = str(mistake.path[-1]) if mistake.path else ""
    go_type = load_go_types().get(mistake.owner, {}).get(field) or _go_type(mistake.shape)
    struct = _go_type(mistake.owner).rpartition(".")[2]
    return (
        f"json: cannot unmarshal {found_type} into Go struct field"
        f" {struct}.{_go_path(root, mistake.path)} of type {go_type}"
    )


def _go_path(root: str, path: schema.Path) -> str:
    """Return the path as Go's decoder has it: without indices, and without the keys of maps."""
    shape, names = root, []
    for segment in path:
        if shape.startswith(LIST):
            shape = shape[len(LIST) :]
        elif shape.startswith(MAP):
            shape = shape[len(MAP) :]
        else:
            if segment == "opaque" and shape.rpartition(".")[2] in _EMBEDDED:
                names.append("DeviceConfiguration")
            names.append(str(segment))
            shape = schema.types()[shape][str(segment)]
    return ".".join(names)


def _go_type(shape: str) -> str:
    """Return ``[]v1.DeviceRequest`` for ``[]resource/v1.DeviceRequest``."""
    for prefix in (LIST, MAP):
        if shape.startswith(prefix):
            return prefix + _go_type(shape[len(prefix) :])
    return _GO_TYPES.get(shape, shape.rpartition("/")[2])
