"""Static types and their unification: the rules by which a type stands where another is expected.

The rules are cel-go's (``checker/types.go``): dyn fits everything, type parameters are bound on
first use and widened to the more general type, null fits messages, durations and the like.
"""

from __future__ import annotations

from typing import Final


class CelType:
    """A type: ``kind`` and, for lists, maps and the like, its parameters.

    ``name`` is what messages show; ``kind`` is ``opaque`` for Kubernetes' and optional types,
    ``struct`` for object types, ``param`` for a type parameter, else the name itself. ``nullable``
    ones (``wrapper(int)``, of protobuf's Int64Value) accept null too; for equality they are the
    type that they wrap, as in cel-go.
    """

    __slots__ = ("_exact", "_hash", "kind", "name", "nullable", "params", "text")

    text: str
    _exact: str

    def __init__(
        self, kind: str, name: str, params: tuple[CelType, ...] = (), *, nullable: bool = False
    ) -> None:
        self.kind = kind
        self.name = name
        self.params = params
        self.nullable = nullable
        own_text = f"wrapper({name})" if nullable else name
        self.text = f"{name}({', '.join(item.text for item in params)})" if params else own_text
        exact = ", ".join(item._exact for item in params)  # noqa: SLF001 - of the same class
        self._exact = f"{name}({exact})" if params else name
        self._hash = hash((kind, self._exact))

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        return (
            isinstance(other, CelType) and self.kind == other.kind and self._exact == other._exact
        )

    def __hash__(self) -> int:
        return self._hash

    def __repr__(self) -> str:
        return self.text

    @property
    def declared(self) -> str:
        """The type as Kubernetes prints it outside of type errors (``google.protobuf.Any``)."""
        name = _DECLARED_NAMES.get(self.kind, self.name)
        if not self.params:
            return f"wrapper({name})" if self.nullable else name
        return f"{name}({', '.join(item.declared for item in self.params)})"


_DECLARED_NAMES = {
    "any": "google.protobuf.Any",
    "duration": "google.protobuf.Duration",
    "timestamp": "google.protobuf.Timestamp",
    "null": "null_type",
}

ANY: Final = CelType("any", "any")
BOOL: Final = CelType("bool", "bool")
BYTES: Final = CelType("bytes", "bytes")
DOUBLE: Final = CelType("double", "double")
DURATION: Final = CelType("duration", "duration")
DYN: Final = CelType("dyn", "dyn")
ERROR: Final = CelType("error", "!error!")
INT: Final = CelType("int", "int")
NULL: Final = CelType("null", "null")
STRING: Final = CelType("string", "string")
TIMESTAMP: Final = CelType("timestamp", "timestamp")
TYPE: Final = CelType("type", "type")
UINT: Final = CelType("uint", "uint")

_NULLABLE: Final = frozenset({"opaque", "struct", "any", "duration", "timestamp"})


def list_of(element: CelType) -> CelType:
    """Return the type of lists of a type."""
    return CelType("list", "list", (element,))


def map_of(key: CelType, value: CelType) -> CelType:
    """Return the type of maps with these types of keys and values."""
    return CelType("map", "map", (key, value))


def optional_of(value: CelType) -> CelType:
    """Return the optional type of a type."""
    return CelType("opaque", "optional_type", (value,))


def type_of(value: CelType) -> CelType:
    """Return the type that a type has as a value, such as ``type(int)``."""
    return CelType("type", "type", (value,))


def struct_type(name: str) -> CelType:
    """Return an object type, such as ``kubernetes.DRADevice``."""
    return CelType("struct", name)


def wrapper_type(primitive: CelType) -> CelType:
    """Return the nullable form of a primitive type, such as ``wrapper(int)``."""
    return CelType(primitive.kind, primitive.name, nullable=True)


def param_type(name: str) -> CelType:
    """Return a type parameter, such as ``T``."""
    return CelType("param", name)


def is_dyn(checked: CelType) -> bool:
    """Return whether only the evaluation can tell the type."""
    return checked.kind in ("dyn", "any")


def is_dyn_or_error(checked: CelType) -> bool:
    """Return whether the type is not known: only the evaluation tells, or an error was reported."""
    return checked.kind in ("dyn", "any", "error")


def _is_nullable(checked: CelType) -> bool:
    return checked.nullable or checked.kind in _NULLABLE


def _less_specific(first: CelType, second: CelType) -> bool:
    """Return whether ``first`` is the same type as ``second`` or a more general one."""
    if is_dyn(first) or first.kind == "param":
        return True
    if is_dyn(second) or second.kind == "param" or first.kind != second.kind:
        return False
    if first.kind == "type":
        return True
    if first.kind in ("list", "map", "opaque"):
        return (
            first.name == second.name
            and len(first.params) == len(second.params)
            and all(map(_less_specific, first.params, second.params))
        )
    return first == second


def join_types(first: CelType, second: CelType) -> CelType:
    """Return the more general of two types that unify."""
    return first if _less_specific(first, second) else second


class Bindings:
    """The types of type parameters, as far as known; parameters are unique per check."""

    def __init__(self) -> None:
        self._bound: dict[str, CelType] = {}
        self._count = 0

    def new_type_var(self) -> CelType:
        """Return a type parameter that no other type has."""
        self._count += 1
        return CelType("param", f"_var{self._count - 1}")

    def is_assignable(self, first: list[CelType], second: list[CelType]) -> bool:
        """Return whether each type of ``first`` fits its partner; only then bind parameters."""
        bound_before = dict(self._bound)
        if self._all_assignable(first, second):
            return True
        self._bound = bound_before
        return False

    def substitute(self, checked: CelType, *, free_to_dyn: bool) -> CelType:
        """Return the type with bound parameters replaced; free ones become dyn if asked for."""
        while checked.kind == "param" and checked.name in self._bound:
            checked = self._bound[checked.name]
        if checked.kind == "param":
            return DYN if free_to_dyn else checked
        if not checked.params:
            return checked
        params = tuple(self.substitute(item, free_to_dyn=free_to_dyn) for item in checked.params)
        return CelType(checked.kind, checked.name, params)

    def _all_assignable(
        self,
        first: list[CelType] | tuple[CelType, ...],
        second: list[CelType] | tuple[CelType, ...],
    ) -> bool:
        return len(first) == len(second) and all(map(self._assignable, first, second))

    def _assignable(self, first: CelType, second: CelType) -> bool:
        if second.kind == "param":
            valid, bound = self._bind_param(first, second)
            if valid:
                return True
            if bound:
                return False
        if first.kind == "param":
            return self._bind_param(second, first)[0]
        if is_dyn_or_error(first) or is_dyn_or_error(second):
            return True
        if first.kind == "null":
            return second.kind == "null" or _is_nullable(second)
        if second.kind == "null":
            return _is_nullable(first)
        if first.kind == "type":
            return second.kind == "type"
        if first.kind in ("list", "map", "opaque"):
            return (
                first.kind == second.kind
                and first.name == second.name
                and self._all_assignable(first.params, second.params)
            )
        return first == second

    def _bind_param(self, candidate: CelType, parameter: CelType) -> tuple[bool, bool]:
        """Return whether a type may stand for a parameter, and whether that was bound before."""
        if candidate == parameter:
            return True, True
        bound = self._bound.get(parameter.name)
        if bound is not None:
            if candidate == bound:
                return True, True
            if self._assignable(candidate, bound):
                wider = join_types(candidate, bound)
                if not self._occurs_in(parameter, wider):
                    self._bound[parameter.name] = wider
                return True, True
            return False, True
        if self._occurs_in(parameter, candidate):
            return False, False
        self._bound[parameter.name] = candidate
        return True, False

    def _occurs_in(self, parameter: CelType, within: CelType) -> bool:
        if parameter == within:
            return True
        if within.kind == "param":
            bound = self._bound.get(within.name)
            return bound is not None and self._occurs_in(parameter, bound)
        return any(self._occurs_in(parameter, item) for item in within.params)
