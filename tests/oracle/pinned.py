"""Allocations that somebody else could have made: devices chosen at random, right or wrong.

Our own search only makes right ones, so they say nothing about what the checker lets through. Here
every request is given devices without looking at any rule, and upstream is asked whether it can
allocate exactly these (each device gets an attribute with its name, which selectors ask for). If it
can, the checker has to accept its answer; if it cannot, the checker has to find a broken rule.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from random import Random
from typing import Any

from conformance.allocators.judging import COPIED_RULES, snapshot_of
from kubesim.store import clone
from reference_allocator.api.reading import InputError
from reference_allocator.checks import Violation, check
from reference_allocator.gates import LATEST
from reference_allocator.snapshot import Snapshot
from tests.oracle.refused import bodies
from tests.oracle.upstream import Upstream, ask, comparable

Json = dict[str, Any]

_PIN = "pin.example.com"


def complaint_about_a_choice(
    problem: Json, random: Random, upstream: Upstream, kubernetes: str = LATEST
) -> str:
    """What is wrong with the checker's opinion of devices chosen at random; empty if nothing."""
    try:
        chosen = _choose(problem, random)
    except (KeyError, IndexError):  # Shrinking took something away that a choice needs.
        return ""
    if chosen is None:
        return ""
    pinned, allocations = chosen
    (node,) = pinned["nodes"]
    if kubernetes == "1.34":  # It cannot be told which implementation to take.
        del pinned["allocator"]
    said = comparable(ask(upstream, pinned))
    if "invalid" in said:
        return ""
    answer = said["nodes"][0]
    snapshot = snapshot_of(problem, kubernetes)
    claims = clone(pinned["claims"])
    for body in bodies({"claims": claims}):
        body["selectors"].pop(0)  # The pin.
    if answer["outcome"] == "allocated":
        found = _broken(snapshot, node, claims, answer.get("allocations", []))
        return f"refused: {found}\n{json.dumps(pinned)}" if found else ""
    found = _broken(snapshot, node, claims, allocations)
    if answer["outcome"] == "none" and not found:
        return f"accepted: {json.dumps(allocations)}\n{json.dumps(pinned)}"
    return ""


def _broken(
    snapshot: Snapshot, node: Json, claims: list[Json], allocations: list[Json]
) -> list[Violation | str]:
    try:
        found = check(snapshot, node, claims, allocations)
    except InputError as error:
        return [str(error)]
    return [item for item in found if item.rule not in COPIED_RULES]


def _choose(problem: Json, random: Random) -> tuple[Json, list[Json]] | None:
    """The question for these devices and what an allocation of them says, if one can be made."""
    pinned = clone(problem)
    pinned["nodes"] = [pinned["nodes"][0]]
    pinned["allocator"] = "experimental"  # Of skipNodeOperations incubating knows nothing.
    published: list[tuple[Json, Json]] = []
    for item in pinned["slices"]:
        for device in item["spec"].get("devices", ()):
            name = f"{item['spec']['pool']['name']}/{device['name']}"
            device.setdefault("attributes", {})[f"{_PIN}/id"] = {"string": name}
            published.append((item, device))
    consumable = problem["features"].get("consumableCapacity")
    allocations: list[Json] = []
    watched: set[tuple[str, str]] = set()
    for claim in pinned["claims"]:
        results: list[Json] = []
        for name, body in _bodies(claim, random):
            fitting = [
                (item, device)
                for item, device in published
                if body["deviceClassName"] in (item["spec"]["driver"], "any")
                and not (consumable and device.get("allowMultipleAllocations"))
            ]
            count = body.get("count", 0)
            if body.get("allocationMode") == "All" or not 0 < count <= len(fitting):
                return None
            # In the order of upstream's search, which for one request takes no earlier device after
            # a later one (startLocation): of distinct values, a list with its gate off is let in as
            # the first only.
            for index in sorted(random.sample(range(len(fitting)), count)):
                item, device = fitting[index]
                results.append(
                    {
                        "request": name,
                        "driver": item["spec"]["driver"],
                        "pool": item["spec"]["pool"]["name"],
                        "device": device["name"],
                        **({"adminAccess": True} if body.get("adminAccess") else {}),
                    }
                )
            pins = [f"{result['pool']}/{result['device']}" for result in results[-count:]]
            selector = f'device.attributes["{_PIN}"].id in {json.dumps(pins)}'
            body.setdefault("selectors", []).insert(0, {"cel": {"expression": selector}})
            # Who has admin access first keeps later claims of the pod off the device in
            # upstream's search, though nobody has it for himself: its order decides, no rule.
            names = {(result["pool"], result["device"]) for result in results[-count:]}
            if not body.get("adminAccess") and names & watched:
                return None
            if body.get("adminAccess"):
                watched |= names
        claim["spec"]["devices"].pop("config", None)
        allocations.append({"devices": {"results": results}})
    return pinned, allocations


def _bodies(claim: Json, random: Random) -> Iterator[tuple[str, Json]]:
    """Request name and body, for one alternative of each request, to which it is cut down."""
    for request in claim["spec"]["devices"]["requests"]:
        if "exactly" in request:
            yield request["name"], request["exactly"]
            continue
        option = random.choice(request["firstAvailable"])
        request["firstAvailable"] = [option]
        yield f"{request['name']}/{option['name']}", option
