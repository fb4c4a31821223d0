"""How Go's messages name values: by cel-go's type for them, or by the Go value in it."""

from __future__ import annotations

from typing import Any, Final

from reference_allocator.cel.runtime.values import Growing, type_name

_NAMES: Final = {
    "bool": ("types.Bool", "bool"),
    "bytes": ("types.Bytes", "[]uint8"),
    "double": ("types.Double", "float64"),
    "google.protobuf.Duration": ("types.Duration", "time.Duration"),
    "google.protobuf.Timestamp": ("types.Timestamp", "time.Time"),
    "int": ("types.Int", "int64"),
    "kubernetes.NamedFormat": ("cel.Format", "cel.Format"),
    "kubernetes.Quantity": ("cel.Quantity", "*resource.Quantity"),
    "kubernetes.Semver": ("cel.Semver", "semver.Version"),
    "kubernetes.URL": ("cel.URL", "*url.URL"),
    "list": ("*types.baseList", "[]ref.Val"),
    "map": ("*types.baseMap", "map[ref.Val]ref.Val"),
    "net.CIDR": ("cel.CIDR", "netip.Prefix"),
    "net.IP": ("cel.IP", "netip.Addr"),
    "null_type": ("types.Null", "structpb.NullValue"),
    "optional_type": ("*types.Optional", "ref.Val"),
    "string": ("types.String", "string"),
    "type": ("*types.Type", "string"),
    "uint": ("types.Uint", "uint64"),
}


def go_type(value: Any) -> str:
    """The type that cel-go has for a value, such as ``types.Int``."""
    if value.__class__ is Growing:
        return "*types.mutableList"
    return _NAMES[type_name(value)][0]


def go_value(value: Any) -> str:
    """The Go type of what a value holds, such as ``int64``."""
    name = type_name(value)
    return _NAMES[name][1] if name in _NAMES else name
