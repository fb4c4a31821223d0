"""Selectors in which an attribute is missing: the fast way says what the interpreter says."""

from __future__ import annotations

import pytest

from reference_allocator.cel import CelDevice, CelRuntimeError, compile_selector
from reference_allocator.cel.codegen.support import UndecidedError

DEVICE = CelDevice.from_api(
    "a.io", {"attributes": {"n": {"int": 1}, "s": {"string": "x"}, "b": {"bool": True}}}
)
A = 'device.attributes["a.io"]'
MISSING = f"{A}.nope == 1"
OTHER = 'device.capacity["b.io"]["mem"].isGreaterThan(quantity("1Gi"))'

CASES = {
    MISSING: "no such key: nope",
    f"{MISSING} && {OTHER}": "no such key: nope",
    f"{OTHER} && {MISSING}": "no such key: mem",
    f"{MISSING} && {A}.n == 2": False,
    f"{A}.n == 1 && {MISSING}": "no such key: nope",
    f"{MISSING} || {A}.n == 1": True,
    f"{MISSING} || {A}.n == 2": "no such key: nope",
    f"!({MISSING})": "no such key: nope",
    f"!({MISSING} && {A}.n == 2)": True,
    f"({MISSING} || {A}.b) && ({OTHER} || !{A}.b)": "no such key: mem",
    f"{MISSING} || {A}.n": "no such key: nope",
    f"{A}.n || {MISSING}": "no such overload",
    f"{MISSING} && {A}.s > 1": "no such key: nope",
    f"{MISSING} && {A}.s.matches({A}.s)": "no such key: nope",
    f"has({A}.nope) && {MISSING}": False,
    f"{MISSING} ? true : false": "no such key: nope",
    f"[1].all(x, {MISSING})": "no such key: nope",
    f'{{"k": 1}}["nope"] == {A}.n': "no such key: nope",
}


@pytest.mark.parametrize("expression", CASES)
def test_a_missing_attribute_ends_as_the_interpreter_says(expression: str) -> None:
    selector = compile_selector(expression)
    expected = CASES[expression]
    for evaluate in (selector.matches, selector.interpret, selector.matches):
        if isinstance(expected, str):
            with pytest.raises(CelRuntimeError) as caught:
                evaluate(DEVICE)
            assert str(caught.value) == expected
        else:
            assert evaluate(DEVICE) is expected


def test_common_selectors_need_no_interpreter(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object, **__: object) -> bool:
        raise AssertionError("interpreted")

    selector = compile_selector(f"{MISSING} || {A}.n == 1")
    monkeypatch.setattr(type(selector), "interpret", fail)
    assert selector.matches(DEVICE) is True


def test_what_is_no_missing_attribute_is_left_to_the_interpreter() -> None:
    selector = compile_selector(f"{A}.n || {MISSING}")
    assert selector._recover is None
    with pytest.raises(CelRuntimeError):
        selector.matches(DEVICE)
    if selector._recover is not None:
        with pytest.raises(UndecidedError):
            selector._recover(DEVICE)
