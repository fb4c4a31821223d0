from __future__ import annotations

from kube.base.text import addresses_first, one_line


def test_one_line_has_nothing_that_moves_a_cursor_and_is_not_endless() -> None:
    assert one_line("a\x1b[31mb\r\n\tc\x00") == "a [31mb c"
    assert one_line("x" * 1000) == "x" * 297 + "..."


def test_references_that_can_be_followed_come_first() -> None:
    given = ["A guide, based on https://a", "https://b", "KEP-4381", "https://a"]
    assert addresses_first(given) == ("https://b", "https://a", given[0], "KEP-4381")
