"""Sets of an object's fields that can have owners: found, compared, merged, removed and written.

As sigs.k8s.io/structured-merge-diff does it (typed/compare.go, tofieldset.go, merge.go, remove.go).
A field is a *path*: names of fields and keys of maps, and of a list whose items have owners of
their own the item's key fields with their values (of a set the value, under the name ''). All other
lists are one field. Which is which stands in the comments of the Go types (``+listType=map``); the
table is generated from them (`ci/upstream/fielddump -owners`).
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Set
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from typing import Any, Final

from kubesim.goforms import Forms, complete_struct, encode_value
from kubesim.store import clone
from reference_allocator.api import schema
from reference_allocator.api.schema import LIST, MAP

Key = tuple[tuple[str, Any], ...]
Path = tuple[str | Key, ...]

_TABLE: Final = "owners-1.37.json"
_ABSENT: Final = object()
_Child = tuple[str | Key, Any, str, str]
"""Last part of a path, value, and the shape and mark of its place."""


@cache
def _load_marks() -> Mapping[str, Mapping[str, str]]:
    """Return type -> field -> ``atomic``, ``set`` or ``map:`` and keys; '' is the type itself."""
    text = files("kubesim").joinpath(_TABLE).read_text(encoding="utf-8")
    marks: Mapping[str, Mapping[str, str]] = json.loads(text)
    return marks


def _is_leaf(shape: str, mark: str) -> bool:
    if mark == "atomic":
        return True
    if shape.startswith(LIST):
        return not mark
    is_struct = shape in schema.types() and "" not in _load_marks().get(shape, {})
    return not is_struct and not shape.startswith(MAP)


def _list_children(shape: str, mark: str, value: Any, forms: Forms | None = None) -> list[_Child]:
    """Return what can have owners of its own directly below a value that is no leaf.

    ``forms``: how a decoded value is written; None for one that is encoded already.
    """
    if value is None or value is _ABSENT:
        return []
    if shape.startswith(LIST):
        inner = shape[len(LIST) :]
        return [(_key_of(mark, item), item, inner, "") for item in value]
    if shape.startswith(MAP):
        return [(key, item, shape[len(MAP) :], "") for key, item in value.items()]
    fields, marks = schema.types()[shape], _load_marks().get(shape, {})
    written = value if forms is None else complete_struct(shape, value, forms, "null")
    return [(k, item, fields[k], marks.get(k, "")) for k, item in written.items() if k in fields]


def _value_at(children: Mapping[str | Key, _Child], segment: str | Key) -> Any:
    return children[segment][1] if segment in children else _ABSENT


def _key_of(mark: str, item: Any) -> Key:
    if mark == "set":
        return (("", item),)
    pairs = []
    for text in sorted(mark.removeprefix("map:").split(",")):
        name, has_default, default = text.partition("=")
        if name in item or has_default:
            pairs.append((name, item.get(name, default)))
    return tuple(pairs)


@dataclass(frozen=True)
class Comparison:
    """What is otherwise in a newer object."""

    removed: set[Path] = field(default_factory=set)
    modified: set[Path] = field(default_factory=set)
    added: set[Path] = field(default_factory=set)


def compare(root: str, old: Any, new: Any, forms: Forms | None = None) -> Comparison:
    """Compare two objects of a type.

    ``forms``: how the server writes them, as they have been decoded; None: they are written already
    (`goforms.encode_object`).
    """
    result = Comparison()
    _compare(root, "", old, new, (), forms, result)
    return result


def _compare(
    shape: str,
    mark: str,
    old: Any,
    new: Any,
    path: Path,
    forms: Forms | None,
    result: Comparison,
) -> None:
    if old == new:  # as most of a changed object: nothing of it has to be looked at
        return
    is_leaf = _is_leaf(shape, mark)
    before, after = (
        {} if is_leaf else {child[0]: child for child in _list_children(shape, mark, value, forms)}
        for value in (old, new)
    )
    for segment in {**before, **after}:
        _, _, inner, inner_mark = after.get(segment) or before[segment]
        one, other = _value_at(before, segment), _value_at(after, segment)
        _compare(inner, inner_mark, one, other, (*path, segment), forms, result)
    if old is _ABSENT:
        result.added.add(path)
    elif new is _ABSENT:
        result.removed.add(path)
    elif is_leaf:
        if forms is None or not _are_written_alike(shape, old, new, forms):
            result.modified.add(path)
    elif not before and not after and (old is None) != (new is None):  # two that are empty
        result.modified.add(path)


def _are_written_alike(shape: str, old: Any, new: Any, forms: Forms) -> bool:
    if old is None or new is None:
        return False
    written = [encode_value(shape, value, forms, "null") for value in (old, new)]
    return bool(written[0] == written[1])


def find_fields(root: str, obj: Any) -> set[Path]:
    """Return the fields that an object of a type says something of."""
    return {*_find_fields(root, "", obj, ())}


def _find_fields(shape: str, mark: str, value: Any, path: Path) -> Iterator[Path]:
    if _is_leaf(shape, mark):
        yield path
        return
    for segment, item, inner, inner_mark in _list_children(shape, mark, value):
        yield from _find_fields(inner, inner_mark, item, (*path, segment))
        if not isinstance(segment, str) or shape.startswith(MAP) or item is None or item == {}:
            yield (*path, segment)


def add_named(root: str, paths: Set[Path]) -> set[Path]:
    """Return fields and all fields of structs that lead to them."""
    named = set(paths)
    for path in paths:
        shape = root
        for end, segment in enumerate(path[:-1], 1):
            fields = schema.types().get(shape)
            if fields is None or not isinstance(segment, str):
                shape = shape.removeprefix(LIST).removeprefix(MAP)
            elif segment in fields:
                named.add(path[:end])
                shape = fields[segment]
            else:
                break
    return named


def find_mark(shape: str, field: str) -> str:
    """Return ``set`` or ``map:`` and keys if the items of a list have owners of their own."""
    mark = _load_marks().get(shape, {}).get(field, "")
    return "" if mark == "atomic" else mark


def identify_item(mark: str, item: Any) -> str:
    """Return how errors name an item of a list whose items have owners of their own.

    Raises ValueError: nothing identifies it; the text says why.
    """
    if mark == "set":
        for types, why in (
            (dict, "associative list without keys has an element that's a map type"),
            (list, "not supported: associative list with lists as elements"),
            (type(None), "associative list without keys has an element that's an explicit null"),
        ):
            if isinstance(item, types):
                raise ValueError(why)
        return f"[={json.dumps(item, ensure_ascii=False)}]"
    if not isinstance(item, dict):
        element = "a null element" if item is None else "non-map elements"
        raise ValueError(f"associative list with keys may not have {element}")
    key = _key_of(mark, item)
    if not key:
        names = [text.partition("=")[0] for text in mark.removeprefix("map:").split(",")]
        listed = " ".join(map(json.dumps, names))
        text = "associative list with keys has an element that omits all key fields"
        raise ValueError(f"{text} [{listed}] (and doesn't have default values for any key fields)")
    return f"[{format_key(key)}]"


def format_key(key: Key) -> str:
    """Return the fields that identify an item of a list, and their values."""
    return ",".join(f"{field}={_show_key(value)}" for field, value in key)


def _show_key(value: Any) -> str:
    """Return a value as structured-merge-diff prints it (``value.ToString``)."""
    if isinstance(value, dict):
        return "".join(f"{field}={_show_key(item)}" for field, item in value.items())
    if isinstance(value, list):
        return f"[{','.join(map(_show_key, value))}]"
    return json.dumps(value, ensure_ascii=False)


def merge(root: str, live: Any, applied: Any) -> Any:
    """Return an object with what is applied to it; nulls are kept."""
    return _merge(root, "", live, applied)


def _merge(shape: str, mark: str, live: Any, applied: Any) -> Any:
    if applied is _ABSENT:
        return clone(live)
    is_empty = not applied and (not live or live is _ABSENT)
    if is_empty or _is_leaf(shape, mark):
        return clone(applied)
    before, after = (
        {child[0]: child for child in _list_children(shape, mark, value)}
        for value in (live, applied)
    )
    is_list = shape.startswith(LIST)
    order = _merge_orders([*before], [*after]) if is_list else [*{**before, **after}]
    merged = {}
    for segment in order:
        _, _, inner, inner_mark = after.get(segment) or before[segment]
        one, other = _value_at(before, segment), _value_at(after, segment)
        merged[segment] = _merge(inner, inner_mark, one, other)
    return [*merged.values()] if is_list else merged


def _merge_orders(live: list[Any], applied: list[Any]) -> list[Any]:
    """Return the order of a merged list: that of what is applied, the others where they were."""
    shared = [key for key in applied if key in live]
    order: list[Any] = []
    position = 0
    for key in applied:
        if key in live:
            # Those of the live list that stand before it, unless they are applied, too.
            end = live.index(key)
            order += [k for k in live[position:end] if k not in shared]
            position = max(position, end + 1)
        elif not any(k in shared for k in applied[applied.index(key) :]):
            order += [k for k in live[position:] if k not in shared]
            position = len(live)
        order.append(key)
    return order + [k for k in live[position:] if k not in shared]


def remove(root: str, obj: Any, paths: Set[Path]) -> Any:
    """Return an object without some fields."""
    leading = {path[:end] for path in paths for end in range(len(path))}
    return _remove(root, "", obj, (), paths, leading)


def _remove(
    shape: str, mark: str, value: Any, path: Path, gone: Set[Path], leading: Set[Path]
) -> Any:
    if path not in leading:
        return value
    if _is_leaf(shape, mark):
        return None if isinstance(value, dict | list) else value
    kept = {
        segment: _remove(inner, inner_mark, item, (*path, segment), gone, leading)
        for segment, item, inner, inner_mark in _list_children(shape, mark, value)
        if (*path, segment) not in gone
    }
    return ([*kept.values()] if shape.startswith(LIST) else kept) or None


def encode_fields(paths: Set[Path]) -> dict[str, Any]:
    """Return fields as ``fieldsV1`` of a managed field's entry."""
    encoded: dict[str, Any] = {}
    leading = {path[:end] for path in paths for end in range(len(path))}
    for texts, path in sorted(([*map(_encode_segment, path)], path) for path in paths):
        node = encoded
        for text in texts:
            node = node.setdefault(text, {})
        if path in leading:
            node["."] = {}
    return encoded


def _encode_segment(segment: str | Key) -> str:
    if isinstance(segment, str):
        return f"f:{segment}"
    if segment and not segment[0][0]:
        return f"v:{json.dumps(segment[0][1], ensure_ascii=False)}"
    return f"k:{json.dumps(dict(segment), separators=(',', ':'), ensure_ascii=False)}"


def decode_fields(encoded: Mapping[str, Any]) -> Iterator[Path]:
    """Yield the fields of ``fieldsV1``. Raises ValueError or TypeError: it is none."""
    for text, inner in encoded.items():
        kind, colon, name = text.partition(":")
        segment: str | Key
        if text == ".":
            continue
        if kind == "f" and colon:
            segment = name
        elif kind == "v":
            segment = (("", json.loads(name)),)
        elif kind == "k":
            segment = tuple(sorted(json.loads(name).items()))
        else:
            raise ValueError(text)
        if not inner or "." in inner:
            yield (segment,)
        for path in decode_fields(inner):
            yield (segment, *path)
