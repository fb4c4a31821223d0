"""The syntax tree: what the parser produces, the checker annotates and both evaluators read.

It has cel-go's node kinds (``common/ast``): macros are already expanded, operators are calls with
names such as ``_==_``. Terms of one ``&&`` or ``||`` chain are kept in one call, so that a chain as
long as the API allows does not nest.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from reference_allocator.cel.types import CelType

NOT_FOLDED: Final = object()


class Node:
    """An expression.

    Attributes:
        offset: where an error about it is reported, in code points from the start.
        levels: nested binary operators and members, as the parser counts them.
        nesting: nested expressions, likewise.
        relations: rules of that name of cel-go's grammar that are open at once in it.
        calcs: likewise.
        type: its static type, set by the checker.
        folded: its value where cel-go computes it when the program is built; set by
            ``constants.plan``.
        sign: ``!`` or ``-`` while it is the operand of a chain of signs; parser only.
    """

    __slots__ = ("calcs", "folded", "levels", "nesting", "offset", "relations", "sign", "type")

    type: CelType

    def __init__(self, offset: int) -> None:
        self.offset = offset
        self.levels = 0
        self.nesting = 0
        self.relations = 1
        self.calcs = 1
        self.sign = ""
        self.folded: Any = NOT_FOLDED


class Literal(Node):
    """A constant; ``value`` is a value as defined by ``runtime.values``."""

    __slots__ = ("value",)

    def __init__(self, offset: int, value: Any) -> None:
        super().__init__(offset)
        self.value = value


class Ident(Node):
    """A name. The checker sets ``local`` (a comprehension's variable) or ``constant`` (a type)."""

    __slots__ = ("constant", "local", "name")

    def __init__(self, offset: int, name: str) -> None:
        super().__init__(offset)
        self.name = name
        self.local = False
        self.constant: Any = None


class Select(Node):
    """``operand.field``, or its presence test. ``constant`` is set when it names a type."""

    __slots__ = ("constant", "field", "operand", "test_only")

    def __init__(self, offset: int, operand: Node, field: str, *, test_only: bool = False) -> None:
        super().__init__(offset)
        self.operand = operand
        self.field = field
        self.test_only = test_only
        self.constant: Any = None


class Call(Node):
    """A function, operator or method (``target``) call.

    ``overloads`` is set by the checker; ``members`` by the planner: what ``in`` looks for among
    constants.
    """

    __slots__ = ("args", "function", "members", "overloads", "target")

    def __init__(
        self, offset: int, function: str, args: list[Node], target: Node | None = None
    ) -> None:
        super().__init__(offset)
        self.function = function
        self.args = args
        self.target = target
        self.overloads: tuple[str, ...] = ()
        self.members: frozenset[Any] | None = None


class ListExpr(Node):
    """``[a, ?b]``; ``optional`` holds the indices of elements with a question mark."""

    __slots__ = ("elements", "optional")

    def __init__(self, offset: int, elements: list[Node], optional: frozenset[int]) -> None:
        super().__init__(offset)
        self.elements = elements
        self.optional = optional


class Entry:
    """``?key: value`` of a map, or a field of a message when ``key`` is a literal string."""

    __slots__ = ("key", "offset", "optional", "value")

    def __init__(self, offset: int, key: Node, value: Node, *, optional: bool) -> None:
        self.offset = offset
        self.key = key
        self.value = value
        self.optional = optional


class MapExpr(Node):
    """``{key: value}``."""

    __slots__ = ("entries",)

    def __init__(self, offset: int, entries: list[Entry]) -> None:
        super().__init__(offset)
        self.entries = entries


class StructExpr(Node):
    """``Type{field: value}``."""

    __slots__ = ("entries", "type_name")

    def __init__(self, offset: int, type_name: str, entries: list[Entry]) -> None:
        super().__init__(offset)
        self.type_name = type_name
        self.entries = entries


class Comprehension(Node):
    """A fold, as every macro but ``has`` becomes one.

    ``macro`` and ``parts`` say which macro it came from and with which of its arguments, so that
    generated code can use Python's own loops: ``parts`` is (predicate,), (transform,) or
    (predicate, transform) of the macro, the body for ``bind``.
    """

    __slots__ = (
        "accu_init",
        "accu_var",
        "condition",
        "iter_range",
        "iter_var",
        "iter_var2",
        "macro",
        "parts",
        "result",
        "step",
    )

    def __init__(
        self,
        offset: int,
        macro: str,
        parts: tuple[Node, ...],
        *,
        iter_range: Node,
        iter_vars: tuple[str, str],
        accu: tuple[str, Node],
        condition: Node,
        step: Node,
        result: Node,
    ) -> None:
        super().__init__(offset)
        self.macro = macro
        self.parts = parts
        self.iter_range = iter_range
        self.iter_var, self.iter_var2 = iter_vars
        self.accu_var, self.accu_init = accu
        self.condition = condition
        self.step = step
        self.result = result
