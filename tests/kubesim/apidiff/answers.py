"""Answers of API servers, without what differs from server to server and from time to time."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Any, Final

_CHANGING: Final = frozenset({"uid", "creationTimestamp", "deletionTimestamp", "resourceVersion"})
_TEXTS: Final = (
    (re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"), "UID"),
    (re.compile(r"(resource version: |current: |in record \()\d+"), r"\1N"),
    (re.compile(r'(\\?"resourceVersion\\?":\\?")\d+'), r"\1N"),
    (re.compile(r"(?!2006-|2026-01-01T)\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ"), "NOW"),
    # The whole object, with all that changes in it.
    (re.compile(r'patch: Invalid value: ".*": ', re.DOTALL), 'patch: Invalid value: "...": '),
    (re.compile(r'^Invalid value: "\{\\?".*\}": ', re.DOTALL), 'Invalid value: "...": '),
    (re.compile(r"\bx-[a-z0-9]{5}\b"), "x-NAME"),  # of an object with generateName
    # What differs in a pod, in a form that go-cmp says is not always the same.
    (re.compile(r"(if it was previously negative\)).*", re.DOTALL), r"\1"),
)


@dataclass(frozen=True)
class Answer:
    """What a server answered. ``body``: JSON without what changes, or text."""

    code: int
    warnings: list[str]
    body: Any


NO_ANSWER: Final = Answer(0, [], "the connection ended")
"""Instead of an answer, each time that a request is sent."""


def read_answer(code: int, warnings: list[str], data: bytes) -> Answer:
    """Return an answer that can be compared."""
    try:
        body = _clean(json.loads(data), "")
    except ValueError:
        body = data.decode("utf-8", "replace")
        if body.startswith('{"type":'):  # the events of a watch
            body = [_clean(json.loads(line), "") for line in body.splitlines()]
    return Answer(code, sorted(warnings), body)


def _clean(value: Any, name: str) -> Any:
    if isinstance(value, dict):
        if value.get("kind") == "Table":
            value = _without_ages(value)
        if value.get("generateName") and name == "metadata":
            value = {**value, "name": "GENERATED"}
        return {
            key: _clean(item, key)
            for key, item in value.items()
            if not (key in _CHANGING and isinstance(item, str)) and key != "timeAdded"
        }
    if isinstance(value, list):
        if name == "managedFields":  # in the order of their times
            value = sorted(({**item, "time": ""} for item in value), key=json.dumps)
        return [_clean(item, name) for item in value]
    if isinstance(value, str):
        if name == "continue":
            return "TOKEN"
        for pattern, replacement in _TEXTS:
            value = pattern.sub(replacement, value)
    return value


def _without_ages(table: dict[str, Any]) -> dict[str, Any]:
    """Return a Table without ages and the descriptions of columns, which ours does not have."""
    columns = [
        {key: item for key, item in column.items() if key != "description"}
        for column in table.get("columnDefinitions") or ()
    ]
    names = [column["name"] for column in columns]
    ages = {index for index, name in enumerate(names) if name in ("Age", "Completed", "TimeAdded")}
    rows = [
        {
            **row,
            "cells": ["AGE" if i in ages else cell for i, cell in enumerate(row["cells"])],
        }
        for row in table.get("rows") or ()
    ]
    return {**table, "columnDefinitions": columns, "rows": rows}
