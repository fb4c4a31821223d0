"""``${captured.NAME.path}``: in a step, a value of an object that an earlier step captured.

It is known only while the scenario runs, so it stays in place when all other variables are
replaced, and is put in when its step begins.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final, TypeVar

from pydantic import BaseModel

from conformance.scenario.base import Obj
from conformance.scenario.driver.variables import CAPTURED, VARIABLE, substitute

M = TypeVar("M", bound=BaseModel)

PART: Final = re.compile(r"\.(?P<field>\w+)|\[(?P<index>\d+)\]|\[['\"](?P<key>.*?)['\"]\]")
"""A step from a value to one in it: ``.field``, ``[0]`` or ``['key']``."""


def filled(step: M, captured: Mapping[str, Obj]) -> tuple[M, dict[str, str]]:
    """A step with what it has of captured objects; and text -> variable, of each that it is.

    Raises LookupError: an object has no such value; its text says which.
    """
    found: dict[str, str] = {}

    def value(name: str) -> Any:
        given = f"${{{name}}}"
        if not name.startswith(f"{CAPTURED}."):
            return given
        item = looked_up(name, captured)
        if isinstance(item, str):
            found[item] = given
        return item

    return _replaced(step, value), found


def looked_up(name: str, captured: Mapping[str, Obj]) -> Any:
    """What ``captured.NAME.path`` stands for. Raises LookupError: it is not there."""
    _, owner, path = split(name)
    item: Any = captured[owner]
    for part in PART.finditer(path):
        key: Any = int(part["index"]) if part["index"] is not None else part["field"] or part["key"]
        there = (
            key < len(item)
            if isinstance(item, list) and isinstance(key, int)
            else (isinstance(item, dict) and key in item)
        )
        if not there:
            raise LookupError(f"the captured {owner} has no {path[1:]}: {part[0]} is not there")
        item = item[key]
    return item


def split(name: str) -> tuple[str, str, str]:
    """``captured``, the name, and the path as it would follow a variable of CEL."""
    group, _, rest = name.partition(".")
    owner = re.match(r"\w*", rest)
    return group, owner[0] if owner else "", rest[owner.end() if owner else 0 :]


def names_in(text: str) -> Iterator[str]:
    """The captured values that a text has, as ``captured.NAME.path``."""
    yield from (m[1] for m in VARIABLE.finditer(text) if m[1].startswith(f"{CAPTURED}."))


def _replaced(value: Any, lookup: Callable[[str], Any]) -> Any:
    if isinstance(value, BaseModel):
        fields = {name: getattr(value, name) for name in value.model_fields_set}
        changed = {
            name: new for name, old in fields.items() if (new := _replaced(old, lookup)) is not old
        }
        return value.model_copy(update=changed) if changed else value
    if isinstance(value, dict):
        new = {substitute(key, lookup): _replaced(item, lookup) for key, item in value.items()}
        same = all(new.get(key) is item for key, item in value.items())
        return value if same else new
    if isinstance(value, list | tuple):
        items = [_replaced(item, lookup) for item in value]
        same = all(one is other for one, other in zip(items, value, strict=True))
        return value if same else type(value)(items)
    return substitute(value, lookup)
