"""Wording of syntax errors: as close to cel-go's parser as another parser can come.

cel-go's messages come from ANTLR, which names the tokens that it expected at the first place that
does not fit, and sometimes goes on to a second complaint. The common ones (an expression that ends
early, an operator too much, an unclosed bracket or quote) are worded the same here.
"""

from __future__ import annotations

import re
from typing import Final

from lark.exceptions import UnexpectedCharacters, UnexpectedInput, UnexpectedToken

from reference_allocator.cel.errors import Issue

_LITERALS: Final = (
    "'true', 'false', 'null', NUM_FLOAT, NUM_INT, NUM_UINT, STRING, BYTES, IDENTIFIER"
)
_AT_END: Final = re.compile(r"(?:[\t\n\f\r ]|//[^\n]*)*\Z")


def _operand(*, closing: str = "", question: bool = False) -> str:
    """The set that ANTLR names where an operand should come."""
    extra = f"'{closing}', " if closing else ""
    optional = "'?', " if question else ""
    return f"{{'[', '{{', '(', {extra}'.', '-', '!', {optional}{_LITERALS}}}"


def _expected(accepted: frozenset[str]) -> str | None:
    """What should come, in ANTLR's words; None where it gives a missing token instead."""
    if "IDENT" in accepted and "LPAR" in accepted:
        closing = ")" if "RPAR" in accepted else ""
        if "RSQB" in accepted:
            return "{'[', ']', '{', '(', '.', ',', '-', '!', '?', " + _LITERALS + "}"
        if "RBRACE" in accepted:
            return "{'[', '{', '}', '(', '.', ',', '-', '!', '?', " + _LITERALS + "}"
        return _operand(closing=closing, question="QMARK" in accepted)
    if "ESC_IDENT" in accepted:
        return None if "QMARK" in accepted else "{IDENTIFIER, ESC_IDENTIFIER}"
    if "COMMA" in accepted:
        for name, text in (("RSQB", "]"), ("RBRACE", "}"), ("RPAR", ")")):
            if name in accepted:
                return f"{{'{text}', ','}}"
    if "COLON" in accepted:
        return "':'"
    return "<EOF>" if "$END" in accepted else None


def _missing(accepted: frozenset[str]) -> str:
    for name, text in (("RPAR", ")"), ("RSQB", "]"), ("RBRACE", "}"), ("COLON", ":")):
        if name in accepted:
            return text
    return ""


def _wording(source: str, shown: str, end: int, accepted: frozenset[str]) -> str:
    """The complaint about a token that ends at ``end``."""
    if "ESC_IDENT" in accepted and "QMARK" in accepted:
        return (
            f"Syntax error: no viable alternative at input '.{'' if shown == '<EOF>' else shown}'"
        )
    expected = _expected(accepted)
    if expected is None:
        return f"Syntax error: missing '{_missing(accepted)}' at '{shown}'"
    last = bool(_AT_END.match(source, end))
    extraneous = expected == "<EOF>" and last and shown not in ("!", "(")
    verb = "extraneous" if extraneous else "mismatched"
    return f"Syntax error: {verb} input '{shown}' expecting {expected}"


def _unrecognized(source: str, offset: int) -> str:
    """The text that ANTLR's lexer skips: a quote takes what could still be a string."""
    match = re.compile(r"[rRbB]{0,2}(['\"])(?:(?!\1)[^\\\n\r]|\\[abfnrtv\"'\\?`])*").match(
        source, offset
    )
    if match is not None:
        end = match.end()
        if source.startswith("\\", end):
            end = min(end + 2, len(source))
        return source[offset:end]
    if source[offset] in "=&|":
        return source[offset : offset + 2]
    return source[offset]


def syntax_issues(source: str, error: UnexpectedInput) -> list[Issue]:
    """The complaints about a text that is not an expression."""
    if isinstance(error, UnexpectedToken):
        accepted = frozenset(error.accepts or error.expected)
        if error.token.type == "$END":
            return [Issue(len(source), _wording(source, "<EOF>", len(source), accepted))]
        start = error.token.start_pos or 0
        shown = str(error.token)
        return [Issue(start, _wording(source, shown, start + len(shown), accepted))]
    offset = error.pos_in_stream
    if isinstance(error, UnexpectedCharacters) and offset is not None and offset < len(source):
        skipped = _unrecognized(source, offset)
        issues = [Issue(offset, f"Syntax error: token recognition error at: '{skipped}'")]
        accepted = frozenset(error.allowed or ())
        after = offset + len(skipped)
        if "IDENT" not in accepted:
            return issues
        if source[after:] in ("'", '"'):  # the closing quote of a string with a bad escape
            message = f"Syntax error: token recognition error at: '{source[after]}'"
            issues.append(Issue(after, message))
            after += 1
        if _AT_END.match(source, after):
            message = f"Syntax error: mismatched input '<EOF>' expecting {_operand()}"
            issues.append(Issue(len(source), message))
        return issues
    return [Issue(len(source), f"Syntax error: mismatched input '<EOF>' expecting {_operand()}")]
