"""Which values of a device a selector sees, under which names, and what a missing one gives."""

from __future__ import annotations

from typing import Any

import pytest

from reference_allocator.cel import CelDevice, CelRuntimeError, compile_derived, compile_selector

DEVICE: dict[str, Any] = {
    "attributes": {
        "s": {"string": "own"},
        "n": {"int": 3},
        "b": {"bool": True},
        "v": {"version": "1.2.3"},
        "l": {"ints": [1, 2]},
        "a.io/q": {"string": "qualified"},
        "a.io/both": {"string": "long"},
        "both": {"string": "short"},
        "a.io/deep/er": {"string": "slash"},
        "b.io/s": {"string": "foreign"},
        "/e": {"string": "no domain"},
    },
    "capacity": {"mem": {"value": "8Gi"}, "a.io/cores": {"value": 4}, "b.io/mem": {"value": "1"}},
}
A, B = 'device.attributes["a.io"]', 'device.attributes["b.io"]'
OTHER = 'device.capacity["z.io"]["mem"].isGreaterThan(quantity("1Gi"))'

CASES: dict[str, bool | str] = {
    f'{A}.s == "own"': True,
    f'{B}.s == "foreign"': True,
    f'{A}["q"] == "qualified"': True,
    f'{A}.both == "short"': True,
    f'size({A}) == 8 && {A}["both"] == "short"': True,
    f'{A}["deep/er"] == "slash"': True,
    f'"deep/er" in {A} && !("er" in device.attributes["a.io/deep"])': True,
    'device.attributes[""].e == "no domain" && size(device.attributes) == 3': True,
    f"has({A}.s) && has({A}.q) && has({B}.s) && !has({B}.q)": True,
    'has(device.attributes["c.io"].s)': False,
    f'"q" in {A} && "s" in {B} && !("n" in {B})': True,
    f'{A}.?q.orValue("-") == "qualified" && {B}.?q.orValue("-") == "-"': True,
    f"{A}.?n.hasValue() && !{B}[?'n'].hasValue()": True,
    f'{A}.?s.optMap(x, x + "!").orValue("") == "own!"': True,
    f"{A}.l[1] == 2 && {A}.l.exists(x, x == 1)": True,
    f'cel.bind(x, {A}, x.s == "own" && x["q"] == "qualified" && has(x.n) && size(x) == 8)': True,
    f'cel.bind(x, {A}, [1].all(x, x == 1) && cel.bind(x, {B}, x.s == "foreign") && x.n == 3)': True,
    f'cel.bind(x, {A}, cel.bind(y, x, y.s + x.s == "ownown"))': True,
    f"cel.bind(x, {A}, x.all(k, k in x))": True,
    f'[1, 2].exists(n, {A}.n - n == 1 && {B}.s == "foreign")': True,
    f'{A}.v.isLessThan(semver("2.0.0"))': True,
    'device.capacity["a.io"].mem.isGreaterThan(quantity("7Gi"))': True,
    'device.capacity["a.io"].cores == quantity("4")': True,
    'device.capacity["b.io"].mem.compareTo(device.capacity["a.io"].cores) < 0': True,
    f"{A}.nope == 1": "no such key: nope",
    f"{B}.n == 1": "no such key: n",
    f'{B}["x/y"] == 1': "no such key: x/y",
    f"!({B}.n == 1) && true": "no such key: n",
    f"cel.bind(x, {B}, x.n == 1)": "no such key: n",
    'device.capacity["c.io"].mem == quantity("1")': "no such key: mem",
    f"{A}.s": "CEL result of type string could not be converted to bool: unsupported native"
    " conversion from string to 'bool'",
    # What a missing attribute gives beside other terms.
    f"{A}.nope == 1 && {OTHER}": "no such key: nope",
    f"{OTHER} && {A}.nope == 1": "no such key: mem",
    f"{A}.nope == 1 && {A}.n == 2": False,
    f"{A}.n == 3 && {A}.nope == 1": "no such key: nope",
    f"{A}.nope == 1 || {A}.n == 3": True,
    f"{A}.nope == 1 || {A}.n == 2": "no such key: nope",
    f"!({A}.nope == 1 && {A}.n == 2)": True,
    f"({A}.nope == 1 || {A}.b) && ({OTHER} || !{A}.b)": "no such key: mem",
    f"{A}.nope == 1 || {A}.n": "no such key: nope",
    f"{A}.n || {A}.nope == 1": "no such overload",
    f"{A}.nope == 1 && {A}.s.matches({A}.s)": "no such key: nope",
    f"has({A}.nope) && {A}.nope == 1": False,
    f"{A}.nope == 1 ? true : false": "no such key: nope",
    f"[1].all(x, {A}.nope == 1)": "no such key: nope",
    f'{{"k": 1}}["nope"] == {A}.n': "no such key: nope",
    # Selecting from a constant is an error of the evaluation, not of the compilation.
    **{
        f"dyn({value}){use}": "no such "
        for value in ("null", "true", "1", "1.5", "'a'", "b'a'")
        for use in ("['a'] == 1", ".a == 1")
    },
    # A pattern wants a text.
    f"{A}.n.matches('^a$')": "no such overload",
    f"{A}.b.matches('a+')": "no such overload",
    f"{A}.l.matches('a')": "no such overload",
}


@pytest.mark.parametrize("expression", CASES)
def test_a_selector_sees_the_values_of_the_device(expression: str) -> None:
    selector, device = compile_selector(expression), CelDevice.from_api("a.io", DEVICE)
    expected = CASES[expression]
    if isinstance(expected, bool):
        assert selector.matches(device) is expected
    else:
        with pytest.raises(CelRuntimeError) as caught:
            selector.matches(device)
        assert str(caught.value).startswith(expected)


@pytest.mark.parametrize(
    ("driver", "domain", "names"),
    [
        ("b.io", "a.io", {"q": "qualified", "both": "long", "deep/er": "slash"}),
        ("b.io", "b.io", {"s": "own", "both": "short", "n": 3}),
        ("", "", {"s": "own", "e": "no domain"}),
        ("a.io/deep", "a.io/deep", {"s": "own", "both": "short"}),
        ("a.io/deep", "a.io", {"q": "qualified", "deep/er": "slash"}),
    ],
)
def test_a_name_without_a_domain_is_in_the_drivers(
    driver: str, domain: str, names: dict[str, Any]
) -> None:
    values = CelDevice.from_api(driver, DEVICE).as_map["attributes"][domain]
    assert {name: values[name] for name in names} == names


def test_the_short_spelling_of_a_name_wins_in_any_order() -> None:
    for names in (["x", "a.io/x"], ["a.io/x", "x"]):
        attributes = {name: {"string": name} for name in names}
        device = CelDevice.from_api("a.io", {"attributes": attributes})
        assert device.as_map["attributes"] == {"a.io": {"x": "x"}}
        assert compile_selector(f'{A}.x == "x"').matches(device)


@pytest.mark.parametrize(
    ("attributes", "message"),
    [
        (
            {"b": {"version": "1.2"}, "a": {"version": "x"}, "c": {"int": 1}},
            "attribute a: parse semantic version: No Major.Minor.Patch elements found",
        ),
        ({"z": {}, "b": {"int": None}}, "attribute b: unsupported attribute value"),
        ({"x": {"string": "s", "int": None}, "y": {"what": 1}}, "attribute y: unsupported"),
        ({"l": {"versions": ["1.0.0", "1"]}}, "attribute l: parse semantic version: No Major"),
        ({"v": {"versions": ["1"], "string": "s"}}, "attribute v: parse semantic version: No Maj"),
    ],
)
def test_an_unusable_attribute_fails_every_expression(
    attributes: dict[str, Any], message: str
) -> None:
    with pytest.raises(CelRuntimeError) as caught:
        CelDevice.from_api("a.io", {"attributes": attributes})
    assert str(caught.value).startswith(message)


def test_an_unusable_capacity_is_told_in_the_order_of_names() -> None:
    capacity = {"b": {"value": "x"}, "a": {"value": True}}
    with pytest.raises(CelRuntimeError, match=r"^capacity a: a quantity is a string, not bool$"):
        CelDevice.from_api("a.io", {"capacity": capacity})


def test_lists_are_no_values_where_they_are_not_known() -> None:
    two = {"ints": [1], "string": "s"}
    for lists, value in ((False, "s"), (True, [1])):
        device = CelDevice.from_api("d", {"attributes": {"x": two}}, lists=lists)
        assert device.as_map["attributes"] == {"d": {"x": value}}
    with pytest.raises(CelRuntimeError, match="attribute x: unsupported attribute value"):
        CelDevice.from_api("d", {"attributes": {"x": {"ints": [1]}}}, lists=False)


def test_derived_attributes_see_the_same_values() -> None:
    device = CelDevice.from_api("a.io", DEVICE)
    assert compile_derived(f"{A}.s + {B}.s").attribute(device) == {"string": "ownforeign"}
