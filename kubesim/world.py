"""The whole cluster: its parts, and how they settle.

Between two moments of virtual time the parts run in turn until none of them changes anything.
Then time jumps to the next moment at which something is due.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Final, Protocol

from kube.base.errors import TargetError
from kube.components import OTHER_DRIVER
from kube.observations import Health
from kube.values import KUBE_SCHEDULER, Obj
from kubesim.apiserver.admission import QuotaController
from kubesim.apiserver.handling import Handler
from kubesim.apiserver.server import ApiServer
from kubesim.clock import VirtualClock
from kubesim.cluster import Cluster
from kubesim.components import MANAGER, SCHEDULER, Components, Remembers
from kubesim.controllers.claims import ClaimController
from kubesim.controllers.daemonsets import DaemonSetController
from kubesim.controllers.deployments import DeploymentController
from kubesim.controllers.eviction import EvictionController
from kubesim.controllers.garbage_collection import GarbageCollector, NamespaceController
from kubesim.controllers.group_protection import PodGroupProtection
from kubesim.controllers.jobs import JobController
from kubesim.controllers.node_lifecycle import NodeLifecycleController
from kubesim.controllers.statefulsets import StatefulSetController
from kubesim.controllers.workloads import ReplicaSetController
from kubesim.nodes.containers import AnyCommand, ContainerRuntime
from kubesim.nodes.driver import NodeDriver, SlicePublisher
from kubesim.nodes.kubelet import Kubelet
from kubesim.nodes.node import Node, hold_devices, node_object
from kubesim.scheduling.scheduler import Scheduler
from kubesim.store import Identity, Store
from reference_allocator.features import Features
from reference_allocator.gates import (
    check_gates,
    gates_for_version,
    minor_of,
    scheduler_gates,
)

KUBERNETES: Final = "1.37.2"
"""The version whose rules apply where none is named."""

_MAX_ROUNDS: Final = 1000
_NEVER: Final = (-1, -1)


class Controller(Protocol):
    """A part of the control plane, or a kubelet; it keeps nothing that could not be lost."""

    watches: frozenset[str]
    """Kinds whose changes may give it work; it also runs when a moment comes that any asked for."""

    def sync(self) -> None:
        """Bring the cluster closer to what is wanted. Called again until nothing changes."""
        ...


@dataclass(slots=True)
class Part:
    """Something that takes turns.

    ``component``: whose process it is part of; empty: nobody stops it. ``last_relevant_change``:
    moments that had come and revision at the last change that concerned it;
    ``last_checked_change``: the same at the last change of all.
    """

    component: str
    controller: Controller
    last_relevant_change: tuple[int, int] = _NEVER
    last_checked_change: tuple[int, int] = _NEVER


class World:
    """A running cluster in this process. Not thread-safe: the target holds a lock."""

    def __init__(
        self,
        *,
        kubernetes_version: str = KUBERNETES,
        gates: Mapping[str, bool] | None = None,
        seed: int = 0,
        start: float = 0.0,
        nodes: Sequence[Node] = (),
        drivers: Mapping[str, NodeDriver | None] | None = None,
        network: Iterable[Obj] = (),
        others: Mapping[str, Callable[[], NodeDriver]] | None = None,
        scheduler: str = "",
        scheduler_kubernetes: str = "",
        runtime: ContainerRuntime | None = None,
        listeners: Mapping[str, Callable[[str, Obj], None]] | None = None,
    ) -> None:
        """Start it.

        Args:
            gates: feature gates that are not as that version has them by default.
            seed: uids and generated names depend on it.
            start: virtual time at the start, in seconds after `clock.EPOCH`.
            nodes: their names and faults.
            drivers: name of a node -> its driver, if it has one.
            network: ResourceSlices with devices that are not on any one node.
            others: name of a node -> makes its other driver, when that is started.
            scheduler: ``spec.schedulerName`` of another scheduler beside the default one.
            scheduler_kubernetes: the version whose rules that scheduler, or without one the default
                one, follows; empty: that of the cluster.
            runtime: knows what the commands of containers do; None: any runs until it is ended.
            listeners: kind -> told every change of an object of that kind, from the first one on.

        Raises ValueError: a Kubernetes version whose rules are not known, or a feature gate that it
        does not have or does not let one set.
        """
        check_gates(kubernetes_version, gates or {})
        defaults = gates_for_version(kubernetes_version)
        gates = {name: gate.default for name, gate in defaults.items()} | dict(gates or {})
        drivers, runtime = drivers or {}, runtime or AnyCommand()
        self.kubernetes_version = kubernetes_version
        self.clock = VirtualClock(start)
        identity = Identity(seed)
        store = Store(self.clock, identity)
        for kind, listener in (listeners or {}).items():
            store.listen(kind, listener)
        features = Features.for_version(kubernetes_version, gates)
        minor = minor_of(kubernetes_version)
        self.cluster = Cluster(self.clock, identity, store, features, gates, minor)
        self.api = ApiServer(self.cluster)
        self.handler = Handler(self.cluster, self.api)
        self.schedulers = [
            self._make_scheduler(
                name, scheduler_kubernetes if name == (scheduler or KUBE_SCHEDULER) else ""
            )
            for name in dict.fromkeys((KUBE_SCHEDULER, scheduler or KUBE_SCHEDULER))
        ]
        self.scheduler = self.schedulers[0]
        self.kubelets: list[Kubelet] = []
        published: list[tuple[str | None, Obj]] = [(None, item) for item in network]
        for node in nodes:
            driver = drivers.get(node.name)
            store.add(node_object(node, kubernetes_version, gates))
            published += [(node.name, item) for item in driver.slices] if driver else []
            if node.ready:
                make_other = (others or {}).get(node.name)
                kubelet = Kubelet(self.cluster, self.api, node.name, driver, make_other, runtime)
                self.kubelets.append(kubelet)
        unready_nodes = frozenset(node.name for node in nodes if not node.ready)
        self.publisher = SlicePublisher(
            self.cluster, self.api, published, unready_nodes, self._publishes
        )
        self.other_publisher = SlicePublisher(
            self.cluster, self.api, (), unready_nodes, partial(self._publishes, role=OTHER_DRIVER)
        )
        self._known_slices = {
            (name, "driver"): driver.slices
            for name, driver in drivers.items()
            if driver is not None
        }
        self._parts = self._build_parts()
        components_with_memory = {
            name: [
                part.controller
                for part in self._parts
                if part.component == name and isinstance(part.controller, Remembers)
            ]
            for name in (MANAGER, SCHEDULER)
        }
        self.components = Components(components_with_memory, self.kubelets)
        for node in nodes:
            driver = drivers.get(node.name)
            if node.ready and driver is not None and node.held:
                hold_devices(self.api, node.name, driver, node.held, runtime.holding)
        self.settle()

    def _make_scheduler(self, name: str, version: str) -> Scheduler:
        """Return a scheduler; ``version``: whose rules it follows, empty: those of the cluster."""
        if not version:
            return Scheduler(self.cluster, self.api, self.kubernetes_version, name)
        gates = scheduler_gates(self.kubernetes_version, self.cluster.gates, version)
        as_it_sees = replace(
            self.cluster,
            features=Features.for_version(version, gates),
            gates={**self.cluster.gates, **gates},
            minor=minor_of(version),
        )
        return Scheduler(as_it_sees, self.api, version, name)

    def _build_parts(self) -> list[Part]:
        """Return all parts, in the order of their turns.

        None has to follow another one: where all have settled is the same in any order (a test has
        them take turns in the reverse order). The order is fixed so that two runs are the same, and
        is that of causes (claims and pods, then nodes, then what is left behind), which settles in
        the fewest rounds.
        """
        cluster, api = self.cluster, self.api
        return [
            Part(MANAGER, ClaimController(cluster, api)),
            Part(MANAGER, DaemonSetController(cluster, api)),
            Part(MANAGER, DeploymentController(cluster, api)),
            Part(MANAGER, ReplicaSetController(cluster, api)),
            Part(MANAGER, StatefulSetController(cluster, api)),
            Part(MANAGER, JobController(cluster, api)),
            Part(MANAGER, QuotaController(cluster, api.quotas)),
            Part(MANAGER, EvictionController(cluster, api)),
            Part(MANAGER, PodGroupProtection(cluster)),
            *(Part(SCHEDULER, scheduler) for scheduler in self.schedulers),
            *(Part(kubelet.component, kubelet) for kubelet in self.kubelets),
            Part("", self.publisher),
            Part("", self.other_publisher),
            Part(MANAGER, GarbageCollector(cluster, api)),
            Part(MANAGER, NamespaceController(cluster, api)),
            Part(MANAGER, NodeLifecycleController(cluster, api, self.kubelets)),
        ]

    @property
    def controllers(self) -> list[Controller]:
        """Everything that takes turns, in that order."""
        return [part.controller for part in self._parts]

    def settle(self) -> None:
        """Let everything happen that happens without time passing.

        Raises TargetError: the parts keep undoing each other's work, a defect of the reference.
        """
        running = [part for part in self._parts if self.components.is_running(part.component)]
        for _ in range(_MAX_ROUNDS):
            worked = False
            for part in running:
                # Nothing has happened since it looked: it would do the same, which was nothing.
                present = self.clock.moments_passed, self.cluster.store.revision
                if part.last_checked_change == present:
                    continue
                part.last_checked_change = present
                # A change of kinds that it does not watch is none for it.
                newest = self._newest(part)
                if part.last_relevant_change != newest:
                    part.last_relevant_change = newest
                    part.controller.sync()
                    worked = True
            if not worked:
                return
        raise TargetError("the reference does not settle: this is a bug in it")

    def advance(self, limit: float) -> bool:
        """Jump to the next moment at which something is due, at most to ``limit``.

        Returns False when ``limit`` was reached before anything was due.
        """
        moment = self.clock.next_moment()
        if moment is None or moment > limit:
            self.clock.advance(limit)
            return False
        self.clock.advance(moment)
        self.settle()
        return True

    def _newest(self, part: Part) -> tuple[int, int]:
        """Return how many moments have come, and the last revision that concerns a part.

        That time has passed gives no work to anybody who did not ask for a moment of it. In real
        time it passes with every request.
        """
        newest = self.cluster.store.newest_revision(part.controller.watches)
        return self.clock.moments_passed, newest

    def fault(self, component: str, action: str) -> None:
        """Disturb a component; see `Faults.disturb`."""
        self.components.disturb(component, action)
        self._look_again()

    def set_health(self, kubelet: Kubelet, device: str, health: Health) -> None:
        """Let the driver of a kubelet's node find a device healthy or not."""
        assert kubelet.driver is not None
        kubelet.driver.set_health(device, health)
        kubelet.dra_manager.unheard_until.pop(kubelet.driver.name, None)
        self._look_again()

    def await_health(self) -> None:
        """Let time pass until every driver has told the health of its devices again."""
        moments = [
            moment
            for kubelet in self.kubelets
            for moment in kubelet.dra_manager.unheard_until.values()
        ]
        limit = max(moments, default=self.clock.now)
        while self.advance(limit):
            pass
        self.settle()

    def _look_again(self) -> None:
        """Let all look again: one was started, reaches the API server again or heard news."""
        for kubelet in self.kubelets:
            self._publish(kubelet.driver, kubelet.node, "driver", self.publisher)
            self._publish(kubelet.other, kubelet.node, OTHER_DRIVER, self.other_publisher)
        for part in self._parts:
            # Nothing changed in the store, and yet each may decide otherwise now.
            part.last_relevant_change = part.last_checked_change = _NEVER
        self.settle()

    def _publish(
        self, driver: NodeDriver | None, node: str, role: str, publisher: SlicePublisher
    ) -> None:
        if driver is None or not self._publishes(node, role):
            return
        if driver.slices != self._known_slices.get((node, role)):
            self._known_slices[node, role] = driver.slices
            publisher.change_slices(node, driver.slices)

    def _publishes(self, node: str | None, role: str = "driver") -> bool:
        """Return whether a driver of a node runs."""
        return node is None or self.components.has_registered_instance(f"{node}/{role}")
