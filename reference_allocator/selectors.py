"""CEL selectors of classes and requests, each evaluated at most once per device.

What a selector says about a device depends on nothing but the two, so the memo lives as long as the
devices do and serves all nodes and all claims. An error is remembered as an outcome: only the
search knows whether it is ever reached.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from reference_allocator.cel import CelCompileError, CelDevice, CelRuntimeError, compile_selector
from reference_allocator.pools import PoolDevice

_HINT = (
    ". consider using CEL optional chaining (.? followed by orValue()) or guarding the check with"
    " has() for optional fields"
)


class _Program(Protocol):
    def matches(self, device: CelDevice, /) -> bool: ...


@dataclass(frozen=True, slots=True)
class SelectorFailure:
    """Why a list of selectors does not select a device.

    Attributes:
        index: which selector of the list.
        expression: its source.
        error: the text of an error ("CEL compile error: ..." or "CEL runtime error: ..."), or None
            where the selector is simply false.
        at_compile_time: the error is one of the expression alone.
    """

    index: int
    expression: str
    error: str | None = None
    at_compile_time: bool = False


class Selectors:
    """Compiled selectors and their outcomes. Not thread-safe."""

    def __init__(self) -> None:
        self._programs: dict[str, _Program | CelCompileError] = {}
        self._devices: dict[PoolDevice, CelDevice] = {}
        self._outcomes: dict[tuple[str, PoolDevice], bool | str] = {}

    def first_failure(self, selectors: Sequence[str], device: PoolDevice) -> SelectorFailure | None:
        """The first selector that is not true for the device, or None where all are.

        Later selectors are not evaluated, as upstream stops at the first false one.
        """
        for index, expression in enumerate(selectors):
            program = self._compile(expression)
            if isinstance(program, CelCompileError):
                text = f"CEL compile error: {program}"
                return SelectorFailure(index, expression, text, at_compile_time=True)
            outcome = self._evaluate(expression, program, device)
            if outcome is True:
                continue
            if outcome is False:
                return SelectorFailure(index, expression)
            return SelectorFailure(index, expression, f"CEL runtime error: {outcome}")
        return None

    def _compile(self, expression: str) -> _Program | CelCompileError:
        program = self._programs.get(expression)
        if program is None:
            try:
                program = compile_selector(expression)
            except CelCompileError as error:
                program = error.with_traceback(None)
            self._programs[expression] = program
        return program

    def _evaluate(self, expression: str, program: _Program, device: PoolDevice) -> bool | str:
        key = (expression, device)
        outcome = self._outcomes.get(key)
        if outcome is None:
            outcome = self._run(program, device)
            self._outcomes[key] = outcome
        return outcome

    def _run(self, program: _Program, device: PoolDevice) -> bool | str:
        try:
            converted = self.device(device)
            return program.matches(converted)
        except CelRuntimeError as error:
            text = str(error)
            return text + _HINT if "no such key:" in text else text

    def device(self, device: PoolDevice) -> CelDevice:
        """The device as CEL sees it, converted once.

        Raises:
            CelRuntimeError: an attribute cannot be converted; every expression fails then.
        """
        converted = self._devices.get(device)
        if converted is None:
            converted = CelDevice.from_api(device.id.driver, device.device.raw)
            self._devices[device] = converted
        return converted
