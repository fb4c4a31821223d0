"""Do the CEL expressions of a scenario compile: its expectations', and its devices' selectors?

Whether an expression is right for the versions of Kubernetes that a target may have is not asked:
the newest is taken, with every feature.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from conformance.scenario.documents.validate import hint, nearest
from conformance.scenario.documents.yamlfile import PathTuple, Problem, walk
from conformance.scenario.driver.variables import VARIABLE
from reference_allocator.api import schema

_PLACEHOLDER = "x"
"""Is part of a string, of a key or of a name, wherever a variable may be."""
_STRING = re.compile(r"'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\"")
_CHAIN = re.compile(r"(?<![\w.])(has\()?object((?:\.[A-Za-z_]\w*|\[\d+\])+)")
_ERROR = re.compile(r"ERROR: <input>:(\d+):(\d+): (.*)")
_PART = re.compile(r"\.([A-Za-z_]\w*)|\[\d+\]")


def condition_problems(
    cel: Sequence[str], variables: Mapping[str, str | None], path: PathTuple
) -> Iterator[Problem]:
    """Problems of an expectation's conditions; ``object`` is checked by its type, if known."""
    root = variables.get("object")
    for index, expression in enumerate(cel):
        place = (*path, index) if len(cel) > 1 else path
        complete = _complete(expression)
        if complete is None:
            continue
        # The compiler is only loaded where there are expressions.
        from reference_allocator.cel import DYN, CelCompileError, compile_expression

        try:
            compile_expression(complete, dict.fromkeys(variables, DYN))
        except CelCompileError as error:
            yield _problem(place, str(error))
        else:
            if root is not None:
                yield from _object_fields(complete, root, place)


def _object_fields(expression: str, root: str, path: PathTuple) -> Iterator[Problem]:
    """Fields that are read from ``object`` and that its kind does not have."""
    for chain in _CHAIN.finditer(_STRING.sub("''", expression)):
        shape = root
        for part in _PART.finditer(chain[2]):
            field = part[1]
            if field is None and shape.startswith(schema.LIST):
                shape = shape[len(schema.LIST) :]
            elif field is None or shape not in schema.types():
                break  # a function, or data without known fields
            elif field not in schema.types()[shape]:
                known = schema.types()[shape]
                # That a field of another version is not there can be what is asked.
                if not chain[1] or nearest(field, known) is not None:
                    text = f"object{chain[2]}: there is no field {field!r}; {hint(field, known)}"
                    yield Problem(path, text)
                break
            else:
                shape = schema.types()[shape][field]


def selector_problems(value: Any, path: PathTuple) -> Iterator[Problem]:
    """Problems of ``cel: {expression: ...}`` in classes and requests, wherever in a manifest."""
    for place, expression in walk(value, path):
        if place[-2:] == ("cel", "expression") and isinstance(expression, str):
            yield from expression_problems(expression, place)


def expression_problems(expression: str, path: PathTuple) -> Iterator[Problem]:
    """Problems of a selector's expression, over ``device``."""
    from reference_allocator.cel import CelFeatures, validate_new_expression

    complete = _complete(expression)
    if complete is not None:
        features = CelFeatures(consumable_capacity=True, list_type_attributes=True, stored=False)
        for problem in validate_new_expression(complete, features):
            yield _problem(path, problem.message)


def _complete(expression: str) -> str | None:
    """The expression with something for its variables; None if one may be any expression."""
    whole = ("selector.", "worker.selector")
    if any(match[1].startswith(whole) for match in VARIABLE.finditer(expression)):
        return None
    return VARIABLE.sub(_PLACEHOLDER, expression)


def _problem(path: PathTuple, message: str) -> Problem:
    error = _ERROR.search(message)
    if error is None:
        return Problem(path, f"is not valid CEL: {message.splitlines()[0]}")
    line, column, text = error.groups()
    return Problem(path, f"is not valid CEL: {text} (line {line}, column {column} of it)")
