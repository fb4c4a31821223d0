"""Compare what one scenario observed on two targets.

Observations are canonical JSON without uids, times and generated names, so equal behaviour gives
equal values. Lists are compared in order, as the Kubernetes API mostly means them; a list whose
order has no meaning stands in an object of the one key ``unordered`` and is compared as a multiset.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from conformance.engine.events import Outcome, ScenarioFinished, StepFinished

UNORDERED = "unordered"
MAX_DIFFERENCES = 100
"""Of one scenario; more help nobody."""

_ABSENT = object()
_NOTHING = "<nothing>"


@dataclass(frozen=True, slots=True)
class Difference:
    """One place where two targets were seen to differ.

    Attributes:
        step: index of the step from 0; None for the outcome of the whole scenario.
        title: the step's title, or ``outcome``.
        path: where in the step's observations, for example ``$[0].relation``.
        target: what the target showed, as JSON text; ``<nothing>`` where it showed none.
        reference: the same for the reference.
    """

    step: int | None
    title: str
    path: str
    target: str
    reference: str

    def to_json(self) -> dict[str, Any]:
        """Plain JSON, keys in a fixed order."""
        return {
            "step": self.step,
            "title": self.title,
            "path": self.path,
            "target": self.target,
            "reference": self.reference,
        }

    def __str__(self) -> str:
        return f"{self.title}: {self.path} is {self.target}, on the reference {self.reference}"


def compare_observations(
    target: ScenarioFinished, reference: ScenarioFinished
) -> tuple[Difference, ...]:
    """Where a scenario's outcome or observations differ, in the order of its steps.

    A scenario that was skipped or lost on either side was not observed there, and is not compared.
    Steps that one side did not reach are told by the outcome and not listed one by one.
    """
    if not observed(target) or not observed(reference):
        return ()
    found: list[Difference] = []
    if target.outcome is not reference.outcome:
        found.append(Difference(None, "outcome", "$", str(target.outcome), str(reference.outcome)))
    for left, right in zip(target.steps, reference.steps, strict=False):
        found.extend(_step(left, right))
        if len(found) >= MAX_DIFFERENCES:
            break
    return tuple(found[:MAX_DIFFERENCES])


def observed(finished: ScenarioFinished) -> bool:
    """Whether the scenario ran, so that there is something to compare."""
    return finished.outcome not in (Outcome.SKIPPED, Outcome.LOST)


def _step(target: StepFinished, reference: StepFinished) -> Iterator[Difference]:
    title = reference.title
    if target.title != title:
        yield Difference(target.index, title, "title", _text(target.title), _text(title))
    pairs = differences([*target.observed], [*reference.observed])
    for path, left, right in pairs:
        yield Difference(target.index, title, path, _text(left), _text(right))


def differences(left: Any, right: Any, path: str = "$") -> Iterator[tuple[str, Any, Any]]:
    """Path, left and right value of each smallest part in which two JSON values differ."""
    if _is_unordered(left) and _is_unordered(right):
        only_left, only_right = _multiset_difference(left[UNORDERED], right[UNORDERED])
        if only_left or only_right:
            yield f"{path}.{UNORDERED}", only_left, only_right
    elif isinstance(left, Mapping) and isinstance(right, Mapping):
        for key in sorted({*left, *right}, key=str):
            yield from differences(left.get(key, _ABSENT), right.get(key, _ABSENT), f"{path}.{key}")
    elif _is_list(left) and _is_list(right):
        for index in range(max(len(left), len(right))):
            yield from differences(
                left[index] if index < len(left) else _ABSENT,
                right[index] if index < len(right) else _ABSENT,
                f"{path}[{index}]",
            )
    elif left is _ABSENT or right is _ABSENT or _text(left) != _text(right):
        yield path, left, right


def _multiset_difference(left: Sequence[Any], right: Sequence[Any]) -> tuple[list[Any], list[Any]]:
    """What only the left and what only the right list has, duplicates counted."""
    one, two = Counter(map(_key, left)), Counter(map(_key, right))
    return (
        [json.loads(key) for key in sorted((one - two).elements())],
        [json.loads(key) for key in sorted((two - one).elements())],
    )


def _key(value: Any) -> str:
    return json.dumps(_canonical(value), sort_keys=True)


def _canonical(value: Any) -> Any:
    """The value with every unordered list sorted, so that equal multisets read alike."""
    if _is_unordered(value):
        return {UNORDERED: sorted((_canonical(item) for item in value[UNORDERED]), key=_key)}
    if isinstance(value, Mapping):
        return {str(key): _canonical(item) for key, item in value.items()}
    if _is_list(value):
        return [_canonical(item) for item in value]
    return value


def _is_list(value: Any) -> bool:
    return isinstance(value, Sequence) and not isinstance(value, str | bytes)


def _is_unordered(value: Any) -> bool:
    return isinstance(value, Mapping) and set(value) == {UNORDERED} and _is_list(value[UNORDERED])


def _text(value: Any) -> str:
    if value is _ABSENT:
        return _NOTHING
    text = json.dumps(_canonical(value), sort_keys=True, ensure_ascii=True)
    return text if len(text) <= 500 else f"{text[:497]}..."
