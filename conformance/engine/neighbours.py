"""Which scenarios may run beside each other on a target, and which of them begins next."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import NamedTuple

from conformance.engine.disruption import disturbed, disturbs, only_updates
from conformance.engine.order import longest_end
from conformance.engine.parts import Part, overlap, reaches
from conformance.engine.places import Phase, Place
from conformance.scenario.loader import LoadedScenario
from conformance.scenario.model import Spec
from conformance.targets.seam.values import Capabilities

LATE = 30.0
"""Seconds that the end of one that has disturbed something may take, for others to begin meanwhile.
They take about ten, and the next one that disturbs something waits for them."""


class Neighbour(NamedTuple):
    """A scenario that runs, its place, which says whether it disturbs others, and where it runs."""

    loaded: LoadedScenario
    place: Place
    part: Part

    @property
    def spec(self) -> Spec:
        """What the scenario needs and does."""
        return self.loaded.scenario.spec

    @property
    def phase(self) -> Phase:
        """Whether it disturbs others."""
        return self.place.phase


def phase_at_first(loaded: LoadedScenario) -> Phase:
    """In which a scenario begins."""
    return Phase.BEFORE if disturbed(loaded.scenario.spec) else Phase.CALM


def let_disturb(running: Collection[Neighbour]) -> None:
    """Have a scenario go on that waits for the end of those that it disturbs."""
    for item in running:
        others = [other for other in running if other is not item]
        if item.phase is Phase.WAITING and not any(_in_its_way(item, other) for other in others):
            item.place.let_disturb()


def _in_its_way(item: Neighbour, other: Neighbour) -> bool:
    if other.phase is Phase.CALM and only_updates(item.spec):
        return False
    return reaches(item.spec, item.part, other.part) and disturbs(item.spec, other.spec)


def beside(part: Part, running: Collection[Neighbour]) -> list[Neighbour]:
    """Those that a scenario would run beside which begins in a part of the target."""
    return [
        item
        for item in running
        if overlap(item.part, part)
        or (item.phase is not Phase.CALM and reaches(item.spec, item.part, part))
    ]


def next_to_begin(
    pending: Sequence[LoadedScenario], running: Collection[Neighbour], capabilities: Capabilities
) -> int | None:
    """Index of the scenario that begins next beside those that run; None: none may.

    One that disturbs others waits until they have ended, and new ones do not keep it waiting, nor
    take devices that it needs. But while one like it is calm and may be long about its end, it has
    to wait anyway: others begin, and the last of ``pending`` first, which are the shortest.
    """
    waiting = [item.spec for item in running if item.phase in {Phase.BEFORE, Phase.WAITING}]
    ending = [item.spec for item in running if item.phase is Phase.CALM and _ends_late(item.spec)]
    free: int | None = None
    held_up: int | None = None
    scarce = False
    for index, loaded in enumerate(pending):
        spec = loaded.scenario.spec
        undisturbed = _undisturbed(spec, running)
        if undisturbed and _gets_devices(spec, running, capabilities):
            if not any(disturbs(one, spec) for one in waiting):
                if not ending or (free is None and disturbed(spec)):
                    return index
                free = index if free is None else free
            elif not disturbed(spec) and not scarce:
                held_up = index
        elif disturbed(spec):
            waiting.append(spec)
            scarce |= undisturbed and not spec.requires.exclusive
    if held_up is not None and any(disturbs(one, other) for one in waiting for other in ending):
        return held_up
    return free


def _ends_late(spec: Spec) -> bool:
    return bool(disturbed(spec)) and longest_end(spec) >= LATE


def fits_beside(spec: Spec, running: Collection[Neighbour], capabilities: Capabilities) -> bool:
    """Whether a scenario may begin beside others: nobody disturbs it, and each gets its devices.

    Of those that disturb each other one begins when the one before is calm; if that may be long
    about its end, when it has ended, unless the next one is an update of a driver. It disturbs
    nothing before all others have ended (``Place.disturb``).
    """
    return _undisturbed(spec, running) and _gets_devices(spec, running, capabilities)


def _undisturbed(spec: Spec, running: Collection[Neighbour]) -> bool:
    for item in running:
        if item.phase is Phase.DISTURBING and disturbs(item.spec, spec):
            return False
        over = item.phase is Phase.CALM and (only_updates(spec) or not _ends_late(item.spec))
        if not over and disturbs(spec, item.spec):
            return False
    return True


def _gets_devices(spec: Spec, running: Collection[Neighbour], capabilities: Capabilities) -> bool:
    sharing = [item.spec for item in running if item.spec.tier != "allocation"]
    if spec.tier == "allocation" or not sharing:
        return True
    needs = [item.requires for item in (spec, *sharing)]
    if any(item.exclusive for item in needs):
        return False
    total = sum(item.devices_in_all for item in needs)
    return total <= capabilities.devices and all(
        _left_on_a_node(item.devices_on_one_node, total - item.devices_in_all, capabilities)
        for item in needs
    )


def _left_on_a_node(wanted: int, taken: int, capabilities: Capabilities) -> bool:
    """Whether one node has so many devices left, wherever the others are taken."""
    # To leave less than is wanted, so many of each node must be taken.
    enough = [count - wanted + 1 for count in capabilities.devices_on.values()]
    return not wanted or taken < sum(number for number in enough if number > 0)
