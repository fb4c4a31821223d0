"""Random expressions about corners that a generator of well-typed calls seldom meets.

Each corner is a production by name; what it once found is in ``golden/found.in.ndjson``. Where a
list says more than a bool, the question is a derived attribute, whose answer is the whole list.
"""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any, Final

from tests.reference_allocator.cel.fuzz.texts import text_question

Json = dict[str, Any]

_DEVICE: Final[Json] = {
    "driver": "d",
    "attributes": {
        "v": {"version": "1.2.3"},
        "n": {"int": 1},
        "s": {"string": "a"},
        "b": {"bool": True},
        "l": {"ints": [2, 1, 2]},
        "ls": {"strings": ["a", "b"]},
    },
    "capacity": {"c": {"value": "1Gi"}},
}
_A: Final = "device.attributes['d']"
_KEYS: Final = (
    *("1", "1u", "1.0", "2.5", "true", "'a'", "b'a'", "null", "[1]", "{'a': 1}", "int", "0.0/0.0"),
    *("duration('90m')", "timestamp(0)", "semver('1.2.3')", "quantity('1')", "ip('::1')"),
    *("cidr('10.0.0.0/8')", "url('https://a.b')", "format.uuid()", "optional.of(1)"),
    *(f"{_A}.{name}" for name in ("v", "n", "s", "b", "l", "ls")),
    *("int('1')", "string('a')", "dyn('a')", "double('1')", "uint('1')", "bytes('a')"),
)
_PATTERNS: Final = (
    "$",
    "^",
    "\\\\b",
    "a*",
    "(?m)^",
    "(?m)$",
    "",
    "a|",
    "(ab)?",
    "b",
    "\\\\B",
    ".?",
)
_TEXTS: Final = ("", "a", "abc", "a b", "baaac", "abab", "a\\na", "\\u00e9a\\u00e9", "aaa")
_NAMES: Final = (
    "-",
    "a-",
    "--",
    "a",
    "",
    "a.b",
    "a.-",
    "A",
    "\\u00e9-",
    "a-b",
    "1-",
    "a/b",
    "a/b/c",
)
_FORMATS: Final = (
    *("dns1123Label", "dns1123Subdomain", "dns1035Label", "qualifiedName", "labelValue"),
    *("dns1123LabelPrefix", "dns1123SubdomainPrefix", "dns1035LabelPrefix"),
)
_ZONES: Final = (
    *("01:60", "99:99", "+24:00", "-24:00", "00:-30", "9999:00", "Local", "UTC", "", "1:", ":1"),
    *("US/Pacific", "Europe/Berlin", "Asia/Tokyo", "Africa/Monrovia", "+1:+1", "1:2:3", "02:30"),
)
_MOMENTS: Final = (0, -62135596800, -62135590000, -62130000000, 253402300799, 1709208000)
_ACCESSORS: Final = (
    *("getFullYear", "getMonth", "getDate", "getDayOfMonth", "getDayOfWeek", "getDayOfYear"),
    *("getHours", "getMinutes", "getSeconds"),
)
_NESTS: Final = (
    *(("(", "true", ")"), ("1+(", "1", ")"), ("1*1+(", "1", ")"), ("true==(", "true", ")")),
    *(("1+1*(", "1", ")"), ("[", "1", "]"), ("!(", "true", ")"), ("{1:", "1", "}")),
    *(("false?false:", "true", ""), ("true?(", "true", "):false"), ("true&&(", "true", ")")),
    *(("int(", "1", ")"), ("", "1", "+1"), ("", "true", "==true"), ("", "dyn({'a':1})", ".a")),
)


def _sorting(random: Random) -> Json:
    """``sortBy`` and ``sort`` of more items than Go sorts by insertion, with equal keys and NaN."""
    size = random.choice((3, 12, 13, 20, 49, 50, 60, 120, 300))
    keys = ("x % 2", "x % 3", "-x", "x * 7 % 5", "string(x % 4)", "[0.0/0.0, 1.0][x % 2]", "x / 9")
    key = random.choice((*keys, "x > 7", "duration('1s')", "bytes(string(x % 2))", "0.0/0.0"))
    source = f"lists.range({size})"
    if random.random() < 0.3:
        source = f"{source}.map(x, x * {random.randint(1, 99)} % {random.randint(1, 30)})"
    return {"expression": f"{source}.sortBy(x, {key})", "derived": True}


def _patterns(random: Random) -> Json:
    """``findAll`` of patterns that match nothing, at the end too."""
    pattern = "".join(random.choices(_PATTERNS, k=random.choice((1, 1, 2))))
    limit = random.choice(("", "", ", 2", ", -1", ", 0"))
    call = f"'{random.choice(_TEXTS)}'.findAll('{pattern}'{limit})"
    return {"expression": call, "derived": True}


def _formats(random: Random) -> Json:
    """Names that are nearly right."""
    name = "".join(random.choices(_NAMES, k=random.choice((1, 1, 2))))
    name = name * random.choice((1, 1, 1, 63, 64, 254))
    call = f"format.{random.choice(_FORMATS)}().validate('{name}').orValue(['none'])"
    return {"expression": call, "derived": True}


def _flattening(random: Random) -> Json:
    """``flatten`` of lists that are flat, mixed or dynamic."""
    items = ("1", "[1]", "[[1], 2]", "dyn([1])", f"{_A}.n", f"{_A}.l", "[]", "dyn(1)")
    values = ", ".join(random.choices(items, k=random.randint(0, 3)))
    receiver = random.choice((f"[{values}]", f"dyn([{values}])", random.choice(items)))
    depth = random.choice(("", "", "1", "2", "0", "-1", f"{_A}.n", "dyn('a')"))
    observed = random.choice((".size() == 1", "[0] == 1", " == [1]", ".flatten() == []"))
    return {"expression": f"{receiver}.flatten({depth}){observed}"}


def _keys(random: Random) -> Json:
    """Everything as a key of a map, as what is looked for, and among constants."""
    key, other, third = (_any(random) for _ in range(3))
    shapes = (
        f"{key} in {{{other}: 1}}",
        f"{key} in [{other}, {third}]",
        f"{{{key}: 1}}.size() == 1",
        f"{{{key}: 1, {other}: 2}}.size() == 2",
        f"{{{key}: 1}}[?{other}].hasValue()",
        f"{{{key}: 1}}[{other}] == 1",
        f"{{{key}: 1}} == {{{other}: 1}}",
        f"[1].transformMapEntry(i, x, {{{key}: 1}}).size() == 1",
        f"[1, 2].transformMapEntry(i, x, {{{_hashed(random)}: x}}).size() == 1",
        f"{{'a': 1}}.exists(k, {key} in {{{other}: 1}}) || true",
        f"[{key}, {other}].join() == 'a'",
    )
    return {"expression": random.choice(shapes)}


def _hashed(random: Random) -> str:
    """A key that Go does not tell apart by its address, which is another one here."""
    key = _any(random)
    return "'a'" if any(sign in key for sign in ("[", "{", "quantity", "url", "optional")) else key


def _any(random: Random) -> str:
    key = random.choice(_KEYS)
    return f"dyn({key})" if random.random() < 0.5 else key


def _spacing(random: Random) -> Json:
    """Words that run into their neighbours."""
    tokens = random.choice(
        (
            ("'n'", "in", _A),
            ("1", "in", "[", "1", "]"),
            ("true", "&&", _A, ".", "b"),
            ("[1]", ".", "all", "(", "x", ",", "x", "in", "[", "x", "]", ")"),
            ("1u", "in", "{", "1", ":", "true", "}"),
            ("null", "==", "null"),
            ("true", "?", "1", "in", "[1]", ":", "false"),
            ("-", "1", "in", "[", "-", "1", "]"),
        )
    )
    return {"expression": "".join(f"{token}{random.choice(('', ' '))}" for token in tokens)}


def _zones(random: Random) -> Json:
    """Calendar accessors with odd zones, near the ends of the calendar too."""
    zone = random.choice(_ZONES)
    if random.random() < 0.2:
        position = random.randint(0, len(zone))
        zone = (
            zone[:position]
            + random.choice("0123456789:+-")
            + zone[position + random.randint(0, 1) :]
        )
    seconds = random.choice(_MOMENTS) + random.choice((0, 0, 3600, 86400 * 200))
    moment = f"timestamp({min(seconds, 253402300799)})"
    return {"expression": f"{moment}.{random.choice(_ACCESSORS)}('{zone}')", "derived": True}


def _nesting(random: Random) -> Json:
    """Nests at the parser's limits."""
    prefix, inner, suffix = random.choice(_NESTS)
    count = random.choice((60, 82, 83, 84, 123, 124, 125, 126, 248, 249, 250, 251))
    text = prefix * count + inner + suffix * count
    return {"expression": f"{text} == {random.choice(('1', 'true', 'dyn(1)'))}"}


def _missing(random: Random) -> Json:
    """An attribute that is not there as an argument."""
    calls = (
        *("isLessThan({})", "isGreaterThan({})", "compareTo({}) == 1", "indexOf({}) == 1"),
        *("containsIP({})", "startsWith({})", "matches({})", "includes({})", "contains({})"),
        *("add({}) == 1", "split({}) == []", "charAt({}) == 'a'", "find({}) == 'a'"),
    )
    names = random.sample(("nope", "n", "s", "v"), 2)
    receiver, argument = (f"{_A}.{name}" for name in names)
    call = random.choice(calls).format(argument)
    return {"expression": f"{receiver}.{call}"}


def _undeclared(random: Random) -> Json:
    """Names that nothing has, in macros that repeat what they are given."""
    targets = tuple(
        """
        nope() optional.of(1).nope() [nope()] [1].nope() nope optional.of(1)
    """.split()
    )
    macros = (
        *("optMap(x, x)", "optMap(x, nope())", "optFlatMap(x, x)", "sortBy(x, x)", "all(x, nope)"),
        *("map(x, x + nope)", "transformMap(k, v, nope)", "optMap(x, x + 'a')"),
    )
    target, macro = random.choice(targets), random.choice(macros)
    return {"expression": f"{target}.{macro}{random.choice(('', '.hasValue()', ' == 1'))}"}


def _texts(random: Random) -> Json:
    """A function that parses a text, and one that is nearly right."""
    expression, text = text_question(random)
    device = {"driver": "d", "attributes": {"t": {"string": text}}}
    return {"expression": expression, "device": device}


CORNERS: Final[dict[str, Callable[[Random], Json]]] = {
    "flattening": _flattening,
    "formats": _formats,
    "keys": _keys,
    "missing": _missing,
    "nesting": _nesting,
    "patterns": _patterns,
    "sorting": _sorting,
    "spacing": _spacing,
    "texts": _texts,
    "undeclared": _undeclared,
    "zones": _zones,
}


def corner_question(random: Random, name: str = "") -> Json:
    """The expression, the device and what else the question says; of any corner by default."""
    return {"device": _DEVICE, **CORNERS[name or random.choice(sorted(CORNERS))](random)}
