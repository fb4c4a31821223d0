"""``forEach``: an element of a list that stands for one for each value.

``{forEach: {n: 0..3}, name: "gpu-${each.n}"}`` in any list of a scenario is four elements.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

from conformance.errors import UsageError
from conformance.scenario.documents.validate import hint
from conformance.scenario.documents.yamlfile import MAX_TEXT, MAX_VALUES, Problem
from conformance.scenario.driver.variables import substitute
from conformance.scenario.short.tree import Node, made, plain

FIELD: Final = "forEach"
MOST: Final = 300
"""Values of one ``forEach``: claims have up to 256 consumers."""

_GROUP: Final = "each."
_NAME: Final = re.compile(r"[a-z][A-Za-z0-9]*")
_RANGE: Final = re.compile(r"(\d{1,9})\.\.(\d{1,9})")


class RepeatError(UsageError):
    """Something is wrong with a ``forEach``, or with what it repeats."""

    def __init__(self, problem: Problem) -> None:
        super().__init__(problem.message)
        self.problem = problem


class Repeater:
    """Repeats what a document says to; counts, so that no document becomes endless."""

    def __init__(self) -> None:
        self._values = 0
        self._characters = 0

    def repeat(self, node: Node, each: Mapping[str, Any]) -> Node:
        """A value with its ``forEach`` carried out, within those around. Raises RepeatError."""
        self._values += 1
        if self._values > MAX_VALUES:
            raise RepeatError(Problem(node.origin, f"is repeated to more than {MAX_VALUES} values"))
        if isinstance(node.value, dict):
            if FIELD in node.value:
                says = "repeats an element of a list; put it there"
                raise RepeatError(Problem(node.value[FIELD].origin, f"{FIELD} {says}"))
            found = {
                str(self._filled(key, item, each).value): self.repeat(item, each)
                for key, item in node.value.items()
            }
            return Node(found, node.origin)
        if isinstance(node.value, list):
            items = [one for item in node.value for one in self._elements(item, each)]
            return Node(items, node.origin)
        return self._filled(node.value, node, each)

    def _elements(self, item: Node, each: Mapping[str, Any]) -> Iterator[Node]:
        loop = item.get(FIELD)
        if loop is None:
            yield self.repeat(item, each)
            return
        name, values = _loop(self.repeat(loop, each))
        rest = Node({key: one for key, one in item.value.items() if key != FIELD}, item.origin)
        for value in values:
            yield from self._elements(rest, {**each, name: value})

    def _filled(self, text: Any, node: Node, each: Mapping[str, Any]) -> Node:
        """A scalar, or a key, with each ``${each.NAME}`` replaced; the others stay as they are."""

        def value(variable: str) -> Any:
            if not variable.startswith(_GROUP):
                return f"${{{variable}}}"
            name, *fields = variable.removeprefix(_GROUP).split(".")
            if name not in each:
                says = hint(name, each, f"none; {FIELD} beside it gives one")
                raise RepeatError(Problem(node.origin, f"unknown variable ${{{variable}}}; {says}"))
            found = each[name]
            for field in fields:
                if not isinstance(found, dict) or field not in found:
                    says = hint(field, found if isinstance(found, dict) else ())
                    raise RepeatError(
                        Problem(node.origin, f"${{{variable}}}: a value has no {field}; {says}")
                    )
                found = found[field]
            self._characters += len(str(found))  # before the text is made of them
            if self._characters > MAX_TEXT:
                text = f"is repeated to more than {MAX_TEXT} characters"
                raise RepeatError(Problem(node.origin, text))
            return found

        replaced = substitute(text, value)
        return Node(text, node.origin) if replaced is text else made(replaced, node.origin)


def _loop(node: Node) -> tuple[str, list[Any]]:
    """The name and the values of a ``forEach``."""
    shape = "must be one name with its values, like {n: 0..3} or {version: [v1beta1, v1beta2]}"
    if not isinstance(node.value, dict) or len(node.value) != 1:
        raise RepeatError(Problem(node.origin, shape))
    [(name, given)] = node.value.items()
    if not _NAME.fullmatch(name):
        text = f"{name!r} is not a valid name: use letters and digits, a small letter first"
        raise RepeatError(Problem(given.origin, text))
    values = plain(given)
    if isinstance(values, str) and (found := _RANGE.fullmatch(values)):
        first, last = int(found[1]), int(found[2])
        values = list(range(first, min(last, first + MOST) + 1))
    if not isinstance(values, list) or not values:
        raise RepeatError(Problem(given.origin, shape))
    if len(values) > MOST:
        text = f"has more than {MOST} values, the most that a scenario may repeat something for"
        raise RepeatError(Problem(given.origin, text))
    return name, values
