"""How Go writes objects as JSON: what is left out if it is empty, and what is null.

A field with ``omitempty`` is left out, one without is there whatever it holds, and an empty list in
etcd comes back as null. The table is generated from the Go types (`ci/upstream/fielddump -forms`).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Set
from functools import cache
from importlib.resources import files
from typing import Any, Final, Literal

from kube.values import Obj
from reference_allocator.api import schema
from reference_allocator.api.schema import LIST, MAP

Fields = Set[tuple[str, str]]
"""Types and names of fields of theirs."""
Empties = Literal["none", "null", "all"]
"""Which empty lists are told from none: no one, those of fields that are null otherwise, or all."""


class Forms(dict[str, Mapping[str, str]]):
    """Type -> field -> how it is written, as `load_forms` has it; what is made for one is kept."""

    __hash__ = object.__hash__  # type: ignore[assignment]  # there is one for each way of writing


_TABLE: Final = "forms-1.37.json"
_NAMES: Final = "names-1.37.json"
_ZEROS: Final = {"int32": 0, "int64": 0, "bool": False, "string": "", "quantity": "0"}


@cache
def load_forms() -> Forms:
    """Return type -> its fields, but for those that are left out if they are empty.

    ``pointer``: left out if it is nil; ``nullable``: null if it is nil; ``null``: null if it is
    empty; ``always``: always there.
    """
    forms: dict[str, dict[str, str]] = json.loads(
        files(__package__).joinpath(_TABLE).read_text(encoding="utf-8")
    )
    for owner, fields in schema.types().items():
        if "opaque" in fields:  # of the struct that is embedded in it
            forms.setdefault(owner, {})["opaque"] = "pointer"
    return Forms(forms)


@cache
def load_forms_of(kubernetes: str) -> Forms:
    """Return the forms of a minor, for example 1.34, which writes that a slice has no devices."""
    if kubernetes != "1.34":
        return load_forms()
    of_slices = {
        owner: {**load_forms().get(owner, {}), "devices": "null"}
        for owner in schema.types()
        if owner.endswith(".ResourceSliceSpec")
    }
    return Forms({**load_forms(), **of_slices})


@cache
def load_go_names() -> Mapping[str, Mapping[str, str]]:
    """Return type that errors print -> its fields in their order, each with its name in Go.

    Without the types of scalars; those of an embedded struct stand where it does.
    """
    document: dict[str, list[str]] = json.loads(
        files(__package__).joinpath(_NAMES).read_text(encoding="utf-8")
    )
    names: dict[str, dict[str, str]] = {}
    for owner, described in document.items():
        names[owner] = {}
        for text in described:
            go_name, _, name = text.partition(":")[0].partition("=")
            names[owner][name or go_name[:1].lower() + go_name[1:]] = go_name
        if "opaque" in schema.types().get(owner, {}):
            names[owner]["opaque"] = "Opaque"
    return names


@cache
def load_go_types() -> Mapping[str, Mapping[str, str]]:
    """Return type that errors print -> its fields of a named scalar -> that type in Go."""
    document: dict[str, list[str]] = json.loads(
        files(__package__).joinpath(_NAMES).read_text(encoding="utf-8")
    )
    go_types: dict[str, dict[str, str]] = {}
    for owner, described in document.items():
        for text in described:
            field, _, go_type = text.partition(":")
            go_name, _, name = field.partition("=")
            if go_type:
                name = name or go_name[:1].lower() + go_name[1:]
                go_types.setdefault(owner, {})[name] = go_type
    return go_types


def show_internal(shape: str, value: Any, lacking: Fields = frozenset()) -> Any:
    """Return a value of a type of an API group as errors print it: as the Go struct that it is.

    All fields are there, by their names in Go, but for those of apimachinery, which are written as
    in JSON; metadata, which is embedded, stands without a name. ``lacking``: fields that are not.
    """
    if shape.startswith(LIST):
        return [show_internal(shape[len(LIST) :], item, lacking) for item in value]
    if shape.startswith(MAP):
        inner = shape[len(MAP) :]
        return {key: show_internal(inner, value[key], lacking) for key in sorted(value)}
    if shape not in load_go_names():
        return value
    if shape.startswith("meta/"):
        return order_fields(shape, encode_value(shape, value, load_forms(), "none"))
    shown: Obj = {}
    for field, go_name in load_go_names()[shape].items():
        inner, item = schema.types()[shape][field], value.get(field)
        form = load_forms().get(shape, {}).get(field)
        if (shape, field) in lacking:
            continue
        if go_name == "ObjectMeta":
            shown |= show_internal(inner, item or {})
        elif item is not None:
            shown[go_name] = show_internal(inner, item, lacking)
        elif form in ("pointer", "nullable") or inner not in {**_ZEROS, **schema.types()}:
            shown[go_name] = None
        else:
            shown[go_name] = show_internal(inner, zero_of(inner), lacking)
    return shown


def order_fields(shape: str, value: Any) -> Any:
    """Return a value whose fields are in the order in which Go writes them."""
    if shape.startswith(LIST) and isinstance(value, list):
        return [order_fields(shape[len(LIST) :], item) for item in value]
    if shape.startswith(MAP) and isinstance(value, dict):
        inner = shape[len(MAP) :]
        return {key: order_fields(inner, value[key]) for key in sorted(value)}
    fields = schema.types().get(shape)
    if fields is None or not isinstance(value, dict):
        return value
    order = (*load_go_names().get(shape, ()), *sorted(fields))
    return {name: order_fields(fields[name], value[name]) for name in order if name in value}


def zero_of(shape: str) -> Any:
    """Return the value that a field of a shape has in Go if nothing is said of it."""
    if shape in schema.types() or shape.startswith(MAP):
        return {}
    return [] if shape.startswith(LIST) else _ZEROS.get(shape)


def is_unset(owner: str, field: str, value: Any) -> bool:
    """Return whether Go cannot tell a value of a field from one that was never set."""
    if value or schema.types()[owner][field] == "any":  # of which Go keeps the text
        return False
    return load_forms().get(owner, {}).get(field) in (None, "null")


def drop_unset(obj: Obj) -> Obj:
    """Return an object as it comes back from etcd: protobuf knows no empty list or map.

    ``obj``: in the version that it names; not changed.
    """
    root = schema.roots().get(f"{obj['apiVersion']}/{obj['kind']}")
    kept: Obj = obj if root is None else _drop_unset(root, obj)
    return kept


def _drop_unset(shape: str, value: Any) -> Any:
    if shape.startswith(LIST):
        inner = shape[len(LIST) :]
        return value if inner in _ZEROS else [_drop_unset(inner, item) for item in value]
    if shape.startswith(MAP):
        inner = shape[len(MAP) :]
        return {key: _drop_unset(inner, item) for key, item in value.items()}
    fields = schema.types().get(shape)
    if fields is None:
        return value
    # Most values are scalars that are set: no call for these.
    return {
        field: _drop_unset(fields[field], item)
        if isinstance(item, (dict, list)) and field in fields
        else item
        for field, item in value.items()
        if item or field not in fields or not is_unset(shape, field, item)
    }


def encode_object(obj: Obj, forms: Forms | None = None, *, empties: Empties = "none") -> Obj:
    """Return a copy of an object, in the version that it names, as an API server writes it.

    Args:
        forms: how the server's minor writes fields; None for the newest that is known.
        empties: which empty lists stay that are not told from none once they are stored.
    """
    root = schema.roots().get(f"{obj['apiVersion']}/{obj['kind']}")
    encoded: Obj = obj if root is None else encode_value(root, obj, forms or load_forms(), empties)
    return encoded


def encode_value(shape: str, value: Any, forms: Forms, empties: Empties) -> Any:
    """Return a copy of a value of a shape as `encode_object` returns an object.

    Items of lists have all their empty lists and maps if any stay: Go compares lists as they are in
    memory (``reflect.DeepEqual``), all else as it is written.
    """
    encode = _encoder_of(shape, forms, empties)
    return value if encode is None else encode(value)


def complete_struct(shape: str, value: Obj, forms: Forms, empties: Empties) -> Obj:
    """Return the fields of a struct that are written, each with a value that is not encoded yet."""
    completed: Obj = _completer_of(shape, forms, empties)(value)
    return completed


_Encoder = Callable[[Any], Any]


@cache
def _encoder_of(shape: str, forms: Forms, empties: Empties) -> _Encoder | None:
    """Return what encodes values of a shape; None: they are written as they are."""
    if shape.startswith((LIST, MAP)):
        return _collection_encoder_of(shape, forms, empties)
    fields = schema.types().get(shape)
    if fields is None:
        return None
    complete = _completer_of(shape, forms, empties)
    shapes = {*fields.values()}
    if not any(inner.startswith((LIST, MAP)) or inner in schema.types() for inner in shapes):
        return complete
    encoders: list[tuple[str, _Encoder]] | None = None  # made when used: types may hold themselves

    def encode_struct(value: Any) -> Any:
        nonlocal encoders
        if encoders is None:
            made = ((field, _encoder_of(inner, forms, empties)) for field, inner in fields.items())
            encoders = [(field, encode) for field, encode in made if encode is not None]
        written = complete(value)
        for field, encode in encoders:
            item = written.get(field)
            if item is not None:
                written[field] = encode(item)
        return written

    return encode_struct


def _collection_encoder_of(shape: str, forms: Forms, empties: Empties) -> _Encoder | None:
    is_list = shape.startswith(LIST)
    if is_list and empties != "none":
        empties = "all"
    encode = _encoder_of(shape[len(LIST if is_list else MAP) :], forms, empties)
    if encode is None:
        return None if is_list else dict
    if is_list:
        return lambda items: [*map(encode, items)]
    return lambda items: {key: encode(item) for key, item in items.items()}


@cache
def _completer_of(shape: str, forms: Forms, empties: Empties) -> _Encoder:
    """Return what does for structs of a shape as `complete_struct` does."""
    fields = schema.types()[shape]
    kept = {field for field in fields if not is_unset(shape, field, None)}
    keeps_all = empties == "all"
    completed = [
        (field, form == "always")
        for field, form in forms.get(shape, {}).items()
        if form != "pointer"
    ]

    def complete(value: Obj) -> Obj:
        written: Obj = {
            field: item
            for field, item in value.items()
            if (item and field in fields)
            or (item is not None and field in kept)
            or (keeps_all and field in fields and isinstance(item, (dict, list)))
        }
        for field, is_zero in completed:
            if field not in written:
                written[field] = zero_of(fields[field]) if is_zero else None
                if empties != "none" and value.get(field) == []:
                    written[field] = []
        return written

    return complete
