"""What the suite reaches of a cluster beside its API server, and what its scopes share."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from conformance.scenario.driver.simulated import Stimulus
from conformance.seam.abilities import Ability, list_fault_abilities, metrics_ability
from conformance.seam.overlaps import ClaimHolders
from conformance.seam.values import Capabilities
from conformance.targets.cluster.creator import HollowNodes
from conformance.targets.cluster.health import Health as ClusterHealth
from conformance.targets.cluster.published import PublishedDevices
from conformance.targets.cluster.recorder import Recorder
from kube.api import Api
from kube.base.errors import TargetError
from kube.components import API, match_components
from kube.informers import InformerFactory
from kube.observations import CONTROL_PLANE, Health
from kube.values import Obj

CdiFiles = Callable[[], Iterable[tuple[str, bytes]]]
"""Reads name and content of all CDI spec files of a cluster's nodes, now."""


class ComponentControl(Protocol):
    """The starter of a cluster, as far as it can act on its components (`LocalCluster`).

    A method that takes the name of one component returns when that is done.
    """

    def disturb(self, component: str, action: str) -> None:
        """Do to it what `Faults.disturb` says."""

    def set_gates(self, component: str, gates: Mapping[str, bool]) -> None:
        """Restart it with other feature gates (`Faults.set_gates`)."""

    def metrics(self, component: str) -> str | None:
        """Return its metrics as text; None where it does not answer now."""

    def peak_memory(self) -> int:
        """Return how many bytes its programs and pods had at most (`Target.peak_memory`)."""


@dataclass(frozen=True)
class Reach:
    """Access to nodes and components of a cluster; what cannot be reached is left out.

    Attributes:
        cdi: reads the CDI specs of the nodes.
        pod_resources: node -> the socket of its kubelet's PodResources API.
        control: acts on components and reads their metrics.
        components: the names of those that ``control`` knows.
        upgrades: whether ``control`` can upgrade them.
        health_files: the files by which drivers take the health of their devices.
    """

    cdi: CdiFiles | None = None
    pod_resources: Mapping[str, Path] = field(default_factory=dict)
    control: ComponentControl | None = None
    components: tuple[str, ...] = ()
    upgrades: bool = False
    health_files: ControlFiles | None = None

    @property
    def abilities(self) -> set[str]:
        """What scenarios can do by it, see `Ability`."""
        return list_fault_abilities(self.components).union(
            {Ability.CDI} if self.cdi else (),
            map(metrics_ability, CONTROL_PLANE) if self.control else (),
            {Ability.POD_RESOURCES} if self.pod_resources else (),
            {Ability.DEVICE_HEALTH} if self.health_files else (),
            {Ability.UPGRADE} if self.upgrades else (),
            {Ability.FEATURE_GATES} if self.control else (),
        )


class ClusterFaults:
    """Implements `conformance.seam.scope.Faults` for all scopes of a cluster."""

    def __init__(self, reach: Reach, health: ClusterHealth, recorder: Recorder | None) -> None:
        self._reach = reach
        self._health = health
        self._recorder = recorder
        self._down: set[str] = set()

    def disturb(self, component: str, action: str) -> None:
        """Disturb components; that the API server does not answer meanwhile ends nothing."""

        def disturb_component(control: ComponentControl, name: str) -> None:
            control.disturb(name, action)

        self._act_on_each(component, action, disturb_component, down=action in {"kill", "stop"})

    def set_gates(self, component: str, gates: Mapping[str, bool]) -> None:
        """Restart components with other feature gates; as in `disturb`, silence ends nothing."""

        def set_gates_of_component(control: ComponentControl, name: str) -> None:
            control.set_gates(name, gates)

        self._act_on_each(component, "set gates of", set_gates_of_component)

    def _act_on_each(
        self,
        component: str,
        action: str,
        act: Callable[[ComponentControl, str], None],
        *,
        down: bool = False,
    ) -> None:
        """Act on each component that is meant. Raises TargetError: the cluster cannot.

        ``down``: they are not there afterwards.
        """
        names, control = match_components(component, self._reach.components), self._reach.control
        if control is None or not names:
            known_names = ", ".join(self._reach.components) or "none"
            raise TargetError(
                f"this cluster cannot {action} {component}; components that it can: {known_names}"
            )
        # The API server forgets where watches were: what was said before must be recorded by then.
        self._catch_up(names)
        self._health.pause()
        try:
            for name in names:
                act(control, name)
                if down:
                    self._down.add(name)
                else:
                    self._down.discard(name)
        finally:
            if not self._down & API:
                self._health.resume()
        self._catch_up(names)

    def _catch_up(self, disturbed: list[str]) -> None:
        """Record all that was said, if the API server is to be disturbed and answers."""
        if self._recorder is not None and API & {*disturbed} and not self._down & API:
            self._recorder.catch_up()

    def set_health(self, node: str, device: Obj, health: Health) -> None:
        """Make a driver report that health, by the file that it follows."""
        if self._reach.health_files is None:
            raise TargetError(
                "this cluster's driver takes no device health (no ability device-health)"
            )
        self._reach.health_files.set_health(node, device, health)


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
            node_names = ", ".join(self._files)
            raise TargetError(
                f"no driver on node {node} takes device health; nodes with one: {node_names}"
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
