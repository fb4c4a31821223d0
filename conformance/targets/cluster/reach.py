"""What the suite reaches of a cluster beside its API server, where the cluster's source can."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from conformance.scenario.metrics import CONTROL_PLANE, ability
from conformance.scenario.stimulus import DEVICE_HEALTH, Health
from conformance.targets.base import POD_RESOURCES, Obj, TargetError
from conformance.targets.cluster.cdi import CdiFiles
from conformance.targets.cluster.control_files import ControlFiles
from conformance.targets.cluster.health import Health as ClusterHealth
from conformance.targets.cluster.metrics import MetricsReader
from conformance.targets.cluster.recorder import Recorder
from conformance.targets.components import API, fault_abilities, meant


@dataclass(frozen=True)
class Reach:
    """Access to nodes and components of a cluster; what cannot be reached is left out.

    Attributes:
        cdi: reads the nodes' CDI specs.
        metrics: reads those of the control plane.
        pod_resources: node -> the socket of its kubelet's PodResources API.
        disturb: called with a component's name and an action (`Faults.disturb`); returns when that
            is done.
        components: those that ``disturb`` knows.
        control: tells drivers of the health of devices.
    """

    cdi: CdiFiles | None = None
    metrics: MetricsReader | None = None
    pod_resources: Mapping[str, Path] = field(default_factory=dict)
    disturb: Callable[[str, str], None] | None = None
    components: tuple[str, ...] = ()
    control: ControlFiles | None = None

    @property
    def abilities(self) -> set[str]:
        """What scenarios can do by it, see `Capabilities`."""
        return fault_abilities(self.components).union(
            {"cdi"} if self.cdi else (),
            map(ability, CONTROL_PLANE) if self.metrics else (),
            {POD_RESOURCES} if self.pod_resources else (),
            {DEVICE_HEALTH} if self.control else (),
        )


class ClusterFaults:
    """Implements `conformance.targets.scope.Faults` for all scopes of a cluster."""

    def __init__(self, reach: Reach, health: ClusterHealth, recorder: Recorder | None) -> None:
        self._reach = reach
        self._health = health
        self._recorder = recorder
        self._down: set[str] = set()

    def disturb(self, component: str, action: str) -> None:
        """While the API server is disturbed, that it does not answer ends nothing."""
        names = meant(component, self._reach.components)
        if self._reach.disturb is None or not names:
            known = ", ".join(self._reach.components) or "none"
            raise TargetError(
                f"this cluster cannot {action} {component}; components that it can: {known}"
            )
        # The API server forgets where watches were: what was said before must be recorded by then.
        self._catch_up(names)
        self._health.pause()
        try:
            for name in names:
                self._reach.disturb(name, action)
                if action in {"kill", "stop"}:
                    self._down.add(name)
                else:
                    self._down.discard(name)
        finally:
            if not self._down & API:
                self._health.resume()
        self._catch_up(names)

    def _catch_up(self, disturbed: list[str]) -> None:
        """Let the record have all that was said, if the API server is disturbed and answers."""
        if self._recorder is not None and API & {*disturbed} and not self._down & API:
            self._recorder.catch_up()

    def set_health(self, node: str, device: Obj, health: Health) -> None:
        """By the file that the driver follows."""
        if self._reach.control is None:
            raise TargetError("this cluster's driver cannot be told (no ability device-health)")
        self._reach.control.set_health(node, device, health)
