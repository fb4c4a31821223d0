"""Field errors in the API server's own words, the Status that carries them, and common checks.

The texts follow k8s.io/apimachinery/pkg/util/validation/field/errors.go and
k8s.io/apimachinery/pkg/api/errors: a scenario that expects a message must see the same one here.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import Any

from kube.errors import ApiError, Cause
from kubesim.resources import Kind
from reference_allocator.api.quoting import go_quote

_GO_JSON_ESCAPES = str.maketrans({"<": "\\u003c", ">": "\\u003e", "&": "\\u0026"})


@dataclass(frozen=True, slots=True)
class FieldError:
    """One violated rule: ``path`` in the object, the cause's ``reason`` and the text after it.

    ``in_full``: the errors in its place until 1.34, which looks into too many items, too.
    """

    path: str
    reason: str
    body: str
    in_full: Callable[[], Iterable[FieldError]] | None = field(default=None, compare=False)

    def __str__(self) -> str:
        return f"{self.path}: {self.body}"


Check = Callable[[Any, str], Iterator[FieldError]]
"""From a value (empty where there is none) and its path to what is wrong with it."""


def required(path: str, detail: str = "") -> FieldError:
    """Return the error of a value that must be there and is not."""
    return FieldError(path, "FieldValueRequired", _body("Required value", detail))


def forbidden(path: str, detail: str) -> FieldError:
    """Return the error of a value that is not permitted in this situation."""
    return FieldError(path, "FieldValueForbidden", _body("Forbidden", detail))


def invalid(path: str, value: Any, detail: str) -> FieldError:
    """Return the error of a malformed value."""
    return FieldError(
        path, "FieldValueInvalid", _body(f"Invalid value: {show_value(value)}", detail)
    )


def duplicate(path: str, value: Any) -> FieldError:
    """Return the error of a value that must be unique and is not."""
    return FieldError(path, "FieldValueDuplicate", f"Duplicate value: {show_value(value)}")


def not_found(path: str, value: Any, detail: str = "") -> FieldError:
    """Return the error of a reference to something that is not there."""
    return FieldError(path, "FieldValueNotFound", _body(f"Not found: {show_value(value)}", detail))


def not_supported(path: str, value: Any, supported: Sequence[str]) -> FieldError:
    """Return the error of a value that is not one of an enumeration's."""
    listed = ", ".join(f'"{item}"' for item in supported)
    body = _body(f"Unsupported value: {show_value(value)}", f"supported values: {listed}")
    return FieldError(path, "FieldValueNotSupported", body)


def too_long(path: str, limit: int) -> FieldError:
    """Return the error of a string of more than ``limit`` bytes."""
    return FieldError(path, "FieldValueTooLong", f"Too long: may not be more than {limit} bytes")


def too_many(path: str, count: int, limit: int) -> FieldError:
    """Return the error of a list of more than ``limit`` items."""
    return FieldError(
        path, "FieldValueTooMany", f"Too many: {count}: must have at most {limit} items"
    )


def check_one_of(
    present: Collection[str], choices: Sequence[str], path: str
) -> Iterator[FieldError]:
    """Check that one of the fields of a union is there (declarative validation's ``Union``)."""
    found = [field for field in choices if field in present]
    if len(found) == 1:
        return
    listed = ", ".join(f"`{field}`" for field in choices)
    if not found:
        yield invalid(path, "", f"must specify one of: {listed}")
    else:
        yield invalid(path, f"{{{', '.join(found)}}}", f"must specify exactly one of: {listed}")


def invalid_status(kind: Kind, name: str, errors: Sequence[FieldError]) -> ApiError:
    """Return 422 Invalid with one cause for each field error of an object."""
    return new_invalid(kind.name, kind.group, name, errors)


def new_invalid(kind: str, group: str, name: str, errors: Sequence[FieldError]) -> ApiError:
    """Return 422 Invalid as ``apierrors.NewInvalid`` does; kind and group may be empty."""
    texts = list(dict.fromkeys(str(error) for error in errors))
    summary = texts[0] if len(texts) == 1 else f"[{', '.join(texts)}]"
    group_kind = f"{kind}.{group}" if group else kind
    named = {"name": name, "group": group, "kind": kind}
    return ApiError(
        422,
        "Invalid",
        f'{group_kind} "{name}" is invalid: {summary}',
        [Cause(error.path, error.reason, error.body) for error in errors],
        {field: value for field, value in named.items() if value},
    )


def check_fields(
    obj: Mapping[str, Any], path: str, checks: Mapping[str, Check]
) -> Iterator[FieldError]:
    """Check each of these fields of an object, in their order."""
    for name, check in checks.items():
        yield from check(obj.get(name) or "", f"{path}.{name}")


def require(check: Check) -> Check:
    """Return a check of a value that must be there."""

    def checked(value: Any, path: str) -> Iterator[FieldError]:
        yield from check(value, path) if value else [required(path)]

    return checked


def accept_any(_value: Any, _path: str) -> Iterator[FieldError]:
    """Accept any value: a check for `require`."""
    yield from ()


def one_of(*supported: str) -> Check:
    """Return a check of a value that must be there, and one of an enumeration's."""

    def checked(value: Any, path: str) -> Iterator[FieldError]:
        if value not in supported:
            yield not_supported(path, value, supported)

    return require(checked)


def check_each(items: Sequence[Any], limit: int, check: Check, path: str) -> Iterator[FieldError]:
    """Check every item of a list that may have ``limit`` of them."""

    def check_items() -> Iterator[FieldError]:
        for index, item in enumerate(items):
            yield from check(item, f"{path}[{index}]")

    if len(items) <= limit:
        yield from check_items()
        return
    error = too_many(path, len(items), limit)
    yield replace(error, in_full=lambda: chain(check_items(), [error]))


def check_unique(
    items: Sequence[Any],
    limit: int,
    check: Check,
    path: str,
    by: str | Callable[[Any], Hashable] = "name",
    show: Callable[[Any], Any] | None = None,
) -> Iterator[FieldError]:
    """Check every item of a list with unique keys.

    Args:
        by: the field that is the key, or what makes it of an item.
        show: what a duplicate's error prints of an item; its key if None.
    """

    def find_duplicates() -> Iterator[FieldError]:
        keys: set[Hashable] = set()
        for index, item in enumerate(items):
            key = by(item) if callable(by) else item.get(by) or ""
            if key in keys:
                yield duplicate(f"{path}[{index}]", key if show is None else show(item))
            keys.add(key)

    errors = check_each(items, limit, check, path)
    if len(items) <= limit:
        yield from chain(errors, find_duplicates())
        return
    (error,) = errors
    yield replace(error, in_full=lambda: chain(list_in_full([error]), find_duplicates()))


def list_in_full(errors: Iterable[FieldError]) -> Iterator[FieldError]:
    """Yield errors with those of items of which there are too many (until 1.34)."""
    for error in errors:
        if error.in_full is None:
            yield error
        else:
            yield from list_in_full(error.in_full())


def _body(start: str, detail: str) -> str:
    return f"{start}: {detail}" if detail else start


def show_value(value: Any) -> str:
    """Return a value as Go prints it: a quoted string, or compact JSON with <, > and & escaped."""
    if isinstance(value, str):
        return go_quote(value)
    text = json.dumps(value, separators=(",", ":"), ensure_ascii=False)
    return text.translate(_GO_JSON_ESCAPES)
