"""Quantities such as ``64Gi`` or ``1500m``, with the arithmetic of Kubernetes' apimachinery.

``k8s.io/apimachinery/pkg/api/resource`` keeps a quantity either as a 64-bit integer with a decimal
scale or, when that does not do, as an arbitrary decimal. Which of the two decides whether a
quantity counts as an integer, so both forms are kept here too. A value finer than 10^-9 is
rounded away from zero; a binary one beyond 2^63-1 is capped. Since 1.38 a quantity has 29 digits at
most, and one without a suffix of its own is written with an exponent (`Quantity.as_since_1_38`).
"""

from __future__ import annotations

import math
import re
from decimal import Decimal
from functools import lru_cache, partial
from typing import Any, Final, Literal

Format = Literal["BinarySI", "DecimalSI", "DecimalExponent"]

_INT64_MAX: Final = 2**63 - 1
_NANO: Final = -9
_MAX_DIGITS: Final = 18
_MAX_DIGITS_SINCE_1_38: Final = 19
_SIGNIFICANT_DIGITS: Final = 29
"""The digits that 1.38 keeps of a number, and of the smaller number of a sum below the larger."""
_MAX_EXPONENT: Final = 10_000

_PARTS = re.compile(r"([+-]?)(0*)([0-9]*)(?:\.([0-9]*))?([eEinumkKMGTP]*(?:[-+]?[0-9]*))")
_REGEXP: Final = "^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$"
NO_QUANTITY: Final = f"quantities must match the regular expression '{_REGEXP}'"
"""What apimachinery says of a text that is none."""

_BINARY: Final = {"Ki": 10, "Mi": 20, "Gi": 30, "Ti": 40, "Pi": 50, "Ei": 60}
_DECIMAL: Final = dict(zip(("n", "u", "m", "", *"kMGTPE"), range(-9, 19, 3), strict=True))
_DECIMAL_SUFFIXES: Final = {exponent: suffix for suffix, exponent in _DECIMAL.items()}
_BINARY_SUFFIXES: Final = {exponent: suffix for suffix, exponent in _BINARY.items()}
_LARGEST_BINARY: Final = max(_BINARY_SUFFIXES)


class QuantityError(ValueError):
    """The text is no quantity; ``str()`` is apimachinery's message."""


def _fits(value: int) -> bool:
    return -_INT64_MAX - 1 <= value <= _INT64_MAX


class Quantity:
    """An immutable amount: ``value * 10**scale``.

    Attributes:
        decimal: kept as a decimal rather than as a 64-bit integer.
        nanos: the amount in units of 10^-9, exact; equal amounts have equal ``nanos``.
        derived: result of CEL's ``add`` or ``sub``; CEL compares those differently.
        since_1_38: whether the rules of 1.38 hold for it.
    """

    __slots__ = ("decimal", "derived", "format", "nanos", "scale", "since_1_38", "text", "value")
    cel_type = "kubernetes.Quantity"

    def __init__(
        self,
        value: int,
        scale: int,
        format: Format,  # noqa: A002 - the API's own word
        *,
        decimal: bool = False,
        text: str = "",
        derived: bool = False,
        since_1_38: bool = False,
    ) -> None:
        self.value = value
        self.scale = scale
        self.format = format
        self.decimal = decimal
        self.text = text
        self.derived = derived
        self.since_1_38 = since_1_38
        self.nanos: int = value * 10 ** (scale - _NANO)

    @classmethod
    def from_nanos(cls, nanos: int, format: Format = "DecimalSI") -> Quantity:  # noqa: A002
        """Return the amount of so many 10^-9, kept as a 64-bit integer where that can be."""
        value, scale = nanos, _NANO
        while value % 10 == 0 and value != 0 and scale < 0:
            value, scale = value // 10, scale + 1
        if value == 0:
            scale = 0
        return cls(value, scale, format, decimal=not _fits(value))

    def as_since_1_38(self) -> Quantity:
        """Return what 1.38 and later read where earlier minors read this amount.

        They keep 29 digits, rounded away from zero, unless the suffix is a binary one, and keep up
        to 19 digits as a 64-bit integer where that fits (``ParseQuantity``).
        """
        value, scale, decimal = self.value, self.scale if self.value else 0, self.decimal
        digits = len(str(abs(value)))
        if self.format != "BinarySI" and digits > _SIGNIFICANT_DIGITS:
            value, scale = _round_up(value, scale, scale + digits - _SIGNIFICANT_DIGITS)
        elif self.format != "BinarySI" and digits <= _MAX_DIGITS_SINCE_1_38 and _fits(value):
            decimal = False
        return Quantity(value, scale, self.format, decimal=decimal, text=self.text, since_1_38=True)

    def __eq__(self, other: object) -> bool:
        """Return whether both are the same amount, whatever the notation."""
        return self.nanos == other.nanos if isinstance(other, Quantity) else NotImplemented

    def __hash__(self) -> int:
        return hash(self.nanos)

    def __lt__(self, other: Quantity) -> bool:
        return self.nanos < other.nanos

    def __repr__(self) -> str:
        return f"Quantity({str(self)!r})"

    def __str__(self) -> str:
        """Return the text that was parsed where apimachinery keeps it, else the canonical form."""
        return self.text or self.canonical()

    def compare(self, other: Quantity) -> int:
        """Return -1, 0 or 1, as this amount is less than, equal to or more than the other."""
        return (self.nanos > other.nanos) - (self.nanos < other.nanos)

    def sign(self) -> int:
        """Return -1, 0 or 1, as this amount is negative, zero or positive."""
        return (self.value > 0) - (self.value < 0)

    def as_int64(self) -> int | None:
        """Return the amount as a 64-bit integer; None if it is not kept as one (``AsInt64``)."""
        if self.decimal or self.scale < 0:
            return None
        value: int = self.value * 10**self.scale
        return value if _fits(value) else None

    def as_float(self) -> float:
        """Return value times power of ten, each rounded to a double (``AsApproximateFloat64``)."""
        try:
            base = float(self.value)
            return base if self.scale == 0 else base * float(f"1e{self.scale}")
        except OverflowError:
            return float("inf") if self.value > 0 else float("-inf")

    def add(self, other: Quantity, *, derived: bool = False) -> Quantity:
        """Return the sum; a zero takes the other's format."""
        return self._sum(other, other.value, other.value, derived=derived)

    def sub(self, other: Quantity, *, derived: bool = False) -> Quantity:
        """Return the difference; a zero takes the other's format."""
        quick = -other.value
        if other.value == -_INT64_MAX - 1 and not self.since_1_38:
            quick = other.value  # apimachinery negates the 64-bit integer, which wraps
        return self._sum(other, quick, -other.value, derived=derived)

    def _sum(self, other: Quantity, quick: int, exact: int, *, derived: bool) -> Quantity:
        """Return the sum with ``quick`` as a 64-bit integer where that fits, else of ``exact``."""
        made = partial(
            Quantity,
            format=other.format if self.value == 0 else self.format,
            derived=derived,
            since_1_38=self.since_1_38,
        )
        mine, theirs = (self.value, self.scale), (exact, other.scale)
        if not self.decimal and not other.decimal:
            if quick == 0:
                return made(*mine)
            if self.value == 0 and _fits(quick):
                return made(quick, other.scale)
            value, scaled_other, scale = _scale_alike(mine, (quick, other.scale))
            if _fits(value) and _fits(scaled_other) and _fits(value + scaled_other):
                return made(value + scaled_other, scale)
        if self.since_1_38 and self.value and exact:
            least = max(self.scale, other.scale) - _SIGNIFICANT_DIGITS
            mine, theirs = _round_up(*mine, least), _round_up(*theirs, least)
        value, scaled_other, scale = _scale_alike(mine, theirs)
        return made(value + scaled_other, scale, decimal=True)

    def canonical(self) -> str:
        """Return the form with no fraction and the largest exact suffix (``CanonicalizeBytes``)."""
        if self.value == 0:
            return "0"
        whole = self.nanos % 10**9 == 0
        if self.format == "BinarySI" and whole and abs(self.nanos) >= 1024 * 10**9:
            amount, exponent = self.nanos // 10**9, 0
            while amount % 1024 == 0:
                amount, exponent = amount // 1024, exponent + 10
            if exponent <= _LARGEST_BINARY or not self.since_1_38:
                return f"{amount}{_BINARY_SUFFIXES.get(exponent, '')}"
        amount, exponent = self.value, self.scale
        while amount % 10 == 0:
            amount, exponent = amount // 10, exponent + 1
        while exponent % 3:
            amount, exponent = amount * 10, exponent - 1
        by_exponent = self.format == "DecimalExponent" or (
            self.since_1_38 and exponent not in _DECIMAL_SUFFIXES
        )
        if by_exponent:
            return f"{amount}e{exponent}" if exponent else str(amount)
        # Until 1.37 an exponent without a suffix is lost.
        return f"{amount}{_DECIMAL_SUFFIXES.get(exponent, '')}"


def _parse_suffix(suffix: str) -> tuple[int, int, Format]:
    """Return (base, exponent, format) of a suffix."""
    if suffix in _DECIMAL:
        return 10, _DECIMAL[suffix], "DecimalSI"
    if suffix in _BINARY:
        return 2, _BINARY[suffix], "BinarySI"
    if len(suffix) > 1 and suffix[0] in "eE" and re.fullmatch(r"[-+]?[0-9]+", suffix[1:]):
        exponent = int(suffix[1:])
        if abs(exponent) > _MAX_EXPONENT:
            raise QuantityError(f"exponent of quantity is beyond {_MAX_EXPONENT}")
        return 10, exponent, "DecimalExponent"
    raise QuantityError("unable to parse quantity's suffix")


def _round_up(value: int, scale: int, least: int = _NANO) -> tuple[int, int]:
    """Return value and scale at a scale of at least ``least``, rounded away from zero."""
    if scale >= least:
        return value, scale
    quotient, remainder = divmod(abs(value), 10 ** (least - scale))
    quotient += remainder > 0
    return (-quotient if value < 0 else quotient), least


def _scale_alike(first: tuple[int, int], second: tuple[int, int]) -> tuple[int, int, int]:
    """Return the values of both at the smaller of their scales, and that scale."""
    scale = min(first[1], second[1])
    return first[0] * 10 ** (first[1] - scale), second[0] * 10 ** (second[1] - scale), scale


@lru_cache(maxsize=4096)
def parse_quantity(text: str) -> Quantity:
    """Return the quantity of a text (``resource.ParseQuantity``).

    Raises QuantityError: with apimachinery's message; also for exponents beyond 10,000, where
    apimachinery would compute numbers of that many digits.
    """
    if text == "0":
        return Quantity(0, 0, "DecimalSI", text=text)
    match = _PARTS.fullmatch(text) if text else None
    if match is None or len(text) > 1024:
        raise QuantityError(NO_QUANTITY)
    sign, _zeros, whole, fraction, suffix = match.groups()
    if fraction is None and not whole and not suffix:
        return Quantity(0, 0, "DecimalSI")  # only zeros, or nothing after the sign
    fraction = fraction or ""
    digits = (whole or "0") + fraction
    base, exponent, format_of_suffix = _parse_suffix(suffix)
    quick = _quick_int64(digits, len(fraction), base, exponent, format_of_suffix, text)
    if quick is not None:
        value, scale, kept_text = quick
        return Quantity(-value if sign == "-" else value, scale, format_of_suffix, text=kept_text)
    if not _zeros and not whole and not fraction:
        raise QuantityError("unable to parse numeric part of quantity")
    value, scale = int(digits), -len(fraction)
    if base == 10:
        scale += exponent
    else:
        value <<= exponent
    value, scale = _round_up(value, scale)
    if format_of_suffix == "BinarySI":
        if value * 10 ** (scale - _NANO) > _INT64_MAX * 10**9:
            value, scale = _INT64_MAX, 0
        elif 0 < value * 10 ** (scale - _NANO) < 10**9:
            format_of_suffix = "DecimalSI"
    return Quantity(-value if sign == "-" else value, scale, format_of_suffix, decimal=True)


def _quick_int64(
    digits: str, fraction: int, base: int, exponent: int, format_of_suffix: Format, text: str
) -> tuple[int, int, str] | None:
    """Return (value, scale, text to keep) where a 64-bit integer is sure to do, else None."""
    multiplier = 1
    if base == 10:
        scale = exponent
        room = _MAX_DIGITS - len(digits)
    else:
        scale = 0
        multiplier = 1 << exponent
        room = -1 if fraction else 15 - len(digits) - exponent * 3 // 10 - 1
    scale -= fraction
    if room < 0 or scale < _NANO:
        return None
    value = int(digits)
    result = value * multiplier
    if not _fits(result):
        return None
    if format_of_suffix == "BinarySI":
        kept_text = text if exponent % 10 == 0 and value & 7 else ""
    else:
        exact = scale % 3 == 0 and not digits.endswith("000") and digits[0] != "0"
        kept_text = text if exact else ""
    return result, scale, kept_text


class WrittenNumber(float):
    """A number of a JSON text with the text itself, for ``parse_float`` of the json module.

    Kubernetes reads a quantity from the text: ``141e9`` is a whole number, and keeps its exponent.
    """

    __slots__ = ("text",)
    text: str

    def __new__(cls, text: str) -> WrittenNumber:
        number = super().__new__(cls, text)
        number.text = text
        return number


def as_quantity(value: Any) -> Quantity:
    """Return the quantity of a JSON value: a string, or a number that Kubernetes would accept.

    Raises QuantityError: the value is neither, or its text is no quantity.
    """
    if isinstance(value, str):
        return parse_quantity(value.strip())
    if value is None:
        return Quantity(0, 0, "DecimalSI")
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return parse_quantity(_print_number(value))
    raise QuantityError(f"a quantity is a string, not {type(value).__name__}")


def _print_number(value: int | float) -> str:
    """Return a number as JSON has it: its own text, or as Go's encoding/json prints a float64."""
    if isinstance(value, WrittenNumber):
        return value.text
    text = repr(value)
    if not isinstance(value, float) or not math.isfinite(value):
        return text
    if value == 0 or 1e-6 <= abs(value) < 1e21:
        return format(Decimal(text), "f").removesuffix(".0")
    return text.replace("e-0", "e-")
