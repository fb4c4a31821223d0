"""Check a YAML document against a model, and say every error with file, line and path."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from conformance.errors import UsageError
from conformance.scenario.yamlfile import Document, dotted

M = TypeVar("M", bound=BaseModel)


class InvalidDocumentError(UsageError):
    """A document does not fit its model; one line for each error."""

    def __init__(self, problems: Sequence[str]) -> None:
        super().__init__("\n".join(problems))
        self.problems = tuple(problems)


def validated(model: type[M], document: Document) -> M:
    """The document as ``model``.

    Raises:
        InvalidDocumentError: with ``file:line: $.path: what was expected`` for each error.
    """
    try:
        return model.model_validate(document.data)
    except ValidationError as error:
        found = error.errors()
        raise InvalidDocumentError(
            [
                _problem(document, item["loc"], _text(item))
                for item in found
                if not _follows(item, found)
            ]
        ) from None


def _problem(document: Document, loc: Sequence[str | int], text: str) -> str:
    path = _real_path(document, loc)
    return f"{document.file}:{document.line(path)}: {dotted(path)}: {text}"


def _text(item: Any) -> str:
    message = str(item["msg"]).removeprefix("Value error, ")
    if item["type"] == "extra_forbidden":
        return f"unknown field {item['loc'][-1]!r}; see `dra-conformance schema` for what is known"
    if item["type"] == "missing":
        return "is required but missing"
    given = item.get("input")
    if isinstance(given, str | int | float | bool) and len(str(given)) < 80:
        return f"{message[0].lower()}{message[1:]} (found {given!r})"
    return f"{message[0].lower()}{message[1:]}"


def _follows(item: Any, found: Sequence[Any]) -> bool:
    """A list that counts as too short only because its elements are wrong: that is said already."""
    loc = item["loc"]
    return item["type"] == "too_short" and any(
        len(other["loc"]) > len(loc) and other["loc"][: len(loc)] == loc for other in found
    )


def _real_path(document: Document, loc: Sequence[str | int]) -> tuple[str | int, ...]:
    """A pydantic location without the tags of unions that it contains."""
    path: tuple[str | int, ...] = ()
    for index, part in enumerate(loc):
        tag = isinstance(part, str) and part.startswith("(")
        if (*path, part) in document.lines or (index == len(loc) - 1 and not tag):
            path = (*path, part)
    return path
