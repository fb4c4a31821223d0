"""String functions, by code point (``ext/strings.go`` version 2, Kubernetes' regex library)."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable
from functools import lru_cache
from typing import Any, Final

import re2  # type: ignore[import-untyped]

from reference_allocator.api.quoting import ESCAPES
from reference_allocator.cel.errors import CelRuntimeError
from reference_allocator.cel.runtime.conversions import show_value

_LOWER: Final = {code: code + 32 for code in range(ord("A"), ord("Z") + 1)}
_UPPER: Final = {code + 32: code for code in range(ord("A"), ord("Z") + 1)}
# unicode.IsSpace of Go; str.strip() also takes the separators 0x1c to 0x1f.
_SPACE: Final = "\t\n\v\f\r \u0085\u00a0\u1680\u2028\u2029\u202f\u205f\u3000" + "".join(
    chr(code) for code in range(0x2000, 0x200B)
)


class RegexError(ValueError):
    """A pattern that does not compile; ``str()`` reads like Go's regexp package."""


_OPTIONS: Final = re2.Options()
_OPTIONS.log_errors = False

# RE2's words for a bad pattern, and Go's where they differ.
_REGEX_MESSAGES: Final = {
    "missing )": "missing closing )",
    "missing ]": "missing closing ]",
    "no argument for repetition operator": "missing argument to repetition operator",
    "bad repetition operator": "invalid nested repetition operator",
    "invalid repetition size": "invalid repeat count",
    "invalid perl operator": "invalid or unsupported Perl syntax",
    "invalid named capture group": "invalid named capture",
    "trailing \\": "trailing backslash at end of expression",
}


_NO_ESCAPE: Final = r"\y"
_UNICODE_CLASS: Final = re.compile(
    r"\\(?:Q.*?(?:\\E|$)|([pP])(?:\{(\^?)([A-Za-z _-]+)\}|([A-Za-z]))|.)", re.DOTALL
)


@lru_cache(maxsize=1024)
def _class_name(name: str) -> str | None:
    """Return RE2's name of a Unicode class; Go takes any case since 1.25 (``canonicalName``)."""
    for spelling in (name, re.sub("[ _-]", "", name).capitalize()):
        with contextlib.suppress(re2.error):
            re2.compile(f"\\p{{{spelling}}}", _OPTIONS)
            return spelling
    return None


def _respell_pattern(pattern: str) -> str:
    """Return the pattern as RE2 has to see it to answer as Go does."""

    def respelled(found: re.Match[str]) -> str:
        sign, negation, name, letter = found.groups()
        if found.group() == r"\C":  # any byte, which Go does not know
            return _NO_ESCAPE
        class_name = _class_name(letter or name) if sign else None
        return f"\\{sign}{{{negation or ''}{class_name}}}" if class_name else found.group()

    return _UNICODE_CLASS.sub(respelled, pattern)


@lru_cache(maxsize=1024)
def compile_regex(pattern: str) -> Any:
    """Return a compiled RE2 pattern. Raises RegexError: it does not compile."""
    respelled = _respell_pattern(pattern)
    try:
        return re2.compile(respelled, _OPTIONS)
    except re2.error as error:
        kind, argument = _split_reason(error)
        if argument == _NO_ESCAPE and _NO_ESCAPE not in pattern:
            argument = r"\C"
        elif argument == respelled:
            argument = pattern
        message = _REGEX_MESSAGES.get(kind, kind)
        repeat = re.search(r"\{([0-9]+)(,([0-9]*))?\}(?=\??$)", argument)
        if kind == "missing )":
            argument = pattern
        elif "repetition" in kind and repeat and not _can_repeat(repeat):
            message, argument = "invalid repeat count", repeat.group()  # Go looks at that first
        elif argument in ("(?<=", "(?<!"):  # for Go a group with a bad name
            group_text = pattern[pattern.index(argument) :]
            message, argument = (
                "invalid named capture",
                group_text[: group_text.find(">") + 1] or group_text,
            )
        elif kind == "invalid escape sequence" and argument in ("\\p", "\\P"):
            message = "invalid character class range"
        raise RegexError(f"error parsing regexp: {message}: `{argument}`") from None


def _split_reason(error: Exception) -> tuple[str, str]:
    """Return what RE2 has against a pattern, and the part of the pattern that is wrong."""
    raw = error.args[0] if error.args else ""
    text = raw.decode(errors="replace") if isinstance(raw, bytes) else str(raw)
    kind, _, argument = text.partition(": ")
    return kind, argument


def _can_repeat(repeat: re.Match[str]) -> bool:
    """Return whether ``{2,3}`` is allowed: at most 1000, and not the wrong way round."""
    least = int(repeat[1])
    most = int(repeat[3]) if repeat[3] else least
    return least <= most <= 1000


def _matches(text: str, pattern: str) -> bool:
    try:
        return compile_regex(pattern).search(text) is not None
    except RegexError as error:
        raise CelRuntimeError(str(error)) from None


def _find_regex(pattern: str) -> Any:
    try:
        return compile_regex(pattern)
    except RegexError as error:
        raise CelRuntimeError(f"Illegal regex: {error}") from None


def _find(text: str, pattern: str) -> str:
    match = _find_regex(pattern).search(text)
    return "" if match is None else str(match.group(0))


def find_all(text: str, pattern: str, limit: int = -1) -> list[str]:
    """Return all matches, but no empty one right after another match (Go's ``allMatches``)."""
    regex = _find_regex(pattern)
    result: list[str] = []
    start, previous_end = 0, -1
    while len(result) != limit and start <= len(text):
        match = regex.search(text, start)
        if match is None:
            break
        first, end = match.span()
        if not first == end == previous_end:
            result.append(match.group())
        start = end + 1 if end == start else end
        previous_end = end
    return result


def _check_index(index: int, length: int) -> None:
    if not 0 <= index <= length:
        raise CelRuntimeError(f"index out of range: {index}")


def _char_at(text: str, index: int) -> str:
    _check_index(index, len(text))
    return text[index : index + 1]


def _index_of(text: str, part: str, offset: int = 0) -> int:
    if offset < 0:
        _check_index(offset, 0)
    if part == "":
        return min(offset, len(text))
    return text.find(part, offset)


def _last_index_of(text: str, part: str, offset: int | None = None) -> int:
    if offset is None:
        if part == "":
            return len(text)
        offset = len(text) - 1
        if len(part) > len(text):
            return -1
    if offset < 0:
        _check_index(offset, 0)
    if part == "":
        return min(offset, len(text))
    if offset >= len(text):
        return -1
    return text.rfind(part, 0, offset + len(part))


def _found_at_offset(search: Callable[[str, str, int], int]) -> Callable[[str, str, int], int]:
    """Return the search as up to 1.36, which finds an empty part at any offset of any text."""
    return lambda text, part, offset: search(text, part, offset) if part else offset


def _substring(text: str, start: int, end: int | None = None) -> str:
    if end is not None and start > end:
        raise CelRuntimeError(f"invalid substring range. start: {start}, end: {end}")
    _check_index(start, len(text))
    if end is not None:
        _check_index(end, len(text))
    return text[start:end]


def _replace(text: str, old: str, new: str, limit: int = -1) -> str:
    return text.replace(old, new, -1 if limit < 0 else limit)


def _split(text: str, separator: str, limit: int = -1) -> list[str]:
    if limit == 0:
        return []
    if separator == "":
        if 0 < limit < len(text):
            return [*text[: limit - 1], text[limit - 1 :]]
        return list(text)
    return text.split(separator, limit - 1 if limit > 0 else -1)


def _join(items: list[Any], separator: str = "") -> str:
    for item in items:
        if item.__class__ is not str:
            raise CelRuntimeError(f"join: invalid input: {show_value(item)}")
    return separator.join(items)


def _quote(text: str) -> str:
    """Return the text in quotes with control characters escaped (``strings.quote``)."""
    return '"' + "".join(ESCAPES.get(char, char) for char in text) + '"'


OVERLOADS: Final[dict[str, Callable[..., Any]]] = {
    "contains": lambda text, part: part in text,
    "endsWith": lambda text, part: text.endswith(part),
    "startsWith": lambda text, part: text.startswith(part),
    "matches": _matches,
    "find": _find,
    "findAll": find_all,
    "string_char_at_int": _char_at,
    "string_index_of_string": _index_of,
    "string_index_of_string_int": _index_of,
    "string_index_of_string_int@1.36": _found_at_offset(_index_of),
    "string_last_index_of_string_int@1.36": _found_at_offset(_last_index_of),
    "string_last_index_of_string": _last_index_of,
    "string_last_index_of_string_int": _last_index_of,
    "string_lower_ascii": lambda text: text.translate(_LOWER),
    "string_upper_ascii": lambda text: text.translate(_UPPER),
    "replace": _replace,
    "split": _split,
    "substring": _substring,
    "string_trim": lambda text: text.strip(_SPACE),
    "join": _join,
    "strings_quote": _quote,
}
