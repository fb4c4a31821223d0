"""Versions: parsing, precedence and the lenient form."""

from __future__ import annotations

import itertools

import pytest

from reference_allocator.api.semver import Semver, SemverError, normalize_semver, parse_semver

ORDERED = """
    0.9.9 1.0.0-1 1.0.0-2 1.0.0-10 1.0.0-alpha 1.0.0-alpha.1 1.0.0-alpha.beta 1.0.0-beta
    1.0.0-beta.2 1.0.0-beta.11 1.0.0-rc.1 1.0.0 1.0.1 1.1.0 2.0.0 10.0.0
""".split()


def test_precedence_is_that_of_the_specification() -> None:
    versions = [parse_semver(text) for text in ORDERED]
    for (i, left), (j, right) in itertools.product(enumerate(versions), repeat=2):
        assert left.compare(right) == (i > j) - (i < j), (str(left), str(right))


def test_build_metadata_is_kept_and_never_compared() -> None:
    first, second = parse_semver("1.2.3+a.b"), parse_semver("1.2.3+c")
    assert first == second
    assert hash(first) == hash(second)
    assert str(first) == "1.2.3+a.b"


@pytest.mark.parametrize("text", ["1.2.3", "1.2.3-a.1+b.2", "1.2.3-a-b", "0.0.0"])
def test_text_survives_a_round_trip(text: str) -> None:
    assert str(parse_semver(text)) == text


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "Version string empty"),
        ("1.2", "No Major.Minor.Patch elements found"),
        ("a.2.3", 'Invalid character(s) found in major number "a"'),
        ("1.b.3", 'Invalid character(s) found in minor number "b"'),
        ("1.2.c", 'Invalid character(s) found in patch number "c"'),
        ("01.2.3", 'Major number must not contain leading zeroes "01"'),
        ("1.2.3-", "Prerelease is empty"),
        ("1.2.3-01", 'Numeric PreRelease version must not contain leading zeroes "01"'),
        ("1.2.3-a_b", 'Invalid character(s) found in prerelease "a_b"'),
        ("1.2.3+", "Build meta data is empty"),
        ("1.2.3+a_b", 'Invalid character(s) found in build meta data "a_b"'),
        ("1..3", 'strconv.ParseUint: parsing "": invalid syntax'),
    ],
)
def test_bad_versions_are_explained_like_upstream(text: str, message: str) -> None:
    with pytest.raises(SemverError) as error:
        parse_semver(text)
    assert str(error.value) == message


@pytest.mark.parametrize(
    ("text", "strict"),
    [
        ("v1.2.3", "1.2.3"),
        ("1", "1.0.0"),
        ("1.2", "1.2.0"),
        ("v01.002.0003", "1.2.3"),
        ("0", "0.0.0"),
        ("1.2.3-rc1", "1.2.3-rc1"),
    ],
)
def test_normalization_gives_three_plain_numbers(text: str, strict: str) -> None:
    assert normalize_semver(text) == strict


def test_a_short_version_with_a_pre_release_cannot_be_normalized() -> None:
    with pytest.raises(SemverError, match="short version"):
        normalize_semver("1.2-a")


def test_a_version_equals_nothing_else() -> None:
    assert (Semver(1, 0, 0) == "1.0.0") is False
