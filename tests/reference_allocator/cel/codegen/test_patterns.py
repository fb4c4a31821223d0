"""Constant patterns say what RE2 says, whether they are words or not."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reference_allocator.cel import CelDevice, CelRuntimeError, compile_selector
from reference_allocator.cel.codegen.patterns import matcher
from reference_allocator.cel.library.strings import RegexError, compile_regex

PATTERNS = [
    *("", "^", "$", "^$", "a", "^a", "a$", "^a$", "a|b", "^a|b$", "(a|b)", "^(a|b)$", "^(a|)$"),
    *("(A|H)100", "^(A|H)100$", "^GPU-", "()", "(|)", "(a)(b)", "((a))", "(?:a|b)", "(?i)a", "a.b"),
    *("^^a", "a$$", "a^", "$a", "^(a|b)+$", "(a|b){2}", "[ab]", "^(^a)", "(a$)", "\\(a", "a\\n"),
    "(a|b)" * 5,
    "(a|b)" * 6,
]
TEXTS = ["", "a", "b", "ab", "ba", "aab", "a\n", "\na", "A100", "H100", "T100", "A100\n", "GPU-1"]


@pytest.mark.parametrize("pattern", PATTERNS)
def test_a_pattern_matches_what_re2_matches(pattern: str) -> None:
    matches = matcher(pattern)
    for text in [*TEXTS, "ababa", "ababab", "\u00e9a", "a|b", "^a", "(a"]:
        assert matches(text) is (compile_regex(pattern).search(text) is not None), text


@given(pattern=st.text("ab(|)^$-", max_size=8), text=st.text("ab-\n\u00e9", max_size=6))
def test_any_pattern_of_words_matches_what_re2_matches(pattern: str, text: str) -> None:
    try:
        expected = compile_regex(pattern).search(text) is not None
    except RegexError:
        return
    assert matcher(pattern)(text) is expected


@pytest.mark.parametrize("pattern", ["^a$", "^a", "a$", "a", "a+"])
@pytest.mark.parametrize("attribute", [{"int": 1}, {"bool": True}, {"strings": ["a"]}])
def test_what_is_no_text_is_an_error(pattern: str, attribute: dict[str, object]) -> None:
    device = CelDevice.from_api("a.io", {"attributes": {"x": attribute}})
    selector = compile_selector(f'device.attributes["a.io"].x.matches("{pattern}")')
    with pytest.raises(CelRuntimeError, match="no such overload"):
        selector.matches(device)
