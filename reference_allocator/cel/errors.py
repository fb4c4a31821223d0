"""The two ways in which an expression fails: it does not compile, or its evaluation has no value.

Kubernetes treats them differently (an API rejection or a fatal allocation error against an
evaluation error that ``||`` may absorb), so they are distinct types. Their texts are those that
Kubernetes prints, because users search for them and scenarios compare them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from reference_allocator.api.reading import InputError

_MAX_ISSUES = 100
_MAX_SNIPPET = 16384


class CelCompileError(Exception):
    """The expression cannot be used; ``str()`` is what Kubernetes prints for it.

    For a parse or type error that is ``compilation failed: ERROR: <input>:L:C: ...`` followed by
    the source line and a caret (cel-go ``common/error.go``).
    """


class CelRuntimeError(Exception):
    """The evaluation has no value; ``str()`` is cel-go's text, such as ``no such key: foo``."""


class CelUnsupportedError(InputError):
    """The expression needs something that is not evaluated here, so its value is not known."""


class CelCostError(CelRuntimeError):
    """The evaluation exceeded its cost limit; unlike other errors, nothing absorbs it."""


class CelInternalError(CelRuntimeError):
    """Go's evaluator breaks here (``internal error: ...``); nothing absorbs that either."""


class CelInterruptedError(CelRuntimeError):
    """The evaluation ran past its deadline; like a cost error, nothing absorbs it."""


def as_predicate(call: Callable[..., Any]) -> Callable[..., bool]:
    """Return a function that says whether the call has a value, as ``isIP`` and others do."""

    def check(*args: Any) -> bool:
        try:
            call(*args)
        except CelRuntimeError:
            return False
        return True

    return check


@dataclass(frozen=True, slots=True)
class Issue:
    """One complaint about a source text, at an offset in code points (-1: no location)."""

    offset: int
    message: str


def _display_issue(source: str, line: int, column: int, message: str) -> str:
    text = f"ERROR: <input>:{line}:{column + 1}: {message}"
    lines = source.split("\n")
    if column < 0 or line > len(lines) or len(lines[line - 1]) > _MAX_SNIPPET:
        return text
    snippet = lines[line - 1].replace("\t", " ")
    marks = "".join("." if ord(char) < 0x80 else "\uff0e" for char in snippet[:column])
    caret = "\uff3e" if column < len(snippet) and ord(snippet[column]) >= 0x80 else "^"
    return f"{text}\n | {snippet}\n | {marks}{caret}"


def format_issues(source: str, issues: list[Issue]) -> str:
    """Return the text of all issues, in source order, as cel-go's ``Errors.ToDisplayString``."""
    placed: list[tuple[int, int, str]] = []
    for issue in issues[:_MAX_ISSUES]:
        if issue.offset < 0:
            placed.append((-1, -1, issue.message))
            continue
        if not source:  # cel-go has no first column to point at
            placed.append((1, -1, issue.message))
            continue
        text_before = source[: issue.offset]
        line = text_before.count("\n") + 1
        placed.append((line, issue.offset - (text_before.rfind("\n") + 1), issue.message))
    placed.sort(key=lambda item: item[:2])
    texts = [_display_issue(source, line, column, message) for line, column, message in placed]
    if len(issues) > _MAX_ISSUES:
        texts.append(f"{len(issues) - _MAX_ISSUES} more errors were truncated")
    return "\n".join(texts)
