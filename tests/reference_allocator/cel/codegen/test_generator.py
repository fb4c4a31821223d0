"""Generated code: quiet when it is compiled, and never another answer than the interpreter's."""

from __future__ import annotations

import pytest

from reference_allocator.cel import CelDevice, CelRuntimeError, compile_selector

DEVICE = CelDevice.from_api(
    "d", {"attributes": {"v": {"version": "1.2.3"}, "n": {"int": 1}, "ls": {"strings": ["a"]}}}
)


# Warnings are errors here; Python warns of None['a'].
@pytest.mark.parametrize("value", ["null", "true", "1", "1.5", "'a'", "b'a'"])
@pytest.mark.parametrize("use", ["['a'] == 1", ".a == 1", "[0] == 1"])
def test_selecting_from_a_constant_is_an_error_of_the_evaluation(value: str, use: str) -> None:
    selector = compile_selector(f"dyn({value}){use}")
    assert selector.source, "Python should compile it"
    for evaluate in (selector.matches, selector.interpret):
        with pytest.raises(CelRuntimeError):
            evaluate(DEVICE)


@pytest.mark.parametrize(
    "expression",
    [
        "{'a': 1}[?device.attributes['d'].v].hasValue()",
        "[device.attributes['d'].n].flatten()[0] == 1",
        "device.attributes['d'].v in {'a': 1}",
        "{device.attributes['d'].ls: 1}.size() == 1",
    ],
)
def test_generated_code_and_interpreter_agree(expression: str) -> None:
    selector = compile_selector(expression)
    outcomes = set()
    for evaluate in (selector.matches, selector.interpret):
        try:
            outcomes.add(str(evaluate(DEVICE)))
        except CelRuntimeError as error:
            outcomes.add(str(error))
    assert len(outcomes) == 1, outcomes
