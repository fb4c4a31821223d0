"""What becomes of a selector in which an attribute is missing, without the slow evaluator.

A missing attribute is the one error that is ordinary: devices of several kinds share a class. The
generated function only knows that something went wrong. Here the terms of ``&&``, ``||`` and ``!``
are generated one by one, so that an error can be absorbed by another term as CEL demands
(``interpreter/interpretable.go``, evalOr and evalAnd). Only terms whose one possible KeyError is a
missing attribute or capacity are dealt with; everything else is left to the interpreter.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from reference_allocator.cel.ast import Call, Ident, Literal, Node, Select
from reference_allocator.cel.codegen.generator import generate
from reference_allocator.cel.codegen.support import UndecidedError

Recovery = Callable[[Any], bool | str]
"""The value for a device, or the name of the attribute that is missing."""

_PLAIN: Final = frozenset(
    [
        "_!=_",
        "_<=_",
        "_<_",
        "_==_",
        "_>=_",
        "_>_",
        "compareTo",
        "contains",
        "endsWith",
        "isGreaterThan",
        "isLessThan",
        "matches",
        "quantity",
        "semver",
        "startsWith",
    ]
)


def _is_map_of_device(node: Node) -> bool:
    """Whether it is ``device.attributes[...]`` or ``device.capacity[...]`` with a plain domain."""
    return (
        isinstance(node, Call)
        and node.function == "_[_]"
        and isinstance(node.args[0], Select)
        and _is_device(node.args[0].operand)
        and (isinstance(node.args[1], Literal) or _is_plain(node.args[1]))
    )


def _is_device(node: Node) -> bool:
    return isinstance(node, Ident) and not node.local and node.constant is None


def _is_plain(node: Node) -> bool:
    """Whether a KeyError of its generated code can only be a missing attribute or capacity."""
    match node:
        case Literal():
            return True
        case Select():
            if node.constant is not None:
                return False
            return _is_device(node.operand) or _is_map_of_device(node.operand)
        case Call(function="_[_]"):
            key = node.args[1]
            text = isinstance(key, Literal) and key.value.__class__ is str
            return text and _is_map_of_device(node.args[0])
        case Call():
            parts = node.args if node.target is None else [node.target, *node.args]
            return node.function in _PLAIN and all(map(_is_plain, parts))
        case _:
            return False


def recovery(node: Node) -> Recovery | None:
    """The recovery of a checked selector, or None where the interpreter has to decide."""
    if isinstance(node, Call) and node.function in ("_&&_", "_||_"):
        terms = [recovery(term) for term in node.args]
        found = [term for term in terms if term is not None]
        return _chain(found, node.function == "_||_") if len(found) == len(terms) else None
    if isinstance(node, Call) and node.function == "!_":
        inner = recovery(node.args[0])
        return None if inner is None else _negation(inner)
    evaluate = generate(node, device=True)[0] if _is_plain(node) else None
    return None if evaluate is None else _term(evaluate)


def _term(evaluate: Callable[[Any], Any]) -> Recovery:
    def term(device: Any) -> bool | str:
        try:
            value = evaluate(device)
        except KeyError as error:
            name = error.args[0]
            if name.__class__ is str:
                return str(name)
            raise UndecidedError from None
        except Exception:  # noqa: BLE001 - the interpreter finds out what it was
            raise UndecidedError from None
        if value is True or value is False:
            return bool(value)
        raise UndecidedError

    return term


def _negation(inner: Recovery) -> Recovery:
    def negation(device: Any) -> bool | str:
        value = inner(device)
        return value if value.__class__ is str else not value

    return negation


def _chain(terms: list[Recovery], decides: bool) -> Recovery:
    def chain(device: Any) -> bool | str:
        missing: str | None = None
        for term in terms:
            value = term(device)
            if value is decides:
                return value
            if missing is None and value.__class__ is str:
                missing = str(value)
        return not decides if missing is None else missing

    return chain
