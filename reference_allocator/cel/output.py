"""Conversion of an expression's value to a bool, a device attribute (KEP-6080), or plain data.

Source: ``k8s.io/dynamic-resource-allocation/cel/compile.go``, ``DeviceMatches`` and
``EvaluateDerivedAttribute``.
"""

from __future__ import annotations

from typing import Any, Final

from reference_allocator.cel.errors import CelRuntimeError
from reference_allocator.cel.runtime import values
from reference_allocator.cel.runtime.maps import unmap_key
from reference_allocator.cel.types import CelType

_SCALARS: Final = frozenset({"bool", "int", "string", "any", "dyn", "kubernetes.Semver"})


def to_bool(value: Any) -> bool:
    """Return the result of a selector.

    Raises CelRuntimeError: the value is not a bool (``DeviceMatches``).
    """
    inner = value
    while inner.__class__ is values.Optional and inner.present:
        inner = inner.value
    if inner.__class__ is bool:
        return bool(inner)
    message = f"CEL result of type {values.type_name(value)} could not be converted to bool"
    raise CelRuntimeError(f"{message}: {_explain_no_bool(inner)}")


def _explain_no_bool(value: Any) -> str:
    """Return why a value is no bool, in the words of cel-go's ``ConvertToNative`` methods."""
    name = values.type_name(value)
    if name == "optional_type":
        return "optional.none() dereference"
    if name == "type":
        return "type conversion not supported for 'type'"
    if name in ("int", "uint"):
        return f"unsupported type conversion from '{name}' to bool"
    if name == "string":
        return "unsupported native conversion from string to 'bool'"
    plain = {"double": "Double", "bytes": "Bytes", "list": "list", "map": "map"}
    quoted = name.removeprefix("google.protobuf.") if "." in name else name
    if name.startswith(("kubernetes.", "net.")):
        quoted = values.go_type(value).removeprefix("cel.")
    return f"type conversion error from {plain.get(name, repr(quoted))} to 'bool'"


def to_python(value: Any) -> Any:
    """Return a CEL value as JSON-like Python data."""
    if value is None or value.__class__ in (bool, int, float, str, bytes):
        return value
    if isinstance(value, list):
        return [to_python(item) for item in value]
    if isinstance(value, dict):
        return {unmap_key(key): to_python(item) for key, item in value.items()}
    if isinstance(value, values.UInt):
        return int(value)
    if isinstance(value, values.Optional):
        return to_python(value.value) if value.present else None
    return str(value)


def output_type_error(checked: CelType, *, lists: bool) -> str:
    """Return why an expression of this type cannot be a derived attribute; empty if it can."""
    if checked.name in _SCALARS:
        return ""
    if lists and checked.kind == "list" and checked.params[0].name in _SCALARS:
        return ""
    scalars = "a primitive scalar (string, integer, boolean, semver)"
    allowed = f"{scalars} or a list of these scalars" if lists else scalars
    return f"must evaluate to {allowed}, not {checked.declared}"


class _Nothing:
    """The content of an absent optional."""

    cel_type = "<nil>"


def _unwrap_value(value: Any) -> Any:
    """Return what Go's ``Value()`` gives: an optional's content, a type's name."""
    while value.__class__ is values.Optional:
        value = value.value if value.present else _Nothing()
    return value.name if isinstance(value, values.TypeValue) else value


def to_attribute(value: Any) -> dict[str, Any]:
    """Return the value as a DeviceAttribute of the v1 API, such as ``{"int": 5}``.

    Raises CelRuntimeError: the value has no such form.
    """
    kinds = {"bool": "bool", "int": "int", "string": "string", "kubernetes.Semver": "version"}
    held = _unwrap_value(value)
    name = values.type_name(held)
    if name in kinds:
        return {kinds[name]: str(held) if kinds[name] == "version" else held}
    if value.__class__ is not list:  # Kubernetes does not take a list in an optional for one
        raise CelRuntimeError(f"unsupported CEL return type: {values.go_value(held)}")
    if not value:
        return {"strings": []}
    items = [_unwrap_value(item) for item in value]
    first = values.type_name(items[0])
    if first not in kinds:
        raise CelRuntimeError(f"unsupported list element type: {values.go_value(items[0])}")
    for index, item in enumerate(items):
        if values.type_name(item) != first:
            expected = {"kubernetes.Semver": "semver"}.get(first, first)
            problem = f"expected list element at index {index} to be {expected}"
            raise CelRuntimeError(f"{problem}, got {values.go_value(item)}")
    version = first == "kubernetes.Semver"
    return {f"{kinds[first]}s": [str(item) if version else item for item in items]}
