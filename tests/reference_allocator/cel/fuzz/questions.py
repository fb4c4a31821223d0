"""Random questions for the oracle: an expression, a device and what the expression may use.

A seed and a number name a question for good.
"""

from __future__ import annotations

from random import Random
from typing import Any, Final

from tests.reference_allocator.cel.fuzz.corners import corner_question
from tests.reference_allocator.cel.fuzz.generator import Generator

Json = dict[str, Any]

_DRIVERS: Final = ("dra.example.com", "dra.example.com", "other.io", "")
_TEXTS: Final = ("gpu", "", "a", "1.2.3", "h\u00e9", "10.0.0.1", "a,b,c", "64Gi")
_INTS: Final = (0, 1, 5, -1, 2**63 - 1, -(2**63))
_VERSIONS: Final = ("8.0.1", "1.2.3", "1.0.0-rc.1", "1.0.0+build", "0.0.0")
_QUANTITIES: Final = (
    *("64Gi", "1500m", "1", "0", "-5", "1e3", "0.5", "9223372036854775807", "1n"),
    *("2000E", "9Ei", "1e400", "1234567890123456789012345678901"),
)
_NAMES: Final = ("type", "n", "b", "v", "zero", "l", "ls", "other.io/x", "other.io/type")
_NOISE: Final = "()[]{}.,?:\"'!=<>&|+-*/%` \t\n0a_\\\u00e9#;"


def question(seed: str, number: int, corner: str = "") -> Json:
    """The question of a seed and a number; with ``corner`` one of that corner only."""
    random = Random(f"{seed}-{number}")
    if corner or random.random() < 0.25:
        return {"id": f"{seed}-{number}", **corner_question(random, corner)}
    result: Json = {
        "id": f"{seed}-{number}",
        "expression": _expression(random),
        "device": _device(random),
    }
    roll = random.random()
    if roll < 0.12:
        result["env"] = "NewExpressions"
        result["features"] = {
            "consumableCapacity": random.random() < 0.5,
            "listTypeAttributes": random.random() < 0.5,
        }
    elif roll < 0.2:
        result["derived"] = True
    return result


def _expression(random: Random) -> str:
    generator = Generator(random.getrandbits(64))
    roll = random.random()
    text = generator.value() if roll < 0.1 else generator.expression()
    while len(text) > 3000:
        text = generator.expression()
    if random.random() < 0.03:  # mostly no expression any more
        for _ in range(random.randint(1, 2)):
            at = random.randrange(len(text) + 1)
            text = text[:at] + random.choice(_NOISE) + text[at + random.randint(0, 1) :]
    return text


def _device(random: Random) -> Json:
    def value(name: str) -> Json:
        if random.random() < 0.03:
            return random.choice(({}, {"version": "1.2"}, {"version": "v1.0.0"}, {"int": 3}))
        kinds: dict[str, Json] = {
            "n": {"int": random.choice(_INTS)},
            "b": {"bool": random.random() < 0.5},
            "v": {"version": random.choice(_VERSIONS)},
            "zero": {"int": 0},
            "l": {"ints": random.choices(_INTS, k=random.randint(1, 4))},
            "ls": random.choice(
                (
                    {"strings": random.choices(_TEXTS, k=random.randint(1, 3))},
                    {"bools": [True, False]},
                    {"versions": random.choices(_VERSIONS, k=2)},
                )
            ),
        }
        return kinds.get(name, {"string": random.choice(_TEXTS)})

    device: Json = {"driver": random.choice(_DRIVERS)}
    names = random.sample(_NAMES, random.choice((0, 3, len(_NAMES), len(_NAMES))))
    device["attributes"] = {name: value(name) for name in names}
    device["capacity"] = {
        name: {"value": random.choice(_QUANTITIES)}
        for name in random.sample(("memory", "cores", "other.io/c"), random.randint(0, 3))
    }
    if random.random() < 0.5:
        device["allowMultipleAllocations"] = random.random() < 0.7
    return device
