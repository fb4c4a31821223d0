"""Quantities against values taken from apimachinery's own behaviour."""

from __future__ import annotations

import json

import pytest

from reference_allocator.api.quantity import (
    Quantity,
    QuantityError,
    WrittenNumber,
    as_quantity,
    parse_quantity,
)


@pytest.mark.parametrize(
    ("text", "canonical", "integer", "nanos"),
    [
        ("0", "0", 0, 0),
        ("000", "0", 0, 0),
        ("64Gi", "64Gi", 64 * 2**30, 64 * 2**30 * 10**9),
        ("65536Mi", "64Gi", 64 * 2**30, 64 * 2**30 * 10**9),
        ("1.5Gi", "1536Mi", None, 3 * 2**29 * 10**9),
        ("1500m", "1500m", None, 1_500_000_000),
        ("1000m", "1", None, 10**9),
        ("0.5", "500m", None, 5 * 10**8),
        ("1e3", "1e3", 1000, 10**12),
        ("12E", "12E", None, 12 * 10**27),
        ("1E", "1E", 10**18, 10**27),
        ("-1", "-1", -1, -(10**9)),
        ("+1", "1", 1, 10**9),
        ("1e-20", "1e-9", None, 1),
        ("1.0000000001", "1000000001n", None, 1_000_000_001),
        ("100000000000000000000", "100E", None, 10**29),
        ("16Ei", str(2**63 - 1), None, (2**63 - 1) * 10**9),
    ],
)
def test_parse_gives_amount_and_canonical_form(
    text: str, canonical: str, integer: int | None, nanos: int
) -> None:
    quantity = parse_quantity(text)
    assert quantity.canonical() == canonical
    assert quantity.as_int64() == integer
    assert quantity.nanos == nanos


@pytest.mark.parametrize("text", ["", "x", "1x", "1 ", " 1", "1.2.3", "0x10", "1_0", "1Gi "])
def test_text_that_is_no_quantity_names_the_expected_form(text: str) -> None:
    with pytest.raises(QuantityError, match="quantities must match the regular expression"):
        parse_quantity(text)


@pytest.mark.parametrize("text", ["--1", "1ki", "1e", "1KiB", "1Kii", "1mm"])
def test_unknown_suffix_is_refused(text: str) -> None:
    with pytest.raises(QuantityError):
        parse_quantity(text)


def test_absurd_exponents_cost_neither_time_nor_memory() -> None:
    with pytest.raises(QuantityError, match="exponent"):
        parse_quantity("1e1000000000")
    with pytest.raises(QuantityError):
        parse_quantity("1" * 5000)


def test_equality_is_by_amount_and_false_for_other_types() -> None:
    assert parse_quantity("1") == parse_quantity("1000m")
    assert parse_quantity("1") != parse_quantity("2")
    assert (parse_quantity("1") == None) is False  # noqa: E711 - dataclasses compare like this
    assert len({parse_quantity("1"), parse_quantity("1000m")}) == 1


def test_sum_keeps_the_format_of_the_first_that_is_not_zero() -> None:
    assert str(parse_quantity("1Gi").add(parse_quantity("1Gi"))) == "2Gi"
    assert str(parse_quantity("0").add(parse_quantity("1Gi"))) == "1Gi"
    assert str(parse_quantity("1Gi").sub(parse_quantity("1Gi"))) == "0"
    assert str(parse_quantity("1500m").add(parse_quantity("1500m"))) == "3"


def test_a_sum_of_fractions_is_no_integer_even_when_it_is_whole() -> None:
    assert parse_quantity("1500m").add(parse_quantity("1500m")).as_int64() is None


def test_sums_beyond_64_bits_stay_exact() -> None:
    most = parse_quantity(str(2**63 - 1))
    total = most.add(Quantity(1, 0, "DecimalSI"))
    assert total.nanos == 2**63 * 10**9
    assert total.as_int64() is None


_LONG = "1234567890123456789012345678901"
"""A number of 31 digits."""


@pytest.mark.parametrize(
    ("text", "until_1_37", "since_1_38"),
    [
        ("2000E", "2", "2e21"),
        (f"{_LONG}m", f"{_LONG}m", "1234567890123456789012345679"),
        (f"-{_LONG}", f"-{_LONG}", "-1234567890123456789012345679k"),
        ("1Ei", "1Ei", "1Ei"),
    ],
)
def test_1_38_keeps_29_digits_and_the_exponent(text: str, until_1_37: str, since_1_38: str) -> None:
    quantity = parse_quantity(text)
    assert (str(quantity), str(quantity.as_since_1_38())) == (until_1_37, since_1_38)


def test_a_binary_sum_beyond_the_largest_suffix_has_an_exponent_since_1_38() -> None:
    total = Quantity(2**69, 0, "BinarySI", decimal=True)
    assert str(total.add(total)) == "1"  # the suffix that Kubernetes does not have is left out
    later = total.as_since_1_38()
    assert str(later.add(later)) == str(2**70)


@pytest.mark.parametrize("nanos", [0, 1, -1, 10**9, 1500 * 10**6, 2**70 * 10**9])
def test_from_nanos_gives_that_amount(nanos: int) -> None:
    assert Quantity.from_nanos(nanos).nanos == nanos


def test_json_numbers_are_quantities_and_other_values_are_not() -> None:
    assert as_quantity(5) == parse_quantity("5")
    assert as_quantity(1.5) == parse_quantity("1500m")
    assert as_quantity(141e9).as_int64() == 141_000_000_000  # as Go prints what YAML has
    assert [str(as_quantity(number)) for number in (1e21, 1e-7, 0.0)] == ["1e+21", "100e-9", "0"]
    assert as_quantity(None).nanos == 0
    refused: tuple[object, ...] = (True, [], {})
    for value in refused:
        with pytest.raises(QuantityError):
            as_quantity(value)


@pytest.mark.parametrize(
    ("number", "text", "number_format", "whole"),
    [  # Quantity.UnmarshalJSON of k8s.io/apimachinery v0.37.2
        ("141e9", "141e9", "DecimalExponent", 141_000_000_000),
        ("1E3", "1E3", "DecimalExponent", 1000),
        ("1.41e+11", "1.41e+11", "DecimalExponent", 141_000_000_000),
        ("123456789.123456789", "123456789.123456789", "DecimalSI", None),
        ("1e-9", "1e-9", "DecimalExponent", None),
        ("0.0000001", "100n", "DecimalSI", None),
        ("4e400", "40e399", "DecimalExponent", None),
    ],
)
def test_a_number_of_json_is_read_from_its_text(
    number: str, text: str, number_format: str, whole: int | None
) -> None:
    quantity = as_quantity(json.loads(number, parse_float=WrittenNumber))
    assert (str(quantity), quantity.format, quantity.as_int64()) == (text, number_format, whole)
