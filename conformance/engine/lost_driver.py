"""A driver is lost where it does not publish its devices again after a scenario's faults.

A kubelet that starts deletes the ResourceSlices of its node (pkg/kubelet/cm/dra/plugin/
dra_plugin_manager.go), and a driver must publish them anew. Without them every later scenario would
wait for devices until its time is over, and fail for what an earlier one has found. So the scenario
that loses a driver fails, the driver is restarted once where the suite started it, and where it
stays lost no later scenario that needs its devices is run.
"""

from __future__ import annotations

import threading
from collections import defaultdict
from collections.abc import Collection, Mapping
from typing import Any, Final, Protocol

from conformance.engine.objects.ledger import Ledger, default_version
from conformance.scenario.driver.profile import DriverProfile
from conformance.scenario.model import Scenario
from conformance.seam.abilities import fault_ability
from conformance.seam.scope import Scope
from conformance.seam.values import Capabilities
from kube.base.errors import InfrastructureError
from kube.slices import pools_complete
from kube.values import Query

PUBLISHED_SECONDS: Final = 60.0
"""Longest that a driver may take. Upstream's library needs 30 s for a slice that somebody has
deleted (DefaultSyncDelay in k8s.io/dynamic-resource-allocation/resourceslice)."""

CAUSE: Final = (
    "a possible cause is kubernetes#140063: the helper library k8s.io/dynamic-resource-allocation "
    "does not publish again after a kubelet has deleted the slices"
)

_KIND: Final = "ResourceSlice"


class RunningScenario(Protocol):
    """What these rules need of a running scenario."""

    @property
    def scenario(self) -> Scenario: ...
    @property
    def scope(self) -> Scope: ...
    @property
    def ledger(self) -> Ledger: ...
    @property
    def profile(self) -> DriverProfile | None: ...
    @property
    def stop(self) -> threading.Event: ...
    @property
    def published(self) -> frozenset[str] | None:
        """Nodes for which the driver had published before the first fault, None before one."""

    def limit(self, seconds: float) -> float: ...


class LostDriver:
    """The nodes on which the driver of a run is lost, and since which scenario.

    One value is shared by all scenarios of a run, which may run at once: a scenario adds nodes, and
    none is ever taken out.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._since: Mapping[str, str] = {}

    def __bool__(self) -> bool:
        """Tell whether the driver is lost anywhere."""
        return bool(self._since)

    def add(self, nodes: Collection[str], scenario: str) -> None:
        """Note that the driver is lost on these nodes since the scenario with this id."""
        # A new mapping each time, as another scenario may be reading the present one; and one at a
        # time, as of two that replace the same one the first would be lost.
        with self._lock:
            self._since = {**self._since, **dict.fromkeys(nodes, scenario)}

    def explain(self, driver: str | None, nodes: Collection[str]) -> str | None:
        """Say why no scenario can use the driver's devices on ``nodes`` (all of them if empty).

        None if the driver is lost on none of them.
        """
        lost = {node: by for node, by in self._since.items() if not nodes or node in nodes}
        if not lost:
            return None
        where = ", ".join(f"{node} since {by}" for node, by in sorted(lost.items()))
        return f"driver {driver} is lost: no ResourceSlices for {where}"


def list_published_nodes(attempt: RunningScenario) -> set[str]:
    """Return the scenario's nodes for which the driver's pools are complete now."""
    if attempt.profile is None or attempt.scenario.spec.tier == "allocation":
        return set()
    specs_by_node: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for item in attempt.scope.find(Query(default_version(_KIND), _KIND)):
        spec = item["spec"]
        if spec["driver"] == attempt.profile.driver and spec.get("nodeName"):
            specs_by_node[spec["nodeName"]].append(spec)
    allowed = attempt.ledger.nodes
    return {
        node
        for node, specs in specs_by_node.items()
        if pools_complete(specs) and (not allowed or node in allowed)
    }


def await_publication(attempt: RunningScenario, seconds: float = 0.0) -> set[str]:
    """Return nodes that were published before the first fault and are not again in this time.

    Empty if the run must end.
    """
    published_before = attempt.published or frozenset[str]()
    missing: set[str] = set()

    def back() -> bool | None:
        missing.clear()
        if not attempt.stop.is_set():
            missing.update(published_before - list_published_nodes(attempt))
        return None if missing else True

    if published_before:
        attempt.scope.wait(back, attempt.limit(seconds))
    return missing


def restart_lost_driver(
    nodes: Collection[str], attempt: RunningScenario, capabilities: Capabilities
) -> tuple[set[str], str]:
    """Restart the driver on nodes where it is lost, if it can be.

    Returns the nodes where it stays lost, and a report.
    Raises TargetError: there was no answer.
    """
    assert attempt.profile is not None, "it has published"
    report = (
        f"driver {attempt.profile.driver} is lost: its ResourceSlices for "
        f"{', '.join(sorted(nodes))} are not complete again {attempt.limit(PUBLISHED_SECONDS):g} s "
        f"after the scenario's faults ({CAUSE}); "
    )
    restartable = [
        name
        for name in (f"{node}/driver" for node in sorted(nodes))
        if fault_ability(name) in capabilities.abilities
    ]
    problems = ""
    for name in restartable:
        try:
            attempt.scope.faults.disturb(name, "restart")
        except InfrastructureError as error:
            problems += f" ({error})"
    # Without a restart that went well nothing has changed, and waiting again is of no use.
    seconds = PUBLISHED_SECONDS if restartable and not problems else 0
    still_lost = await_publication(attempt, seconds)
    if not restartable:
        report += "this suite did not start it, and does not restart it"
    elif still_lost:
        report += f"restarted once, it stays lost{problems}"
    else:
        report += "restarted once, it has published again"
    return still_lost, report
