"""Semantic versions as Kubernetes compares them (``github.com/blang/semver/v4``).

Build metadata is kept but never compared. The messages are the Go library's, because a version
that does not parse is reported with them.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Final

from reference_allocator.api.quoting import go_quote

_NUMBERS: Final = frozenset("0123456789")
_ALPHANUM: Final = frozenset("abcdefghijklmnopqrstuvwyxzABCDEFGHIJKLMNOPQRSTUVWXYZ-0123456789")
_UINT64: Final = 2**64


class SemverError(ValueError):
    """The text is no version; ``str()`` is the Go library's message."""


class Semver:
    """An immutable version.

    Attributes:
        pre: the parts of the pre-release, numbers as int.
        precedence: orders versions when compared as a tuple; a release follows its pre-releases.
    """

    __slots__ = ("build", "major", "minor", "patch", "pre", "precedence")
    cel_type = "kubernetes.Semver"

    def __init__(
        self,
        major: int,
        minor: int,
        patch: int,
        pre: tuple[int | str, ...] = (),
        build: tuple[str, ...] = (),
    ) -> None:
        self.major = major
        self.minor = minor
        self.patch = patch
        self.pre = pre
        self.build = build
        # Numbers sort before words; a shorter pre-release before one that extends it.
        ranks = tuple((1, 0, p) if isinstance(p, str) else (0, p, "") for p in pre)
        self.precedence = (major, minor, patch, 0 if pre else 1, ranks)

    def __eq__(self, other: object) -> bool:
        """Return whether both have one precedence: build metadata does not count."""
        return self.precedence == other.precedence if isinstance(other, Semver) else NotImplemented

    def __hash__(self) -> int:
        return hash(self.precedence)

    def __lt__(self, other: Semver) -> bool:
        return self.precedence < other.precedence

    def __repr__(self) -> str:
        return f"Semver({str(self)!r})"

    def __str__(self) -> str:
        text = f"{self.major}.{self.minor}.{self.patch}"
        if self.pre:
            text += "-" + ".".join(str(identifier) for identifier in self.pre)
        return f"{text}+{'.'.join(self.build)}" if self.build else text

    def compare(self, other: Semver) -> int:
        """Return -1, 0 or 1, as this version is before, equal to or after the other."""
        return (self.precedence > other.precedence) - (self.precedence < other.precedence)


def _parse_number(text: str, element: str) -> int:
    if not set(text) <= _NUMBERS:
        raise SemverError(f"Invalid character(s) found in {element} number {go_quote(text)}")
    if len(text) > 1 and text[0] == "0":
        message = f"{element.capitalize()} number must not contain leading zeroes {go_quote(text)}"
        raise SemverError(message)
    return _parse_uint64(text)


def _parse_uint64(text: str) -> int:
    if not text:
        raise SemverError('strconv.ParseUint: parsing "": invalid syntax')
    if len(text) > 20 or int(text) >= _UINT64:
        raise SemverError(f"strconv.ParseUint: parsing {go_quote(text)}: value out of range")
    return int(text)


def _parse_pre_release(text: str) -> int | str:
    if not text:
        raise SemverError("Prerelease is empty")
    if set(text) <= _NUMBERS:
        if len(text) > 1 and text[0] == "0":
            message = f"Numeric PreRelease version must not contain leading zeroes {go_quote(text)}"
            raise SemverError(message)
        return _parse_uint64(text)
    if not set(text) <= _ALPHANUM:
        raise SemverError(f"Invalid character(s) found in prerelease {go_quote(text)}")
    return text


def _parse_build(text: str) -> str:
    if not text:
        raise SemverError("Build meta data is empty")
    if not set(text) <= _ALPHANUM:
        raise SemverError(f"Invalid character(s) found in build meta data {go_quote(text)}")
    return text


@lru_cache(maxsize=4096)
def parse_semver(text: str) -> Semver:
    """Return the version of a text ``major.minor.patch[-pre][+build]``.

    Raises SemverError: with the Go library's message.
    """
    if not text:
        raise SemverError("Version string empty")
    elements = text.split(".", 2)
    if len(elements) != 3:
        raise SemverError("No Major.Minor.Patch elements found")
    major, minor = _parse_number(elements[0], "major"), _parse_number(elements[1], "minor")
    patch_and_pre, has_build, build = elements[2].partition("+")
    patch_text, has_pre, pre = patch_and_pre.partition("-")
    patch = _parse_number(patch_text, "patch")
    pre_parts = tuple(map(_parse_pre_release, pre.split("."))) if has_pre else ()
    build_parts = tuple(map(_parse_build, build.split("."))) if has_build else ()
    return Semver(major, minor, patch, pre_parts, build_parts)


def normalize_semver(text: str) -> str:
    """Return the strict spelling of a lenient one: no ``v``, no leading zeros, three parts.

    Source: ``normalizeAndParse`` of ``k8s.io/apiserver/pkg/cel/library/semverlib.go``.
    Raises SemverError: a shortened version has a pre-release or build metadata.
    """
    numbers = text.removeprefix("v").split(".", 2)
    for index, number in enumerate(numbers):
        if len(number.encode(errors="surrogatepass")) > 1:  # Go counts bytes
            stripped = number.lstrip("0")
            numbers[index] = stripped if stripped[:1].isdigit() else "0" + stripped
    if len(numbers) < 3:
        if set(numbers[-1]) & {"+", "-"}:
            raise SemverError("short version cannot contain PreRelease/Build meta data")
        numbers += ["0"] * (3 - len(numbers))
    return ".".join(numbers)
