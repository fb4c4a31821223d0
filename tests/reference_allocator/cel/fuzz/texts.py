"""Random texts for functions that parse one, most of them nearly right: there the errors are."""

from __future__ import annotations

import random
import re
from typing import Final, NamedTuple

_TEXT: Final = "device.attributes['d'].t"


class _Family(NamedTuple):
    """An expression about ``TEXT``, texts that mean something to it, and characters to put in."""

    expression: str
    texts: tuple[str, ...]
    characters: str


_URL: Final = (
    "http://a:80/x?y=z#f http://[::1]:80 http://[::1 http://a:x http://%zz http://a/%zz //a http:a "
    "HTTP://A http://u:p@h 1http://a : http://a: http://[fe80::1%25en0]:1 http://a?x=%zz "
    "mailto:a@b http://exä.com postgres://a:1,b:2/x http://a:1:2 https://[1.2.3.4] http://[::1]x "
    "ftp://a:b:3 http://%41 http://a%C3%A4 http://[::1%25%20] http://[::1%25%C3] //[::1] "
    "http://a[b] http://<a>"
)
_REGEX: Final = (
    r"a( [ a{2,1} (?i)a \pL \pl (?P<x>a) a** [[:alpha:]] x{1001} \Q (?=a) \1 [z-a] \p{greek} "
    r"a+{2} \ (?<n>a) [[:x:]] a{,2} \C \b \z (?<=a) (?<!a) (?<n (?P=n)"
)
_FAMILIES: Final = (
    _Family(
        "ip(TEXT).family() == 4",
        ("1.2.3.4", "::1.2.3.4", "fe80::1%e", "1:2:3:4:5:6:7:8", "::ffff:1.2.3.4", "1::2::3"),
        "0123456789abcdefg:.%",
    ),
    _Family(
        "cidr(TEXT).prefixLength() > 4",
        tuple(
            """
            10.0.0.0/8 fe80::1/64 / 1.2.3.4/33 1.2.3.4/08 fe80::1%e/64 ::ffff:1.2.3.4/96
        """.split()
        ),
        "0123456789./:f%+-x",
    ),
    _Family(
        "quantity(TEXT).asApproximateFloat() > 1.0",
        tuple(
            """
            1 1.5Gi 1e3 -1 1e-3 0.5m 1n 1e 12345678901234567890Ei .5 1ki
        """.split()
        ),
        "0123456789.eEKMGTPimnuk+- ",
    ),
    _Family(
        "semver(TEXT).major() > 1",
        tuple(
            """
            1.2.3 v1.2.3 1.2.3-rc.1+b 01.2.3 1.2.3- 1.2.3-01 1.2.99999999999999999999
        """.split()
        ),
        '0123456789.-+vabr_\u00e9\u0085"\\',
    ),
    _Family(
        "semver(TEXT, true).minor() > 1",
        ("v1", "1.2", "v01.02.3", "v", "1.2-rc", "\u00e9"),
        "0123.-+vab\u00e9",
    ),
    _Family(
        "duration(TEXT) > duration('1s')",
        ("1s", "1h1m", "-1.5h", "1", "1d", "1e3s", ".5s", "1.s", "99999999999h", "1µs", "+5s"),
        "0123456789.hmsnuµ-+e",
    ),
    _Family(
        "timestamp(TEXT).getFullYear() > 2000",
        (
            *("2020-01-01T00:00:00Z", "2020-02-30T00:00:00Z", "2020-01-01T24:00:00Z"),
            *("2020-01-01t00:00:00z", "2020-01-01T00:00:00.123456789123Z", "0000-01-01T00:00:00Z"),
            *tuple(
                """
                2020-01-01T00:00:00+25:00 2020-01-01T00:00:00+23:60 2020-01-01T2:00:00Z
                10000-01-01T00:00:00Z 2020-1-01T00:00:00Z
            """.split()
            ),
        ),
        "0123456789-:T.Z+",
    ),
    _Family(
        "url(TEXT).getHost() + url(TEXT).getPort() + url(TEXT).getEscapedPath() == 'a'",
        tuple(_URL.split()),
        'ab:[]%2541@/,.<>?# "',
    ),
    _Family("int(TEXT) > 1", ("1", "-1", " 1", "1_0", "9223372036854775808", "+1"), "0129+-x_. "),
    _Family("uint(TEXT) > 1u", ("1", "-1", "18446744073709551615", "1u"), "0123456789+-u"),
    _Family(
        "double(TEXT) > 1.0",
        ("1", "1e400", "nan", "inf", "0x1p-2", "1_0", "1.", "infinity", ".e1", "1e-400", "0x_1p1"),
        "0123456789.eE+-xpinfa_",
    ),
    _Family("bool(TEXT)", ("true", "TRUE", "t", "1", "tRue"), "truefTFalse01"),
    _Family(
        "TEXT == '' || TEXT.matches(TEXT)", tuple(_REGEX.split()), "abc()[]{}*+?\\|^$.-:12,dpPQ"
    ),
    _Family("base64.decode(TEXT).size() > 0", ("YQ==", "YQ", "YQ=", "Y Q=", "-_"), "YQab=+/-_ "),
)


def text_question(dice: random.Random) -> tuple[str, str]:
    """An expression, and the value of the text attribute ``t`` that it reads."""
    family = dice.choice(_FAMILIES)
    text = dice.choice(family.texts)
    for _ in range(dice.choice((0, 1, 1, 2))):
        position = dice.randint(0, len(text))
        new = dice.choice((dice.choice(family.characters), dice.choice(family.characters), ""))
        text = text[:position] + new + text[position + (dice.randint(0, 1) if new else 1) :]
    if dice.random() < 0.1:
        text = "".join(dice.choice(family.characters) for _ in range(dice.randint(0, 12)))
    # Ours refuses an exponent of a quantity beyond 10000, which Go takes its time for.
    if "quantity" in family.expression:
        text = re.sub(r"([eE][+-]?[0-9]{1,4})[0-9]*", r"\1", text)
    return family.expression.replace("TEXT", _TEXT), text
