from __future__ import annotations

from conformance.kubeapi.redaction import one_line, redact


def test_what_was_left_out_once_is_not_left_out_again() -> None:
    text = redact('password=hunter22 "token": "abcdefgh" rest')
    assert text == 'password=[left out] "token": "[left out]" rest'
    assert redact(text) == text


def test_one_line_has_nothing_that_moves_a_cursor_and_is_not_endless() -> None:
    assert one_line("a\x1b[31mb\r\n\tc\x00") == "a [31mb c"
    assert one_line("x" * 1000) == "x" * 300 + "..."
