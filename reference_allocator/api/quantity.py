"""Quantities such as ``64Gi`` or ``1500m``, with the arithmetic of Kubernetes' apimachinery.

``k8s.io/apimachinery/pkg/api/resource`` keeps a quantity either as a 64-bit integer with a decimal
scale or, when that does not do, as an arbitrary decimal. Which of the two decides whether a
quantity counts as an integer, so both forms are kept here too. A value finer than 10^-9 is
rounded away from zero; a binary one beyond 2^63-1 is capped.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any, Final, Literal

Format = Literal["BinarySI", "DecimalSI", "DecimalExponent"]

_INT64_MAX: Final = 2**63 - 1
_NANO: Final = -9
_MAX_DIGITS: Final = 18
_MAX_EXPONENT: Final = 10_000

_PARTS = re.compile(r"([+-]?)(0*)([0-9]*)(?:\.([0-9]*))?([eEinumkKMGTP]*(?:[-+]?[0-9]*))")
_REGEXP: Final = "^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$"
_BINARY: Final = {"Ki": 10, "Mi": 20, "Gi": 30, "Ti": 40, "Pi": 50, "Ei": 60}
_DECIMAL: Final = dict(zip(("n", "u", "m", "", *"kMGTPE"), range(-9, 19, 3), strict=True))
_DECIMAL_SUFFIXES: Final = {exponent: suffix for suffix, exponent in _DECIMAL.items()}
_BINARY_SUFFIXES: Final = {exponent: suffix for suffix, exponent in _BINARY.items()}


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
    """

    __slots__ = ("decimal", "derived", "format", "nanos", "scale", "text", "value")
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
    ) -> None:
        self.value = value
        self.scale = scale
        self.format = format
        self.decimal = decimal
        self.text = text
        self.derived = derived
        self.nanos: int = value * 10 ** (scale - _NANO)

    @classmethod
    def from_nanos(cls, nanos: int, format: Format = "DecimalSI") -> Quantity:  # noqa: A002
        """The amount of so many 10^-9, kept as a 64-bit integer where that can be."""
        value, scale = nanos, _NANO
        while value % 10 == 0 and value != 0 and scale < 0:
            value, scale = value // 10, scale + 1
        if value == 0:
            scale = 0
        return cls(value, scale, format, decimal=not _fits(value))

    def __eq__(self, other: object) -> bool:
        """Same amount, whatever the notation."""
        return self.nanos == other.nanos if isinstance(other, Quantity) else NotImplemented

    def __hash__(self) -> int:
        return hash(self.nanos)

    def __lt__(self, other: Quantity) -> bool:
        return self.nanos < other.nanos

    def __repr__(self) -> str:
        return f"Quantity({str(self)!r})"

    def __str__(self) -> str:
        """The text it was parsed from where apimachinery keeps that, else the canonical form."""
        return self.text or self.canonical()

    def compare(self, other: Quantity) -> int:
        """-1, 0 or 1."""
        return (self.nanos > other.nanos) - (self.nanos < other.nanos)

    def sign(self) -> int:
        """-1, 0 or 1."""
        return (self.value > 0) - (self.value < 0)

    def as_int64(self) -> int | None:
        """The amount as a 64-bit integer; None if it is not kept as one (``AsInt64``)."""
        if self.decimal or self.scale < 0:
            return None
        value: int = self.value * 10**self.scale
        return value if _fits(value) else None

    def as_float(self) -> float:
        """``AsApproximateFloat64``: the value times a power of ten, each rounded to a double."""
        try:
            base = float(self.value)
            return base if self.scale == 0 else base * float(f"1e{self.scale}")
        except OverflowError:
            return float("inf") if self.value > 0 else float("-inf")

    def add(self, other: Quantity, *, derived: bool = False) -> Quantity:
        """The sum; a zero takes the other's format."""
        return self._sum(other, other.value, other.value, derived=derived)

    def sub(self, other: Quantity, *, derived: bool = False) -> Quantity:
        """The difference; a zero takes the other's format."""
        quick = -other.value
        if other.value == -_INT64_MAX - 1:
            quick = other.value  # apimachinery negates the 64-bit integer, which wraps
        return self._sum(other, quick, -other.value, derived=derived)

    def _sum(self, other: Quantity, quick: int, exact: int, *, derived: bool) -> Quantity:
        """The sum with ``quick`` as a 64-bit integer where that does, else with ``exact``."""
        kept: Format = other.format if self.value == 0 else self.format
        scale = min(self.scale, other.scale)
        if not self.decimal and not other.decimal:
            if quick == 0:
                return Quantity(self.value, self.scale, kept, derived=derived)
            if self.value == 0:
                return Quantity(quick, other.scale, kept, derived=derived)
            left = self.value * 10 ** (self.scale - scale)
            right = quick * 10 ** (other.scale - scale)
            if _fits(left) and _fits(right) and _fits(left + right):
                return Quantity(left + right, scale, kept, derived=derived)
        total = self.value * 10 ** (self.scale - scale) + exact * 10 ** (other.scale - scale)
        return Quantity(total, scale, kept, decimal=True, derived=derived)

    def canonical(self) -> str:
        """The canonical form (``CanonicalizeBytes``): no fraction, the largest exact suffix."""
        if self.value == 0:
            return "0"
        whole = self.nanos % 10**9 == 0
        if self.format == "BinarySI" and whole and abs(self.nanos) >= 1024 * 10**9:
            amount, exponent = self.nanos // 10**9, 0
            while amount % 1024 == 0 and exponent < 60:
                amount, exponent = amount // 1024, exponent + 10
            return f"{amount}{_BINARY_SUFFIXES.get(exponent, '')}"
        amount, exponent = self.value, self.scale
        while amount % 10 == 0:
            amount, exponent = amount // 10, exponent + 1
        while exponent % 3:
            amount, exponent = amount * 10, exponent - 1
        if self.format == "DecimalExponent":
            return f"{amount}e{exponent}" if exponent else str(amount)
        return f"{amount}{_DECIMAL_SUFFIXES.get(exponent, '')}"


def _suffix(suffix: str) -> tuple[int, int, Format]:
    """(base, exponent, format) of a suffix."""
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


def _rounded(value: int, scale: int) -> tuple[int, int]:
    """The value at a scale of at least nano, rounded away from zero."""
    if scale >= _NANO:
        return value, scale
    quotient, remainder = divmod(abs(value), 10 ** (_NANO - scale))
    quotient += remainder > 0
    return (-quotient if value < 0 else quotient), _NANO


@lru_cache(maxsize=4096)
def parse_quantity(text: str) -> Quantity:
    """A quantity from its text (``resource.ParseQuantity``).

    Raises QuantityError: with apimachinery's message; also for exponents beyond 10,000, where
    apimachinery would compute numbers of that many digits.
    """
    if text == "0":
        return Quantity(0, 0, "DecimalSI", text=text)
    match = _PARTS.fullmatch(text) if text else None
    if match is None or len(text) > 1024:
        raise QuantityError(f"quantities must match the regular expression '{_REGEXP}'")
    sign, _zeros, whole, fraction, suffix = match.groups()
    if fraction is None and not whole and not suffix:
        return Quantity(0, 0, "DecimalSI")  # only zeros, or nothing after the sign
    fraction = fraction or ""
    digits = (whole or "0") + fraction
    base, exponent, kept = _suffix(suffix)
    quick = _quick(digits, len(fraction), base, exponent, kept, text)
    if quick is not None:
        value, scale, shown = quick
        return Quantity(-value if sign == "-" else value, scale, kept, text=shown)
    if not _zeros and not whole and not fraction:
        raise QuantityError("unable to parse numeric part of quantity")
    value, scale = int(digits), -len(fraction)
    if base == 10:
        scale += exponent
    else:
        value <<= exponent
    value, scale = _rounded(value, scale)
    if kept == "BinarySI":
        if value * 10 ** (scale - _NANO) > _INT64_MAX * 10**9:
            value, scale = _INT64_MAX, 0
        elif 0 < value * 10 ** (scale - _NANO) < 10**9:
            kept = "DecimalSI"
    return Quantity(-value if sign == "-" else value, scale, kept, decimal=True)


def _quick(
    digits: str, fraction: int, base: int, exponent: int, kept: Format, text: str
) -> tuple[int, int, str] | None:
    """(value, scale, text to keep) where a 64-bit integer is sure to do."""
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
    if kept == "BinarySI":
        shown = text if exponent % 10 == 0 and value & 7 else ""
    else:
        exact = scale % 3 == 0 and not digits.endswith("000") and digits[0] != "0"
        shown = text if exact else ""
    return result, scale, shown


def as_quantity(value: Any) -> Quantity:
    """A quantity as JSON carries it: a string, or a number that Kubernetes would accept.

    Raises QuantityError: it is neither, or its text is no quantity.
    """
    if isinstance(value, str):
        return parse_quantity(value.strip())
    if value is None:
        return Quantity(0, 0, "DecimalSI")
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return parse_quantity(str(value))
    raise QuantityError(f"a quantity is a string, not {type(value).__name__}")
