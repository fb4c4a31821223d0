"""Whether the driver publishes again after a fault; one that does not is lost to all that follow.

A kubelet that starts deletes the ResourceSlices of its node (pkg/kubelet/cm/dra/plugin/
dra_plugin_manager.go), and a driver must publish them anew. Without them every later scenario would
wait for devices until its time is over, and fail for what an earlier one has found.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection
from typing import Any, Final

from conformance.engine.objects.ledger import default_version
from conformance.engine.run.context import Context
from conformance.errors import InfrastructureError
from conformance.kubeapi.slices import pools_complete
from conformance.targets.seam.values import Capabilities, Query

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
