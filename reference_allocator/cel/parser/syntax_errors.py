"""Where a text is no expression, in the words of cel-go's parser where they are easy to come by.

cel-go's messages come from ANTLR, which names the tokens that it expected at the first place that
does not fit. Here that is said of the most common mistake, an expression that ends early.
"""

from __future__ import annotations

from typing import Final

from lark.exceptions import UnexpectedCharacters, UnexpectedInput, UnexpectedToken

from reference_allocator.cel.errors import Issue

_OPERAND: Final = (
    "{'[', '{', '(', '.', '-', '!', 'true', 'false', 'null', NUM_FLOAT, NUM_INT, NUM_UINT, STRING,"
    " BYTES, IDENTIFIER}"
)
_CLOSING: Final = {"RPAR": ")", "RSQB": "]", "RBRACE": "}", "COLON": ":"}


def syntax_issue(source: str, error: UnexpectedInput) -> Issue:
    """The complaint about a text that is not an expression."""
    if isinstance(error, UnexpectedCharacters):
        offset = error.pos_in_stream or 0
        found = source[offset : offset + 1]
        return Issue(offset, f"Syntax error: token recognition error at: '{found}'")
    assert isinstance(error, UnexpectedToken)
    accepted = error.accepts or error.expected
    closing = ", ".join(f"'{_CLOSING[name]}'" for name in _CLOSING if name in accepted)
    expected = closing or (_OPERAND if "LPAR" in accepted else "")
    offset, found = error.token.start_pos or 0, str(error.token)
    if error.token.type == "$END":
        offset, found = len(source), "<EOF>"
    what = f" expecting {expected}" if expected else ""
    return Issue(offset, f"Syntax error: mismatched input '{found}'{what}")
