"""What a scenario disturbs, components and the health of devices, and how all of it is restored.

A kubelet that starts deletes the ResourceSlices of its node (pkg/kubelet/cm/dra/plugin/
dra_plugin_manager.go), and a driver must publish them anew. Without them every later scenario would
wait for devices until its time is over, and fail for what an earlier one has found.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator
from typing import Any, Final

from conformance.engine.objects.ledger import default_version
from conformance.engine.run.awaiting import Divergence
from conformance.engine.run.context import Context, DevicePlace
from conformance.scenario.base import ObjectSelector
from conformance.scenario.expectations.container_identity import list_allocated
from conformance.scenario.steps import Fault, Stimulate
from conformance.seam.values import Capabilities
from kube.base.errors import InfrastructureError, TargetError
from kube.components import OF_A_NODE, OTHER_DRIVER, REMOVE, in_start_order, role_of
from kube.slices import pools_complete
from kube.values import Obj, Query


def disturb(fault: Fault, context: Context) -> None:
    """Carry out a step ``fault``, and note what it has stopped.

    Raises:
        Divergence: the pod of ``nodeOf`` is on no node.
        TargetError: the target cannot do it, or what was started did not get ready.
    """
    node = fault.node
    if fault.node_of is not None:
        node = context.node_of(fault.node_of)
        if node is None:
            raise Divergence(f"pod {fault.node_of} on a node, to {fault.describe()}", "it is not")
    if node is None and role_of(fault.component) in OF_A_NODE:
        node = context.node
    component = f"{node}/{fault.component}" if node else fault.component
    if context.progress.published is None:
        context.progress.published = frozenset(publishing(context))
    if fault.action != "start":
        context.progress.stopped.append(component)  # also by a restart that breaks off
    if fault.feature_gates:
        context.progress.gated[component] = fault.feature_gates
        context.scope.faults.set_gates(component, fault.feature_gates)
        if all(fault.feature_gates.values()):
            context.progress.gated.pop(component)
    else:
        context.scope.faults.disturb(component, fault.action)


def start_other_driver(context: Context, capabilities: Capabilities) -> None:
    """Start the other driver on targets where the suite starts it; raises TargetError."""
    if f"fault:{OTHER_DRIVER}" in capabilities.abilities:
        context.progress.other_driver = True  # also one that did not get ready
        context.scope.faults.disturb(_other(context), "start")


def remove_other_driver(context: Context) -> None:
    """Remove it and what it has published; raises TargetError if something stays."""
    if context.progress.other_driver:
        context.progress.other_driver = False
        context.scope.faults.disturb(_other(context), REMOVE)


def _other(context: Context) -> str:
    return OTHER_DRIVER if context.node is None else f"{context.node}/{OTHER_DRIVER}"


def restore(context: Context) -> None:
    """Undo other gates, start what the scenario has stopped, end second instances of a driver.

    Raises TargetError: something did not get ready.
    """
    for component in in_start_order(context.progress.gated):
        context.scope.faults.set_gates(component, {})
    context.progress.gated.clear()
    for component in in_start_order(context.progress.stopped):
        context.scope.faults.disturb(component, "start")
    context.progress.stopped.clear()


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

    Raises TargetError: the health cannot be set, or a device does not get healthy.
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
    has = {one.device for one in list_allocated(claim, _driver(context), [wanted.request])}
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


PUBLISHED_SECONDS: Final = 60.0
"""Longest that a driver may take. Upstream's library needs 30 s for a slice that somebody has
deleted (DefaultSyncDelay in k8s.io/dynamic-resource-allocation/resourceslice)."""

CAUSE: Final = (
    "a possible cause is kubernetes#140063: the helper library k8s.io/dynamic-resource-allocation "
    "does not publish again after a kubelet has deleted the slices"
)

_KIND: Final = "ResourceSlice"


def publishing(context: Context) -> set[str]:
    """The scenario's nodes for which the driver's pools are complete now."""
    if context.profile is None or context.scenario.spec.tier == "allocation":
        return set()
    of_nodes: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for item in context.scope.find(Query(default_version(_KIND), _KIND)):
        spec = item["spec"]
        if spec["driver"] == context.profile.driver and spec.get("nodeName"):
            of_nodes[spec["nodeName"]].append(spec)
    allowed = context.ledger.nodes
    return {
        node
        for node, specs in of_nodes.items()
        if pools_complete(specs) and (not allowed or node in allowed)
    }


def unpublished(context: Context, seconds: float = 0.0) -> set[str]:
    """Nodes that were `publishing` before the first fault and are not again after so many seconds.

    Empty if the run must end.
    """
    before = context.progress.published or frozenset()
    missing: set[str] = set()

    def back() -> bool | None:
        missing.clear()
        if not context.stop.is_set():
            missing.update(before - publishing(context))
        return None if missing else True

    if before:
        context.scope.wait(back, context.limit(seconds))
    return missing


def restart(
    nodes: Collection[str], context: Context, capabilities: Capabilities
) -> tuple[set[str], str]:
    """Restart the driver on nodes where it is lost, if it can be; where it stays so, and a report.

    Raises TargetError: there was no answer.
    """
    assert context.profile is not None, "it has published"
    report = (
        f"driver {context.profile.driver} is lost: its ResourceSlices for "
        f"{', '.join(sorted(nodes))} are not complete again {context.limit(PUBLISHED_SECONDS):g} s "
        f"after the scenario's faults ({CAUSE}); "
    )
    known = [
        name
        for name in (f"{node}/driver" for node in sorted(nodes))
        if f"fault:{name}" in capabilities.abilities
    ]
    wrong = ""
    for name in known:
        try:
            context.scope.faults.disturb(name, "restart")
        except InfrastructureError as error:
            wrong += f" ({error})"
    left = unpublished(context, PUBLISHED_SECONDS if known and not wrong else 0)
    if not known:
        report += "this suite did not start it, and does not restart it"
    elif left:
        report += f"restarted once, it stays lost{wrong}"
    else:
        report += "restarted once, it has published again"
    return left, report
