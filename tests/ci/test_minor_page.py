"""The page about a minor is what its tables say."""

from __future__ import annotations

from ci.minor_page import PAGE, write_page


def test_the_page_is_that_of_the_tables() -> None:
    """``python -m ci.minor_page`` writes it."""
    assert PAGE.read_text(encoding="utf-8") == write_page()
