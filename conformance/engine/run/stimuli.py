"""Makes devices unhealthy as the driver sees them, and healthy again at the end."""

from __future__ import annotations

from collections.abc import Iterator

from conformance.engine.run.awaiting import Divergence
from conformance.engine.run.context import Context, DevicePlace
from conformance.scenario.base import ObjectSelector
from conformance.scenario.expectations.containers.identity import allocated
from conformance.scenario.steps import Stimulate
from conformance.targets.seam.values import Obj, TargetError


def stimulate(wanted: Stimulate, context: Context) -> None:
    """Carry out a step ``stimulate``, and note which devices it has changed.

    Raises:
        Divergence: the claim has no such device of the driver.
        TargetError: the health cannot be set, or devices did not get healthy again.
    """
    if wanted.claim is None:
        make_healthy(context)
        return
    for place, device in list(_meant(wanted, context)):
        if wanted.health != "Healthy":
            context.progress.unhealthy.setdefault(place, device)  # also if setting it fails
        context.scope.faults.set_health(place.node, device, wanted.health)


def make_healthy(context: Context) -> None:
    """Make all devices healthy that the scenario has changed, and wait until their taints are gone.

    Raises:
        TargetError: the health cannot be set, or a device does not get healthy.
    """
    unhealthy = context.progress.unhealthy
    if not unhealthy:
        return
    for place, device in unhealthy.items():
        context.scope.faults.set_health(place.node, device, "Healthy")

    def different() -> list[DevicePlace]:
        now = {place: _taints(device) for place, device in _published(context)}
        return [place for place, old in unhealthy.items() if now.get(place) != _taints(old)]

    limit = context.limit(context.scenario.spec.timeouts.cleanup)
    # Not `Context.wait`: devices are restored when the run is interrupted, too.
    if context.scope.wait(lambda: not different() or None, limit) is None:
        names = ", ".join(f"{place.device} of {place.node}" for place in different())
        raise TargetError(f"{names}: not offered as before {limit:g} s after it was made healthy")
    unhealthy.clear()


def _meant(wanted: Stimulate, context: Context) -> Iterator[tuple[DevicePlace, Obj]]:
    """The published devices that a claim has."""
    claim = context.get("ResourceClaim", str(wanted.claim)) or {}
    has = {one.device for one in allocated(claim, _driver(context), [wanted.request])}
    if not has:
        raise Divergence(f"a device of {_driver(context)}, to {wanted.describe()}", "none")
    for one in has:
        found = [
            (place, device)
            for place, device in _published(context)
            if place.device == one.name and place.pool in one.pools
        ]
        if not found:
            raise Divergence(f"{one} in a slice of a node, to {wanted.describe()}", "none")
        yield found[0]


def _published(context: Context) -> Iterator[tuple[DevicePlace, Obj]]:
    """All node-local devices that the driver publishes."""
    for item in context.find(ObjectSelector(kind="ResourceSlice")):
        spec = item["spec"]
        if spec["driver"] == _driver(context) and spec.get("nodeName"):
            for device in spec.get("devices") or ():
                place = DevicePlace(spec["nodeName"], spec["pool"]["name"], device["name"])
                yield place, device


def _driver(context: Context) -> str:
    assert context.profile is not None, "scenarios with devices run with a driver profile"
    return context.profile.driver


def _taints(device: Obj) -> list[tuple[str, str]]:
    return [(taint["key"], taint["effect"]) for taint in device.get("taints") or ()]
