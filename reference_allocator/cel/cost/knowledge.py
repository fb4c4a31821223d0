"""What an expression's text tells about sizes, which is what its cost depends on.

Sizes are known of literals, of results whose function says how large they are, and of what can be
reached from a variable by a path (cel-go ``checker/cost.go``, ``computeSize`` and ``EntrySize``).
"""

from __future__ import annotations

from typing import Final, NamedTuple

from reference_allocator.cel.ast import Ident, ListExpr, Literal, MapExpr, Node
from reference_allocator.cel.cost.common import UNKNOWN, Range, device_size, fixed
from reference_allocator.cel.cost.functions import Operand
from reference_allocator.cel.parser.macros import ACCUMULATOR
from reference_allocator.cel.types import CelType

_ONE: Final = fixed(1)
_SHARED: Final = 3
"""The length of a path whose Go slice has room for one more: there the paths of a fold's key and
value share memory, and the key has the value's size (``pushIterKey``, ``pushIterValue``)."""
_SCALARS: Final = frozenset({"bool", "double", "duration", "int", "timestamp", "uint"})


class Entries(NamedTuple):
    """Sizes of the keys and values of a list or map."""

    kind: str
    key: Range
    value: Range


class Local(NamedTuple):
    """A variable of a fold."""

    path: tuple[str, ...]
    size: Range | None
    entries: Entries | None


def _is_scalar(checked: CelType) -> bool:
    if checked.kind in _SCALARS:
        return True
    return checked.name == "optional_type" and _is_scalar(checked.params[0])


def union(first: Entries | None, second: Entries | None) -> Entries | None:
    """The sizes of entries that may be of either."""
    if first is None or second is None:
        return None
    return Entries(first.kind, first.key.union(second.key), first.value.union(second.value))


class Knowledge:
    """What is known about the nodes of one expression so far."""

    def __init__(self) -> None:
        self.paths: dict[int, tuple[str, ...]] = {}
        self.sizes: dict[int, Range] = {}
        self.entries: dict[int, Entries] = {}
        self.locals: dict[str, list[Local]] = {}

    def local(self, node: Node) -> Local | None:
        """The variable of a fold that a name stands for."""
        if isinstance(node, Ident) and self.locals.get(node.name):
            return self.locals[node.name][-1]
        return None

    def path(self, node: Node) -> tuple[str, ...]:
        """How to get from a variable to the value."""
        local = self.local(node)
        return self.paths.get(id(node), ()) if local is None else local.path

    def size(self, node: Node) -> Range | None:
        """Its size, as far as the text tells."""
        known = self.sizes.get(id(node))
        if known is not None:
            return known
        if isinstance(node, Literal):
            return fixed(len(node.value) if isinstance(node.value, (str, bytes)) else 1)
        if isinstance(node, ListExpr):
            return fixed(len(node.elements))
        if isinstance(node, MapExpr):
            return fixed(len(node.entries))
        found = device_size(self.path(node))
        if found is not None:
            self.sizes[id(node)] = found
            return found
        if _is_scalar(node.type):
            return _ONE
        local = self.local(node)
        return None if local is None else local.size

    def size_or_unknown(self, node: Node) -> Range:
        return self.size(node) or UNKNOWN

    def entry_sizes(self, node: Node) -> Entries | None:
        """Sizes of the entries of a list or map."""
        known = self.entries.get(id(node))
        if known is not None:
            return known
        local = self.local(node)
        return None if local is None else local.entries

    def operand(self, node: Node) -> Operand:
        path = self.path(node)
        if path and path[0] == ACCUMULATOR:
            path = ()
        return Operand(path, node.type, node, self.size(node))

    def push(self, name: str, local: Local) -> None:
        self.locals.setdefault(name, []).append(local)

    def push_value(self, name: str, node: Node) -> None:
        """Declare a variable that is the value of an expression."""
        self.push(name, Local(self.path(node), self.size(node), self.entry_sizes(node)))

    def push_part(self, name: str, node: Node, *, key: bool, two: bool) -> None:
        """A fold's variable: the key or value of an entry, or what a single one stands for."""
        entries = self.entry_sizes(node)
        kind = node.type.kind if entries is None else entries.kind
        is_list = kind == "list"
        if not two:
            key = not is_list
        size = None
        if entries is not None:
            size = entries.key if key else entries.value
        names = ("@indices", "@items") if is_list else ("@keys", "@values")
        part = names[0 if key else 1]
        path = self.path(node)
        if two and key and len(path) == _SHARED:
            part = names[1]
        self.push(name, Local((*path, part), size, None))

    def copy(self, target: Node, source: Node) -> None:
        """What is known of one expression holds for another."""
        size, entries = self.size(source), self.entry_sizes(source)
        if size is not None:
            self.sizes[id(target)] = size
        if entries is not None:
            self.entries[id(target)] = entries
