"""Check a YAML document against a model, and say every error with file, line and path."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, TypeVar, get_args

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from conformance.scenario.base import API_VERSION
from conformance.scenario.documents.yamlfile import YAML, Document, Problem, read_documents
from kube.base.errors import UsageError

M = TypeVar("M", bound=BaseModel)
Location = tuple[str | int, ...]

_WORDING: Final = {
    "bool_parsing": "must be true or false",
    "bool_type": "must be true or false",
    "dict_type": "must be a mapping (key: value)",
    "float_parsing": "must be a number",
    "float_type": "must be a number",
    "greater_than_equal": "must be at least {ge}",
    "int_from_float": "must be a whole number",
    "int_parsing": "must be a whole number",
    "int_type": "must be a whole number",
    "less_than_equal": "must be at most {le}",
    "list_type": "must be a list",
    "literal_error": "must be {expected}",
    "missing": "is required but missing",
    "model_attributes_type": "must be a mapping (key: value)",
    "model_type": "must be a mapping (key: value)",
    "string_pattern_mismatch": "must match the pattern {pattern}",
    "string_too_long": "must have at most {max_length} characters",
    "string_too_short": "must have at least {min_length} characters",
    "string_type": "must be text; put it in quotes",
    "too_short": "must have at least {min_length} elements",
    "tuple_type": "must be a list",
}
"""Type of a pydantic error -> what the author of a document is told."""

USES: Final = {
    "ClusterShape": "give it to --simulate",
    "ConformanceReport": "`dra-conformance verify` reads it",
    "DriverProfile": "give it to --driver",
    "FeatureRegistry": "it only belongs to the suite",
    "KnownIssues": "it only belongs to the suite",
    "ManifestSet": "it only belongs to the suite",
    "ProfileSet": "it only belongs to the suite",
    "Scenario": "`dra-conformance run` runs it",
    "SchedulerProfile": "give it to --scheduler",
}
"""Kinds of the suite's documents -> what they are for."""


class InvalidDocumentError(UsageError):
    """A document does not fit its model; one line for each error."""

    def __init__(self, problems: Sequence[str]) -> None:
        super().__init__("\n".join(problems))
        self.problems = tuple(problems)


def validate_document(model: type[M], document: Document) -> M:
    """Return the document as ``model``.

    Raises InvalidDocumentError, with file, line and path of each error.
    """
    _check_kind(model, document)
    try:
        return model.model_validate(document.data)
    except ValidationError as error:
        details = error.errors()
        raise InvalidDocumentError(
            [
                document.tell(
                    Problem(_strip_tags(document, item["loc"]), _format_error(item, model))
                )
                for item in details
                if not _follows_from_elements(item, details)
            ]
        ) from None


def is_own(document: Document) -> bool:
    """Return whether a document is of a kind of the suite's, or says so."""
    data = document.data
    return isinstance(data, dict) and (
        data.get("apiVersion") == API_VERSION or data.get("kind") == "Scenario"
    )


def one_document(documents: Sequence[Document], what: str, file: Path) -> Document:
    """Return the only document of a file. Raises InvalidDocumentError for none, or several."""
    if not documents:
        raise InvalidDocumentError([f"{file}:1: is empty; one file holds one {what}"])
    if len(documents) > 1:
        text = f"has {len(documents)} documents; one file holds one {what}"
        raise InvalidDocumentError([f"{file}:{documents[1].line(())}: {text}"])
    return documents[0]


def load_document(model: type[M], file: Path, what: str) -> M:
    """Read a file with one document; ``what`` is its kind, for messages. Raises UsageError."""
    return validate_document(model, one_document(read_documents(file), what, file))


def shipped_or_file(name_or_file: str, directory: Path, what: str) -> Path | None:
    """Return the file of a shipped document of that name, or the file itself; None for neither.

    Raises UsageError: a file is meant that does not exist; ``what`` it should be is named.
    """
    shipped = directory / f"{name_or_file}.yaml"
    file = shipped if shipped.is_file() else Path(name_or_file)
    if file.suffix not in YAML:
        return None
    if not file.is_file():
        raise UsageError(f"no {what} {name_or_file!r}: no such file; check the path")
    return file


def _check_kind(model: type[BaseModel], document: Document) -> None:
    """Report a document of another kind as such, and not field by field."""
    field = model.model_fields.get("kind")
    kind = document.data.get("kind") if isinstance(document.data, dict) else None
    if field is not None and kind in USES and kind not in get_args(field.annotation):
        [expected_kind] = get_args(field.annotation)
        text = f"this is a {kind}, not a {expected_kind}; {USES[kind]}"
        raise InvalidDocumentError([document.tell(Problem(("kind",), text))])


def _format_error(item: ErrorDetails, model: type[BaseModel]) -> str:
    """Return an error of pydantic in the words of a document's author."""
    value: object = item.get("input")
    if item["type"] == "extra_forbidden":
        *owner, field = item["loc"]
        fields = _list_fields(model.model_json_schema(by_alias=True), owner)
        return f"unknown field {field!r}; {hint(str(field), fields)}"
    if item["type"] in _WORDING:
        message = _WORDING[item["type"]].format(**item.get("ctx", {}))
        if message.endswith("at least 1 elements"):
            message = "must not be empty"
    else:
        message = str(item["msg"]).removeprefix("Value error, ")
        message = f"{message[0].lower()}{message[1:]}"
    if item["type"] == "missing":
        return message
    if isinstance(value, str | int | float | bool) and len(str(value)) < 80:
        message += f" (found {value!r})"
    if item["type"] == "literal_error" and isinstance(value, str):
        near = find_nearest(value, str(item["ctx"]["expected"]).split("'")[1::2])
        message += f"; did you mean {near}?" if near is not None else ""
    return message


def _list_fields(schema: Mapping[str, Any], loc: Sequence[str | int]) -> set[str]:
    """Return the fields that an object at a location may have, from the model's JSON Schema."""
    nodes = [schema]
    for key in loc:
        nodes = [
            inner
            for node in nodes
            for alternative in _list_alternatives(node, schema)
            if (inner := _step_into(alternative, key)) is not None
        ]
    return {
        name
        for node in nodes
        for alternative in _list_alternatives(node, schema)
        for name in alternative.get("properties", {})
    }


def _list_alternatives(
    node: Mapping[str, Any], schema: Mapping[str, Any]
) -> Iterator[Mapping[str, Any]]:
    """Yield a schema without references, or each that may hold instead."""
    if "$ref" in node:
        yield from _list_alternatives(schema["$defs"][node["$ref"].rpartition("/")[2]], schema)
    for word in ("anyOf", "oneOf"):
        for alternative in node.get(word, ()):
            yield from _list_alternatives(alternative, schema)
    if "properties" in node or "items" in node or "additionalProperties" in node:
        yield node


def _step_into(node: Mapping[str, Any], key: str | int) -> Mapping[str, Any] | None:
    if isinstance(key, int):
        inner_schema = node.get("items")
    elif key.startswith("("):  # the tag of a union: one of its members, see expectations
        return node if key[1:-1] in node.get("required", ()) else None
    else:
        inner_schema = node.get("properties", {}).get(key, node.get("additionalProperties"))
    return inner_schema if isinstance(inner_schema, dict) else None


def _follows_from_elements(item: ErrorDetails, details: Sequence[ErrorDetails]) -> bool:
    """Return whether a list counts as too short only because its elements are wrong."""
    loc = item["loc"]
    return item["type"] == "too_short" and any(
        len(other["loc"]) > len(loc) and other["loc"][: len(loc)] == loc for other in details
    )


def _strip_tags(document: Document, loc: Sequence[str | int]) -> Location:
    """Return a pydantic location without the tags of unions that it contains."""
    path: Location = ()
    for index, key in enumerate(loc):
        tag = isinstance(key, str) and key.startswith("(")
        if (*path, key) in document.lines or (index == len(loc) - 1 and not tag):
            path = (*path, key)
    return path


MAX_LISTED = 12  # More names than this say nothing in a message.


def find_nearest(name: str, known: Iterable[str]) -> str | None:
    """Return the known name that is most like ``name``, None if none is like it."""
    matches = difflib.get_close_matches(name, sorted(set(known)), n=1, cutoff=0.6)
    return matches[0] if matches else None


def hint(name: str, known: Iterable[str], none: str = "none") -> str:
    """Return ``did you mean X?``, or what is known at all; ``none`` where nothing is."""
    names = sorted(set(known))
    near = find_nearest(name, names)
    if near is not None:
        return f"did you mean {near}?"
    if len(names) > MAX_LISTED:
        return "no known name is like it"
    return f"known: {', '.join(names) or none}"
