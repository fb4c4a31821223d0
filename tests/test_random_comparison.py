"""The loop of all comparisons with programs of others: where it stops, and what it says."""

from __future__ import annotations

from collections import Counter

import pytest

from tests.random_comparison import DIFFERENT, make_parser, run_comparison


@pytest.mark.parametrize(
    ("more", "asked", "said"),
    [
        ((), [(3, 5), (5, 7)], "       1 different\n       3 same\n"),
        (("--keep-going",), [(3, 5), (5, 7), (7, 8)], "       1 different\n       4 same\n"),
    ],
)
def test_it_stops_at_a_difference_unless_told_to_go_on(
    more: tuple[str, ...],
    asked: list[tuple[int, int]],
    said: str,
    capsys: pytest.CaptureFixture[str],
) -> None:
    arguments = ("--oracle", "x", "-n", "5", "--seed", "s", "--first", "3", *more)
    options = make_parser("Asks.", "ci", "words", 9).parse_args(arguments)
    chunks = []

    def compare(seed: str, numbers: range, counts: Counter[str]) -> bool:
        assert seed == "s"
        chunks.append((numbers.start, numbers.stop))
        counts.update(DIFFERENT if number == 6 else "same" for number in numbers)
        return 6 in numbers

    assert run_comparison(options, "words", 2, compare) == 1
    assert chunks == asked
    assert capsys.readouterr().out == f"seed s, words 3 to 7\n{said}"


def test_it_is_right_when_nothing_is_wrong(capsys: pytest.CaptureFixture[str]) -> None:
    options = make_parser("Asks.", "ci", "words", 2).parse_args(("--oracle", "x"))
    assert run_comparison(options, "words", 5, lambda *_: False) == 0
    assert ", words 0 to 1\n" in capsys.readouterr().out
