"""Draws what comes for the devices: pods with claims and extended resources. And taint rules."""

from __future__ import annotations

from conformance.fuzz.draw.dice import Dice
from conformance.fuzz.draw.inventories import Json, draw_taint
from conformance.fuzz.draw.problems import TIME
from reference_allocator.extended import IMPLICIT_PREFIX

RESOURCES = "resources.example.com/"
"""What the extended resources of classes begin with."""


def draw_pods(dice: Dice, claims: list[str], resources: list[str]) -> list[Json]:
    """Draw one pod that has all claims, or several that come one after the other.

    Where there are extended resources, each pod asks for some; it may have no claim then.
    """
    count = min(len(claims), 3) if _about(dice, "pods") else 1
    drawn_pods: list[Json] = []
    for index in range(count):
        names = claims[index::count]
        if index and dice.one_in(3):
            names = [claims[0], *names]  # what the first has, if it has been given something
        spec: Json = {}
        if not resources or dice.one_in(2):
            spec["resourceClaims"] = [{"name": name, "resourceClaimName": name} for name in names]
        if resources:
            spec |= _draw_containers(dice, resources)
        drawn_pods.append({"metadata": {"name": f"pod-{index}"}, "spec": spec})
    return drawn_pods


def provide_resources(dice: Dice, classes: list[Json], drivers: list[str]) -> list[str]:
    """Return extended resources of the drivers' classes, some of which get a name for theirs."""
    resources = []
    for item in classes if _about(dice, "extendedResource") else ():
        name = item["metadata"]["name"]
        if name in drivers:
            resource = f"{RESOURCES}{name.partition('.')[0]}"
            if dice.one_in(3):
                resource = f"{IMPLICIT_PREFIX}{name}"
            else:
                item["spec"]["extendedResourceName"] = resource
            resources.append(resource)
    return resources


def draw_taint_rules(dice: Dice, slices: list[Json]) -> list[Json]:
    """Draw rules for devices of the problem's drivers: a cluster has others', too."""
    rules = []
    for index in range(dice.pick([1, 1, 2]) if _about(dice, "deviceTaintRules") else 0):
        spec = dice.pick(slices)["spec"]
        selector = {"driver": spec["driver"]}
        if dice.one_in(2):
            selector["pool"] = spec["pool"]["name"]
        if spec.get("devices") and dice.one_in(2):
            selector["device"] = dice.pick(spec["devices"])["name"]
        body = {"deviceSelector": selector, "taint": {**draw_taint(dice), "timeAdded": TIME}}
        rules.append({"metadata": {"name": f"rule-{index}"}, "spec": body})
    return rules


def _about(dice: Dice, feature: str) -> bool:
    return dice.focus is not None and feature in dice.focus


def _draw_containers(dice: Dice, resources: list[str]) -> Json:
    """Draw containers with extended resources, which an init container's can be part of."""
    fields: Json = {
        "containers": [
            _draw_container(dice, f"ctr{index}", resources) for index in range(dice.pick([1, 1, 2]))
        ]
    }
    if dice.one_in(4):
        first = _draw_container(dice, "init0", resources)
        fields["initContainers"] = [
            {**first, "restartPolicy": "Always"} if dice.one_in(2) else first
        ]
    return fields


def _draw_container(dice: Dice, name: str, resources: list[str]) -> Json:
    resources_asked = dice.some(resources, dice.pick([1, len(resources)]))
    limits = {resource: dice.pick([1, 1, 1, 2, 2, 3]) for resource in resources_asked}
    return {"name": name, "image": "none", "resources": {"limits": limits}}
