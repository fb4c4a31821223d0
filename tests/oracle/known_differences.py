"""Where our answer may differ from the real allocator's, each with the reason.

A difference is not waved through: where it applies, upstream is asked another question to which the
answer has to be ours. Whatever is not listed here fails the comparison.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from reference_allocator.gates import LATEST, MINORS
from tests.oracle.older_minors import ask_of_node, list_pools

Json = dict[str, Any]

_EXPERIMENTAL = {
    "listTypeAttributes",
    "optionalNodeOperations",
    "derivedAttributes",
    "compatibilityGroups",
}


@dataclass(frozen=True)
class KnownDifference:
    """One reason for which answers may differ.

    Attributes:
        name: short, for counting.
        reason: why upstream's answer is not followed.
        applies: whether a problem can show the difference.
        instead: the questions to ask upstream; the answers for their nodes have to be ours.
        times: how often they are asked, where upstream answers at random; for each node, one of the
            answers has to be ours.
        until: the last minor that shows it.
    """

    name: str
    reason: str
    applies: Callable[[Json], bool]
    instead: Callable[[Json], list[Json]]
    times: int = 1
    until: str = MINORS[-1]


def _incubating_answers(problem: Json) -> bool:
    on = {name for name, is_on in problem.get("features", {}).items() if is_on}
    return problem.get("allocator") != "experimental" and not on & _EXPERIMENTAL


def _skips_node_operations(problem: Json) -> bool:
    return any(item["spec"].get("skipNodeOperations") for item in problem.get("slices", ()))


def _experimental_if_needed(problem: Json) -> Json:
    """Both differences can meet in one problem."""
    if _incubating_answers(problem) and _skips_node_operations(problem):
        return {"allocator": "experimental"}
    return {}


def _list_devices(problem: Json) -> Iterator[Json]:
    for item in problem.get("slices", ()):
        yield from item["spec"].get("devices") or ()


def _has_several_attributes(problem: Json) -> bool:
    return any(len(device.get("attributes") or {}) > 1 for device in _list_devices(problem))


def _shares_by_capacities(problem: Json) -> bool:
    return any(
        device.get("allowMultipleAllocations") and len(device.get("capacity") or {}) > 1
        for device in _list_devices(problem)
    )


def _counts(problem: Json) -> bool:
    return any(item["spec"].get("sharedCounters") for item in problem.get("slices", ()))


def _has_several_pools(problem: Json) -> bool:
    return len({*list_pools(problem)}) > 1


KNOWN: tuple[KnownDifference, ...] = (
    KnownDifference(
        "pools-in-any-order",
        "Until 1.35 pools are tried in the order of Go's map (GatherPools), so that the first "
        "solution, or an error, is found at random. Ours has the order of later minors, and comes "
        "last to a pool that is invalid on the node (allocateOne of 1.34 ends at the first).",
        _has_several_pools,
        lambda problem: [ask_of_node(problem, node) for node in problem["nodes"]],
        times=64,
        until="1.35",
    ),
    KnownDifference(
        "skip-node-operations",
        "With OptionalNodeOperations off, experimental refuses devices of a slice with "
        "skipNodeOperations (allocateDevice), and incubating does not know the field and gives "
        "them out. The two cannot both be followed; ours refuses, as an API server with the gate "
        "off would not have stored the field, and the node could not honour it.",
        lambda problem: _incubating_answers(problem) and _skips_node_operations(problem),
        lambda problem: [{**problem, "allocator": "experimental"}],
    ),
    KnownDifference(
        "counters-remembered-per-pool",
        "Upstream remembers what is left of a pool's counters, and the groups in use, per pool "
        "(availableCounters, compatibilityGroupsBaseline), though nodes can see different "
        "generations or parts of it. Then the node that is asked first decides for all, and the "
        "scheduler asks nodes at once: the answer is random. Ours is that of each node alone.",
        lambda problem: len(problem.get("nodes", ())) > 1 and _counts(problem),
        lambda problem: [
            {**problem, **_experimental_if_needed(problem), "nodes": [node]}
            for node in problem["nodes"]
        ],
    ),
    KnownDifference(
        "attribute-named-at-random",
        "Until 1.37 the attributes of a device are converted for CEL in the order of Go's map, and "
        "an error names the first of those that cannot be. Ours is the first of the slice.",
        _has_several_attributes,
        lambda problem: [{**problem, **_experimental_if_needed(problem)}],
        times=64,
        until="1.37",
    ),
    KnownDifference(
        "capacity-named-at-random",
        "Where a request cannot be represented in two capacities of a device, upstream names the "
        "one that Go's map gives first (CmpRequestOverCapacity). Ours is the first of the slice.",
        _shares_by_capacities,
        lambda problem: [{**problem, **_experimental_if_needed(problem)}],
        times=64,
    ),
)


_DEVICE_TEXT = re.compile(r"for device &Device\{Name:([^,]*),.*\} in slice ")


def same_text(error: str) -> str:
    """An error of upstream with what ours words otherwise.

    Where a device's node selector does not parse, upstream writes the whole device as Go formats
    it; ours writes its name.
    """
    return _DEVICE_TEXT.sub(r"for device \1 in slice ", error)


def explanations(problem: Json, kubernetes: str = LATEST) -> Iterator[KnownDifference]:
    """The known differences that a problem can show with a minor."""
    for known in KNOWN:
        is_of_minor = MINORS.index(kubernetes) <= MINORS.index(known.until)
        if is_of_minor and known.applies(problem):
            yield known
