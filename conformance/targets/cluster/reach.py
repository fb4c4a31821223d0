"""What the suite reaches of a cluster beside its API server, and what its scopes share."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

from conformance.scenario.driver.simulated import DEVICE_HEALTH, Stimulus
from conformance.scenario.metrics import name_metrics_ability
from conformance.scenario.steps import FEATURE_GATES, UPGRADE
from conformance.seam.overlaps import ClaimHolders
from conformance.seam.values import POD_RESOURCES, Capabilities, fault_abilities
from conformance.targets.cluster.creator import HollowNodes
from conformance.targets.cluster.health import Health as ClusterHealth
from conformance.targets.cluster.published import PublishedDevices
from conformance.targets.cluster.recorder import Recorder
from kube.api import Api
from kube.base.errors import TargetError
from kube.components import API, meant
from kube.informers import InformerFactory
from kube.observations import CONTROL_PLANE, Health
from kube.values import Obj

T = TypeVar("T")

CdiFiles = Callable[[], Iterable[tuple[str, bytes]]]
"""Reads name and content of all CDI spec files of a cluster's nodes, now."""

MetricsReader = Callable[[str], str | None]
"""Component -> its metrics as text; None where it does not answer now."""


@dataclass(frozen=True)
class Reach:
    """Access to nodes and components of a cluster; what cannot be reached is left out.

    Attributes:
        pod_resources: node -> the socket of its kubelet's PodResources API.
        disturb: called with a component's name and an action (`Faults.disturb`); returns when that
            is done.
        components: those that ``disturb`` knows.
        upgrades: whether ``disturb`` can upgrade them.
        set_gates: restarts one with other feature gates (`Faults.set_gates`).
    """

    cdi: CdiFiles | None = None
    metrics: MetricsReader | None = None
    pod_resources: Mapping[str, Path] = field(default_factory=dict)
    disturb: Callable[[str, str], None] | None = None
    components: tuple[str, ...] = ()
    upgrades: bool = False
    set_gates: Callable[[str, Mapping[str, bool]], None] | None = None
    control: ControlFiles | None = None

    @property
    def abilities(self) -> set[str]:
        """What scenarios can do by it, see `Capabilities`."""
        return fault_abilities(self.components).union(
            {"cdi"} if self.cdi else (),
            map(name_metrics_ability, CONTROL_PLANE) if self.metrics else (),
            {POD_RESOURCES} if self.pod_resources else (),
            {DEVICE_HEALTH} if self.control else (),
            {UPGRADE} if self.upgrades else (),
            {FEATURE_GATES} if self.set_gates else (),
        )


class ClusterFaults:
    """Implements `conformance.seam.scope.Faults` for all scopes of a cluster."""

    def __init__(self, reach: Reach, health: ClusterHealth, recorder: Recorder | None) -> None:
        self._reach = reach
        self._health = health
        self._recorder = recorder
        self._down: set[str] = set()

    def disturb(self, component: str, action: str) -> None:
        """While the API server is disturbed, that it does not answer ends nothing."""
        down = action in {"kill", "stop"}
        self._each(component, action, self._reach.disturb, action, down=down)

    def set_gates(self, component: str, gates: Mapping[str, bool]) -> None:
        """As `disturb`."""
        self._each(component, "set gates of", self._reach.set_gates, gates)

    def _each(
        self,
        component: str,
        what: str,
        do: Callable[[str, T], None] | None,
        how: T,
        *,
        down: bool = False,
    ) -> None:
        names = meant(component, self._reach.components)
        if do is None or not names:
            known = ", ".join(self._reach.components) or "none"
            raise TargetError(
                f"this cluster cannot {what} {component}; components that it can: {known}"
            )
        # The API server forgets where watches were: what was said before must be recorded by then.
        self._catch_up(names)
        self._health.pause()
        try:
            for name in names:
                do(name, how)
                if down:
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
            raise TargetError(
                "this cluster's driver takes no device health (no ability device-health)"
            )
        self._reach.control.set_health(node, device, health)


class ControlFiles:
    """The files of the drivers that the suite has started.

    ``files``: node -> the file that its driver follows.
    """

    def __init__(self, stimulus: Stimulus, files: Mapping[str, Path]) -> None:
        self._stimulus = stimulus
        self._files = files

    def set_health(self, node: str, device: Obj, health: Health) -> None:
        """Append the lines that the driver of a node follows (`Faults.set_health`).

        Raises TargetError: the driver has no such file (any more), or a line cannot be made.
        """
        try:
            text = self._stimulus.make_lines(health, device)
            # In one write, for others tell the driver, too; the file is the driver's to make.
            file = os.open(self._files[node], os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC)
            try:
                os.write(file, text.encode())
            finally:
                os.close(file)
        except KeyError:
            known = ", ".join(self._files)
            raise TargetError(
                f"no driver on node {node} takes device health; nodes with one: {known}"
            ) from None
        except OSError as error:
            raise TargetError(f"the driver of {node} did not take device health: {error}") from None
        except ValueError as error:
            raise TargetError(str(error)) from None


@dataclass(frozen=True)
class Shared:
    """What the scopes of a target use together.

    Attributes:
        informers: of what has no namespace, so that it is followed once for all.
        claims: which claims of the cluster have which devices.
        published: what the drivers of scenarios have published so far.
        logs: component name -> its log file on this machine.
    """

    api: Api
    capabilities: Callable[[], Capabilities]
    informers: InformerFactory
    hollow: HollowNodes
    health: ClusterHealth
    recorder: Recorder | None
    claims: ClaimHolders
    published: PublishedDevices
    logs: Mapping[str, Path]
    reach: Reach
    faults: ClusterFaults
