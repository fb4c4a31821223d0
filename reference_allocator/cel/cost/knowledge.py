"""The sizes that an expression's text tells, on which its cost depends.

Sizes are known of literals, of results whose function says how large they are, and of values that
can be reached from a variable by a path (cel-go ``checker/cost.go``, ``computeSize`` and
``EntrySize``).
"""

from __future__ import annotations

from typing import Final, NamedTuple

from reference_allocator.cel.ast import Ident, ListExpr, Literal, MapExpr, Node
from reference_allocator.cel.cost.common import UNKNOWN, Range, device_size, fixed_range
from reference_allocator.cel.cost.functions import Operand
from reference_allocator.cel.parser.macros import ACCUMULATOR
from reference_allocator.cel.types import CelType

_ONE: Final = fixed_range(1)
_SHARED: Final = 3
"""The length of a path whose Go slice has room for one more: there the paths of a fold's key and
value share memory, and the key has the value's size (``pushIterKey``, ``pushIterValue``)."""
_SCALARS: Final = frozenset({"bool", "double", "duration", "int", "timestamp", "uint"})
_SCALARS_SINCE_1_38: Final = _SCALARS | {"type"}
"""Kinds of types whose values have the size 1 (``isScalar`` of cel-go's checker/cost.go, since 0.33
``computeTypeSize`` of common/cost, which looks into one optional only)."""


class Entries(NamedTuple):
    """The sizes of the keys and values of a list or map, and of the entries of its values.

    Before 1.38 nothing is known of the entries of values.
    """

    kind: str
    key: Range
    value: Range
    of_values: Entries | None = None


class Local(NamedTuple):
    """A variable of a fold."""

    path: tuple[str, ...]
    size: Range | None
    entries: Entries | None


def _is_scalar(checked: CelType, *, since_1_38: bool) -> bool:
    """Return whether all values of a type have the size 1, as those of an optional of one have."""
    scalars = _SCALARS_SINCE_1_38 if since_1_38 else _SCALARS
    if checked.kind in scalars or checked.name != "optional_type":
        return checked.kind in scalars
    inner = checked.params[0]
    return inner.kind in scalars or (not since_1_38 and _is_scalar(inner, since_1_38=False))


def _is_empty(node: Node) -> bool:
    return (isinstance(node, ListExpr) and not node.elements) or (
        isinstance(node, MapExpr) and not node.entries
    )


class Knowledge:
    """The paths and sizes of the nodes of one expression, as far as known.

    Args:
        since_1_38: whether sizes and estimates are cel-go 0.33's, with Kubernetes' sizes of 1.38.

    Attributes:
        paths: id of a node -> how to get from a variable to its value.
        sizes: id of a node -> size.
        entries: id of a node -> sizes of its entries.
        locals: variable of a fold -> its declarations, the innermost last.
    """

    def __init__(self, *, since_1_38: bool) -> None:
        self.since_1_38 = since_1_38
        self.paths: dict[int, tuple[str, ...]] = {}
        self.sizes: dict[int, Range] = {}
        self.entries: dict[int, Entries] = {}
        self.locals: dict[str, list[Local]] = {}

    def find_local(self, node: Node) -> Local | None:
        """Return the variable of a fold that a name stands for; None for other expressions."""
        if isinstance(node, Ident) and self.locals.get(node.name):
            return self.locals[node.name][-1]
        return None

    def path_of(self, node: Node) -> tuple[str, ...]:
        """Return how to get from a variable to the value."""
        local = self.find_local(node)
        return self.paths.get(id(node), ()) if local is None else local.path

    def size_of(self, node: Node) -> Range | None:
        """Return the size of an expression's value, as far as the text tells."""
        size = self.sizes.get(id(node))
        if size is not None:
            return size
        if isinstance(node, Literal):
            return fixed_range(len(node.value) if isinstance(node.value, (str, bytes)) else 1)
        if isinstance(node, ListExpr):
            return fixed_range(len(node.elements))
        if isinstance(node, MapExpr):
            return fixed_range(len(node.entries))
        declared_size = device_size(self.path_of(node))
        if declared_size is not None:
            self.sizes[id(node)] = declared_size
            return declared_size
        local = self.find_local(node)
        known = None if local is None else local.size
        if self.since_1_38 and known is not None:
            return known
        return _ONE if _is_scalar(node.type, since_1_38=self.since_1_38) else known

    def size_or_unknown(self, node: Node) -> Range:
        """Return the size of an expression's value, or the range of all sizes."""
        return self.size_of(node) or UNKNOWN

    def entry_sizes(self, node: Node) -> Entries | None:
        """Return the sizes of the entries of a list or map, as far as known."""
        entries = self.entries.get(id(node))
        if entries is not None:
            return entries
        local = self.find_local(node)
        if local is not None and local.entries is not None:
            return local.entries
        if not self.since_1_38 or _is_empty(node):
            return None
        return self._declared_entries(self.path_of(node), node.type)

    def union_entries(self, first: Entries | None, second: Entries | None) -> Entries | None:
        """Return the sizes of entries that may be of either.

        Before 1.38 they are not known where one is not known; since then what has no entries
        changes nothing (``mergeSizeEstimatePtr`` of common/cost).
        """
        if first is None or second is None:
            return (first or second) if self.since_1_38 else None
        key, value = first.key.union(second.key), first.value.union(second.value)
        return Entries(
            first.kind, key, value, self.union_entries(first.of_values, second.of_values)
        )

    def _declared_entries(self, path: tuple[str, ...], checked: CelType) -> Entries | None:
        """Return the sizes of entries that a value's path and type tell, since 1.38."""
        if checked.kind not in ("list", "map") or not checked.params:
            return None
        value = checked.params[-1]
        value_path = (*path, "@items" if checked.kind == "list" else "@values")
        return Entries(
            checked.kind,
            self._declared_size((*path, "@keys"), checked.params[0]),
            self._declared_size(value_path, value),
            self._declared_entries(value_path, value),
        )

    def _declared_size(self, path: tuple[str, ...], checked: CelType) -> Range:
        scalar = _ONE if _is_scalar(checked, since_1_38=self.since_1_38) else UNKNOWN
        return device_size(path) or scalar

    def make_operand(self, node: Node) -> Operand:
        """Return an argument with what is known about it."""
        path = self.path_of(node)
        if path and path[0] == ACCUMULATOR:
            path = ()
        return Operand(path, node.type, node, self.size_of(node))

    def push_local(self, name: str, local: Local) -> None:
        """Declare a variable of a fold."""
        self.locals.setdefault(name, []).append(local)

    def push_value(self, name: str, node: Node) -> None:
        """Declare a variable that is the value of an expression."""
        self.push_local(name, Local(self.path_of(node), self.size_of(node), self.entry_sizes(node)))

    def push_part(self, name: str, node: Node, *, key: bool, two: bool) -> None:
        """Declare a fold's variable: the key or value of an entry, or the single variable."""
        entries = self.entry_sizes(node)
        kind = node.type.kind if entries is None else entries.kind
        is_list = kind == "list"
        if not two:
            key = not is_list
        size = inner = None
        if entries is not None:
            size = entries.key if key else entries.value
            inner = None if key else entries.of_values
        names = ("@indices", "@items") if is_list else ("@keys", "@values")
        path_step = names[0 if key else 1]
        path = self.path_of(node)
        if two and key and len(path) == _SHARED:
            path_step = names[1]
        self.push_local(name, Local((*path, path_step), size, inner))

    def copy_sizes(self, target: Node, source: Node) -> None:
        """Record for one expression what is known of the sizes of another."""
        size, entries = self.size_of(source), self.entry_sizes(source)
        if size is not None:
            self.sizes[id(target)] = size
        if entries is not None:
            self.entries[id(target)] = entries
