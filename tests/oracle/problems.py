"""Problems for ours and upstream's allocator: also what no API server would let in."""

from __future__ import annotations

from random import Random

from conformance.fuzz.draw.dice import Dice
from conformance.fuzz.draw.inventories import GPU, Json
from conformance.fuzz.draw.problems import add_taint_times, draw_problem
from reference_allocator.features import Features
from tests.oracle.crowded import many_counters, too_few_devices
from tests.oracle.limits import draw_limits
from tests.oracle.refused import spoil

STABLE = {"adminAccess", "prioritizedList", "partitionableDevices", "deviceTaints"}
"""The features with which the stable implementation is chosen until 1.37."""
_INCUBATING = {*STABLE, "deviceBindingAndStatus", "consumableCapacity", "fractionalCapacityRange"}


def problem(random: Random, identifier: str, *, odd: bool = False, at_limits: bool = False) -> Json:
    """A line for `dra-conformance allocate` and for `ci/upstream/allocate`.

    Args:
        random: where choices come from.
        identifier: the id of the line.
        odd: also draw objects that the API server refuses, and searches that fail in many ways.
        at_limits: draw values at the limits of the API (`tests.oracle.limits`).
    """
    on = _features(Dice(random))
    dice = Dice(
        random, calm=random.randrange(4) > 0, small=random.randrange(3) > 0, features=frozenset(on)
    )
    if odd and dice.one_in(60):
        return _crowded(dice, identifier, on)
    line = draw_problem(dice, identifier)
    if odd and dice.one_in(8):
        spoil(dice, line)
    if at_limits:
        draw_limits(dice, line)
    _choose_allocator(dice, line, on)
    return line


def _crowded(dice: Dice, identifier: str, on: set[str]) -> Json:
    build = many_counters if dice.one_in(10) else too_few_devices
    if build is many_counters:
        on.add("partitionableDevices")
    published, wanted = build(dice)
    line: Json = {
        "id": identifier,
        "features": dict.fromkeys(sorted(on), True),
        "slices": [add_taint_times(item) for item in published],
        "deviceClasses": [{"metadata": {"name": GPU}, "spec": {}}],
        "nodes": [{"metadata": {"name": "node-0"}}],
        "claims": wanted,
        "allocated": [],
    }
    _choose_allocator(dice, line, on)
    return line


def _choose_allocator(dice: Dice, line: Json, on: set[str]) -> None:
    """Ours answers as incubating and experimental do, so stable must not be chosen."""
    if on <= STABLE:
        line["allocator"] = dice.pick(["incubating", "experimental"])
    elif on <= _INCUBATING and dice.one_in(2):
        line["allocator"] = "experimental"


def _features(dice: Dice) -> set[str]:
    match dice.number(8):
        case 0 | 1 | 2:
            chosen = Features.all()
        case 3 | 4:
            chosen = Features.for_version("1.37")
        case 5:
            chosen = Features.for_version(dice.pick(["1.34", "1.35", "1.36"]))
        case 6:
            chosen = Features.for_version("1.37", {"DRAFractionalCapacityRange": True})
        case _:
            on = Features.all().to_dict()
            return {name for name in on if not dice.one_in(4)}
    return {name for name, set_ in chosen.to_dict().items() if set_}
