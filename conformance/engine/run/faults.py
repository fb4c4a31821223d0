"""What a scenario disturbs, components and the health of devices, and how all of it is restored.

What a driver must do after that by itself is in :mod:`conformance.engine.lost_driver`.
"""

from __future__ import annotations

from collections.abc import Iterator

from conformance.engine.lost_driver import list_published_nodes
from conformance.engine.run.attempt import DevicePlace, ScenarioAttempt
from conformance.engine.run.ending import Divergence
from conformance.scenario.base import ObjectSelector
from conformance.scenario.expectations.container_identity import list_allocated
from conformance.scenario.steps import Fault, Stimulate
from conformance.seam.abilities import fault_ability
from conformance.seam.values import Capabilities
from kube.base.errors import TargetError
from kube.components import OF_A_NODE, OTHER_DRIVER, REMOVE, in_start_order, role_of
from kube.values import Obj


def disturb(fault: Fault, attempt: ScenarioAttempt) -> None:
    """Carry out a step ``fault``, and note what it has stopped.

    Raises:
        Divergence: the pod of ``nodeOf`` is on no node.
        TargetError: the target cannot do it, or what was started did not get ready.
    """
    node = fault.node
    if fault.node_of is not None:
        node = attempt.node_of(fault.node_of)
        if node is None:
            raise Divergence(f"pod {fault.node_of} on a node, to {fault.describe()}", "it is not")
    if node is None and role_of(fault.component) in OF_A_NODE:
        node = attempt.node
    component = f"{node}/{fault.component}" if node else fault.component
    # Before the fault: a driver that had not published cannot be lost by it.
    if attempt.published is None:
        attempt.published = frozenset(list_published_nodes(attempt))
    if fault.action != "start":
        attempt.stopped_components.append(component)  # also by a restart that breaks off
    if fault.feature_gates:
        attempt.gated[component] = fault.feature_gates
        attempt.scope.faults.set_gates(component, fault.feature_gates)
        if all(fault.feature_gates.values()):
            attempt.gated.pop(component)
    else:
        attempt.scope.faults.disturb(component, fault.action)


def start_other_driver(attempt: ScenarioAttempt, capabilities: Capabilities) -> None:
    """Start the other driver on targets where the suite starts it; raises TargetError."""
    if fault_ability(OTHER_DRIVER) in capabilities.abilities:
        attempt.other_driver_runs = True  # also one that did not get ready
        attempt.scope.faults.disturb(_name_other_driver(attempt), "start")


def remove_other_driver(attempt: ScenarioAttempt) -> None:
    """Remove it and what it has published; raises TargetError if something stays."""
    if attempt.other_driver_runs:
        attempt.other_driver_runs = False
        attempt.scope.faults.disturb(_name_other_driver(attempt), REMOVE)


def _name_other_driver(attempt: ScenarioAttempt) -> str:
    return OTHER_DRIVER if attempt.node is None else f"{attempt.node}/{OTHER_DRIVER}"


def restore(attempt: ScenarioAttempt) -> None:
    """Undo other gates, start what the scenario has stopped, end second instances of a driver.

    Raises TargetError: something did not get ready.
    """
    # Gates first: a component starts as it was started last, so with the gates of the step.
    for component in in_start_order(attempt.gated):
        attempt.scope.faults.set_gates(component, {})
    attempt.gated.clear()
    for component in in_start_order(attempt.stopped_components):
        attempt.scope.faults.disturb(component, "start")
    attempt.stopped_components.clear()


def stimulate(wanted: Stimulate, attempt: ScenarioAttempt) -> None:
    """Carry out a step ``stimulate``, and note which devices it has changed.

    Raises:
        Divergence: the claim has no such device of the driver.
        TargetError: the health cannot be set, or devices did not get healthy again.
    """
    if wanted.claim is None:
        make_healthy(attempt)
        return
    for place, device in list(_find_claimed_devices(wanted, attempt)):
        if wanted.health != "Healthy":
            attempt.unhealthy.setdefault(place, device)  # also if setting it fails
        attempt.scope.faults.set_health(place.node, device, wanted.health)


def make_healthy(attempt: ScenarioAttempt) -> None:
    """Make all devices healthy that the scenario has changed, and wait until their taints are gone.

    Raises TargetError: the health cannot be set, or a device does not get healthy.
    """
    unhealthy = attempt.unhealthy
    if not unhealthy:
        return
    for place, device in unhealthy.items():
        attempt.scope.faults.set_health(place.node, device, "Healthy")

    def different() -> list[DevicePlace]:
        now = {place: _list_taints(device) for place, device in _list_published_devices(attempt)}
        return [place for place, old in unhealthy.items() if now.get(place) != _list_taints(old)]

    limit = attempt.limit(attempt.scenario.spec.timeouts.cleanup)
    # Not `ScenarioAttempt.wait`: devices are restored when the run is interrupted, too.
    if attempt.scope.wait(lambda: not different() or None, limit) is None:
        names = ", ".join(f"{place.device} of {place.node}" for place in different())
        raise TargetError(f"{names}: not offered as before {limit:g} s after it was made healthy")
    unhealthy.clear()


def _find_claimed_devices(
    wanted: Stimulate, attempt: ScenarioAttempt
) -> Iterator[tuple[DevicePlace, Obj]]:
    """The published devices that a claim has."""
    claim = attempt.get("ResourceClaim", str(wanted.claim)) or {}
    has = {one.device for one in list_allocated(claim, _name_of_driver(attempt), [wanted.request])}
    if not has:
        raise Divergence(f"a device of {_name_of_driver(attempt)}, to {wanted.describe()}", "none")
    for one in has:
        published = [
            (place, device)
            for place, device in _list_published_devices(attempt)
            if place.device == one.name and place.pool in one.pools
        ]
        if not published:
            raise Divergence(f"{one} in a slice of a node, to {wanted.describe()}", "none")
        yield published[0]


def _list_published_devices(attempt: ScenarioAttempt) -> Iterator[tuple[DevicePlace, Obj]]:
    """All node-local devices that the driver publishes."""
    for item in attempt.find(ObjectSelector(kind="ResourceSlice")):
        spec = item["spec"]
        if spec["driver"] == _name_of_driver(attempt) and spec.get("nodeName"):
            for device in spec.get("devices") or ():
                place = DevicePlace(spec["nodeName"], spec["pool"]["name"], device["name"])
                yield place, device


def _name_of_driver(attempt: ScenarioAttempt) -> str:
    assert attempt.profile is not None, "scenarios with devices run with a driver profile"
    return attempt.profile.driver


def _list_taints(device: Obj) -> list[tuple[str, str]]:
    return [(taint["key"], taint["effect"]) for taint in device.get("taints") or ()]
