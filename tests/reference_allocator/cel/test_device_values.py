"""Attributes and capacity that a selector names: the direct look-up says what the maps say."""

from __future__ import annotations

from typing import Any

import pytest

from reference_allocator.cel import CelDevice, CelRuntimeError, compile_derived, compile_selector
from reference_allocator.cel import device as device_module

DEVICE: dict[str, Any] = {
    "attributes": {
        "s": {"string": "own"},
        "n": {"int": 3},
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

CASES: dict[str, bool | str] = {
    f'{A}.s == "own"': True,
    f'{B}.s == "foreign"': True,
    f'{A}["q"] == "qualified"': True,
    f'{A}.both == "short"': True,
    f'size({A}) == 7 && {A}["both"] == "short"': True,
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
    f'cel.bind(x, {A}, x.s == "own" && x["q"] == "qualified" && has(x.n) && size(x) == 7)': True,
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
    f"{A}.s": "CEL result of type string could not be converted to bool: type conversion error"
    " from 'string' to 'bool'",
}


@pytest.mark.parametrize("expression", CASES)
def test_values_by_name_are_those_of_the_maps(expression: str) -> None:
    selector, device = compile_selector(expression), CelDevice.from_api("a.io", DEVICE)
    expected = CASES[expression]
    for evaluate in (selector.matches, selector.matches, selector.interpret):
        if isinstance(expected, bool):
            assert evaluate(device) is expected
        else:
            with pytest.raises(CelRuntimeError) as caught:
                evaluate(device)
            assert str(caught.value).startswith(expected[:40])


@pytest.mark.parametrize("driver", ["a.io", "b.io", "", "a.io/deep"])
@pytest.mark.parametrize("domain", ["a.io", "b.io", "", "a.io/deep", "c.io"])
def test_any_driver_and_domain_give_the_same_either_way(driver: str, domain: str) -> None:
    device = CelDevice.from_api(driver, DEVICE)
    for name in ("s", "q", "both", "er", "deep/er", "e", "nope", ""):
        value = f'device.attributes["{domain}"]["{name}"]'
        selector = compile_selector(f'{value} == "own" || {value} in ["short", "slash"]')
        found = []
        for evaluate in (selector.matches, selector.interpret):
            try:
                found.append(str(evaluate(device)))
            except CelRuntimeError as error:
                found.append(str(error))
        assert found[0] == found[1], (domain, name)


def test_the_short_spelling_of_a_name_wins_in_any_order() -> None:
    for names in (["x", "a.io/x"], ["a.io/x", "x"]):
        attributes = {name: {"string": name} for name in names}
        device = CelDevice.from_api("a.io", {"attributes": attributes})
        assert device.attributes == {"a.io": {"x": "x"}}
        assert compile_selector(f'{A}.x == "x"').matches(device)


def test_selectors_by_name_need_no_maps(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise AssertionError("made the maps")

    monkeypatch.setattr(device_module, "_by_domain", fail)
    expression = f'cel.bind(x, {A}, x.s == "own") && has({B}.s) && {A}.?m.orValue(1) == 1'
    assert compile_selector(expression).matches(CelDevice.from_api("a.io", DEVICE))


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
    assert CelDevice.from_api("d", {"attributes": {"x": two}}, lists=False).values == {"x": "s"}
    assert CelDevice.from_api("d", {"attributes": {"x": two}}).values == {"x": [1]}
    with pytest.raises(CelRuntimeError, match="attribute x: unsupported attribute value"):
        CelDevice.from_api("d", {"attributes": {"x": {"ints": [1]}}}, lists=False)


def test_a_device_has_no_other_attributes() -> None:
    device: Any = CelDevice.from_api("a.io", {})
    with pytest.raises(AttributeError, match="nope"):
        _ = device.nope


def test_derived_attributes_see_the_same_values() -> None:
    device = CelDevice.from_api("a.io", DEVICE)
    assert compile_derived(f"{A}.s + {B}.s").attribute(device) == {"string": "ownforeign"}


@pytest.mark.parametrize("text", ["{x}", "{", "}", "{}", "{0.__class__}", "%s", "{{"])
@pytest.mark.parametrize("operator", ["==", "!=", "<", ">="])
def test_braces_in_a_constant_are_text(text: str, operator: str) -> None:
    device = CelDevice.from_api("a.io", {"attributes": {"s": {"string": text}}})
    selector = compile_selector(f'{A}.s {operator} "{text}"')
    expected = operator in ("==", ">=")
    assert selector.matches(device) is selector.interpret(device) is expected
    selector = compile_selector(f'"{text}" == {A}.s')
    assert selector.matches(device) is selector.interpret(device) is True
