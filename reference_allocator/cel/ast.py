"""The syntax tree, which the parser produces, the checker annotates and the interpreter reads.

It has cel-go's node kinds (``common/ast``): macros are already expanded, operators are calls with
names such as ``_==_``. Terms of one ``&&`` or ``||`` chain are kept in one call, so that a chain as
long as the API allows does not nest.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from reference_allocator.cel.types import CelType

NOT_FOLDED: Final = object()


@dataclass(slots=True, eq=False, repr=False)
class Node:
    """An expression.

    Attributes:
        offset: where an error about it is reported, in code points from the start.
        levels: the depth of nested binary operators and members, as the parser counts them.
        nesting: the depth of nested expressions, as the parser counts them.
        relations: how many rules of that name of cel-go's grammar are open at once in it.
        calcs: how many rules of that name are open at once in it.
        type: its static type, set by the checker.
        folded: its value where cel-go computes it when the program is built; set by
            ``planner.plan``.
        sign: ``!`` or ``-`` while it is the operand of a chain of signs; parser only.
    """

    offset: int
    levels: int = field(default=0, init=False)
    nesting: int = field(default=0, init=False)
    relations: int = field(default=1, init=False)
    calcs: int = field(default=1, init=False)
    type: CelType = field(init=False)
    folded: Any = field(default=NOT_FOLDED, init=False)
    sign: str = field(default="", init=False)


@dataclass(slots=True, eq=False, repr=False)
class Literal(Node):
    """A constant; ``value`` is a value as defined by ``runtime.values``."""

    value: Any


@dataclass(slots=True, eq=False, repr=False)
class Ident(Node):
    """A name. The checker sets ``local`` (a comprehension's variable) or ``constant`` (a type)."""

    name: str
    local: bool = field(default=False, init=False)
    constant: Any = field(default=None, init=False)


@dataclass(slots=True, eq=False, repr=False)
class Select(Node):
    """``operand.field``, or its presence test. ``constant`` is set when it names a type."""

    operand: Node
    field: str
    test_only: bool = False
    constant: Any = None


@dataclass(slots=True, eq=False, repr=False)
class Call(Node):
    """A function, operator or method (``target``) call.

    The checker sets ``overloads``; the planner ``implementation``, and ``members``: the constants
    among which ``in`` looks.
    """

    function: str
    args: list[Node]
    target: Node | None = None
    overloads: tuple[str, ...] = ()
    implementation: Any = None
    members: frozenset[Any] | None = None


@dataclass(slots=True, eq=False, repr=False)
class ListExpr(Node):
    """``[a, ?b]``; ``optional`` holds the indices of elements with a question mark."""

    elements: list[Node]
    optional: frozenset[int]


@dataclass(slots=True, eq=False, repr=False)
class Entry:
    """``?key: value`` of a map, or a field of a message when ``key`` is a literal string."""

    offset: int
    key: Node
    value: Node
    optional: bool


@dataclass(slots=True, eq=False, repr=False)
class MapExpr(Node):
    """``{key: value}``."""

    entries: list[Entry]


@dataclass(slots=True, eq=False, repr=False)
class StructExpr(Node):
    """``Type{field: value}``."""

    type_name: str
    entries: list[Entry]


@dataclass(slots=True, eq=False, repr=False)
class Comprehension(Node):
    """A fold, as every macro but ``has`` becomes one; ``iter_var2`` may be empty."""

    iter_range: Node
    iter_var: str
    iter_var2: str
    accu_var: str
    accu_init: Node
    condition: Node
    step: Node
    result: Node
