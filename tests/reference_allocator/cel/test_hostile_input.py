"""Expressions that try to break out, to exhaust memory or stack, or to confuse threads."""

from __future__ import annotations

import contextlib
import itertools
import random
import threading
import time
from typing import Any

import pytest

from reference_allocator.cel import (
    DYN,
    CelCompileError,
    CelCostError,
    CelDevice,
    CelRuntimeError,
    compile_expression,
    compile_selector,
)
from reference_allocator.cel.compile import MAX_LENGTH

DEVICE = CelDevice.from_api("d", {"attributes": {"a": {"string": "x"}, "n": {"int": 5}}})

HOSTILE = [
    "'",
    '"',
    "\\",
    "'''",
    '"""',
    "\n",
    "\r",
    "\u2028",
    "\x00",
    "#",
    "); import os; (",
    "' + __import__('os').system('true') + '",
    '" + __import__("os").system("true") + "',
    "{0.__class__}",
    "%s%n",
    "${x}",
    "\U0001f600",
    "]",
    "\\x27",
    "\\N{DIGIT ONE}",
]


def quoted(text: str) -> str:
    escaped = "".join(f"\\U{ord(char):08x}" for char in text)
    return f'"{escaped}"'


@pytest.mark.parametrize("text", HOSTILE)
def test_strings_stay_strings(text: str) -> None:
    program = compile_expression(f"[dyn({quoted(text)}), dyn({{{quoted(text)}: 1}})]", {})
    assert program.evaluate({}) == [text, {text: 1}]


@pytest.mark.parametrize("text", HOSTILE)
def test_strings_as_keys_and_patterns_stay_data(text: str) -> None:
    expression = (
        f"object[{quoted(text)}] == 1 && {quoted(text)} in object"
        f" && {quoted(text)}.startsWith({quoted(text)}) && object[?{quoted(text)}].orValue(2) == 1"
    )
    assert compile_expression(expression, {"object": DYN}).evaluate({"object": {text: 1}}) is True


@pytest.mark.parametrize(
    "name",
    ["__class__", "__import__", "__builtins__", "x", "evaluate", "scope", "k1", "t1", "None"],
)
def test_names_never_reach_python(name: str) -> None:
    expression = f"object.{name} == 1 && [2].exists({name}, {name} == 2)"
    program = compile_expression(expression, {"object": DYN})
    assert program.evaluate({"object": {name: 1}}) is True
    with pytest.raises(CelRuntimeError, match=f"no such key: {name}"):
        program.evaluate({"object": {}})


def test_expressions_beyond_the_api_length_are_refused() -> None:
    with pytest.raises(CelCompileError, match="longer than"):
        compile_selector(" " * MAX_LENGTH + "true")


@pytest.mark.parametrize(
    "expression",
    [
        "(" * 3000 + "true" + ")" * 3000,
        "[" * 3000 + "]" * 3000,
        "!" * 9000 + "true",
        "-" * 9000 + "1 == 1",
        "true" + " || true" * 1000,
        "1" + "+1" * 4000 + " == 1",
        "a" + ".a" * 4000,
        "a" + "[a" * 3000 + "]" * 3000,
        "{1:" * 2000 + "1" + "}" * 2000,
        "!(" * 240 + "true" + ")" * 240,
        "[1].map(x, " * 100 + "1" + ")" * 100 + " == []",
        "true ? true : " * 600 + "true",
        "f(" * 2000 + ")" * 2000,
        "x.all(x, " * 500 + "true" + ")" * 500,
        '"' + "\\" * 9000,
        "/" * 9000,
        "'" * 9001,
        "`" * 9000,
        "0" * 10000 + " == 0",
        "9" * 10000 + " == 0",
        "1e" + "9" * 9000 + " == 0.0",
    ],
)
def test_nesting_and_length_are_bounded(expression: str) -> None:
    started = time.process_time()
    with contextlib.suppress(CelCompileError, CelRuntimeError):
        compile_selector(expression).matches(DEVICE)
    assert time.process_time() - started < 5


def test_random_text_gives_an_error_or_a_value_and_nothing_else() -> None:
    generator = random.Random(20)
    pieces = [
        "device",
        ".",
        "[",
        "]",
        "(",
        ")",
        "{",
        "}",
        "?",
        ":",
        ",",
        "!",
        "-",
        "+",
        "*",
        "/",
        "%",
        "&&",
        "||",
        "==",
        "!=",
        "<",
        "in",
        "has",
        "all",
        "exists",
        "map",
        "1",
        "1u",
        "1.5",
        "'a'",
        "x",
        "true",
        "null",
        "driver",
        "attributes",
        "semver",
        "quantity",
        '"',
        "'",
        "\\",
        "`",
        "optional.of",
        "cel.bind",
        "size",
    ]
    for _ in range(3000):
        text = " ".join(generator.choices(pieces, k=generator.randint(1, 12)))
        with contextlib.suppress(CelCompileError, CelRuntimeError):
            compile_selector(text).matches(DEVICE)


TEN = "[1,2,3,4,5,6,7,8,9,10]"
MANY = "lists.range(100000).map(x, x)"
LONG = {
    "steps": f"{TEN}.all(a, {TEN}.all(b, {TEN}.all(c, {TEN}.all(d, {TEN}.all(e, {TEN}.all(f,"
    " a + b + c + d + e + f > 0)))))) || true",
    "texts": "cel.bind(a, 'ab', " + "cel.bind(a, a + a, " * 40 + "a == ''" + ")" * 41,
    "lists": "cel.bind(a, [1], " + "cel.bind(a, a + a, " * 40 + "a == []" + ")" * 41,
    "elements": f"cel.bind(l, {MANY}, l.all(x, l.lastIndexOf(-1) < 0))",
}


@pytest.mark.parametrize("expression", LONG.values(), ids=LONG)
def test_costs_stop_what_would_run_long_and_nothing_absorbs_that(expression: str) -> None:
    with pytest.raises(CelCostError, match="actual cost limit exceeded"):
        compile_selector(expression).matches(DEVICE)


def test_a_selector_can_be_used_by_many_threads() -> None:
    expression = (
        "device.attributes['d'].n > 3 && [1, 2, 3].map(x, x * device.attributes['d'].n)"
        ".exists(y, y == 2 * device.attributes['d'].n)"
        " && (device.attributes['d'].?nope.orValue(1) == 1 || device.attributes['d'].nope == 1)"
    )
    devices = [
        (CelDevice.from_api("d", {"attributes": {"n": {"int": n}}}), n > 3) for n in range(8)
    ]
    wrong: list[Any] = []

    def work(seed: int) -> None:
        generator = random.Random(seed)
        for index in range(300):
            # Different text per iteration, so that threads also compile at the same time.
            selector = compile_selector(f"{expression} && {index % 20} >= 0")
            device, expected = generator.choice(devices)
            if selector.matches(device) is not expected:
                wrong.append((seed, index))

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_identifiers_of_all_lengths_round_trip() -> None:
    for length, first in itertools.product((1, 2, 63, 255), "a_Z"):
        name = first * length
        program = compile_expression(f"object.{name}", {"object": DYN})
        assert program.evaluate({"object": {name: length}}) == length
