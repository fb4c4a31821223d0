"""The whole cluster: its parts, and how they settle.

Between two moments of virtual time the parts run in turn until none of them changes anything.
Then time jumps to the next moment at which something is due.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Final

from conformance.clusters.base import OTHER_DRIVER
from conformance.scenario.shape import ShapeNode
from conformance.scenario.stimulus import Health
from conformance.targets.base import Obj, TargetError
from conformance.targets.overlaps import ClaimHolders
from conformance.targets.reference.apiserver.handling import Handler
from conformance.targets.reference.apiserver.server import ApiServer
from conformance.targets.reference.clock import VirtualClock
from conformance.targets.reference.cluster import Cluster
from conformance.targets.reference.components import MANAGER, SCHEDULER, Components
from conformance.targets.reference.controllers import Controller
from conformance.targets.reference.controllers.claims import ClaimController
from conformance.targets.reference.controllers.daemonsets import DaemonSetController
from conformance.targets.reference.controllers.deployments import DeploymentController
from conformance.targets.reference.controllers.eviction import EvictionController
from conformance.targets.reference.controllers.garbage_collection import (
    GarbageCollector,
    NamespaceController,
)
from conformance.targets.reference.controllers.jobs import JobController
from conformance.targets.reference.controllers.node_lifecycle import NodeLifecycleController
from conformance.targets.reference.controllers.quotas import QuotaController
from conformance.targets.reference.controllers.replicasets import ReplicaSetController
from conformance.targets.reference.controllers.statefulsets import StatefulSetController
from conformance.targets.reference.nodes.driver import NodeDriver, SlicePublisher
from conformance.targets.reference.nodes.kubelet import Kubelet
from conformance.targets.reference.nodes.shaped import hold, node_object
from conformance.targets.reference.scheduling.scheduler import Scheduler
from conformance.targets.reference.store import Identity, Store
from reference_allocator.features import Features
from reference_allocator.gates import minor_of

_MAX_ROUNDS: Final = 1000


class World:
    """A running cluster in this process. Not thread-safe: the target holds a lock."""

    def __init__(
        self,
        *,
        kubernetes_version: str,
        gates: Mapping[str, bool],
        seed: int,
        start: float = 0.0,
        nodes: Sequence[ShapeNode],
        drivers: Mapping[str, NodeDriver | None],
        network: Iterable[Obj] = (),
        others: Mapping[str, Callable[[], NodeDriver]] | None = None,
    ) -> None:
        """Start it.

        Args:
            kubernetes_version: whose rules apply.
            gates: every feature gate of that version, as it is set.
            seed: uids and generated names depend on it.
            start: virtual time at the start, in seconds after `clock.EPOCH`.
            nodes: what they are called, and what is amiss with them.
            drivers: name of each node -> its driver, if it has one.
            network: ResourceSlices with devices that are not on any one node.
            others: name of a node -> makes its other driver, when that is started.
        """
        self.clock = VirtualClock(start)
        identity = Identity(seed)
        store = Store(self.clock, identity)
        self.claims = ClaimHolders()
        store.listen("ResourceClaim", self.claims.hear)
        features = Features.for_version(kubernetes_version, gates)
        minor = minor_of(kubernetes_version)
        self.cluster = Cluster(self.clock, identity, store, features, gates, minor)
        self.api = ApiServer(self.cluster)
        self.handler = Handler(self.cluster, self.api)
        self.scheduler = Scheduler(self.cluster, self.api, kubernetes_version)
        self.kubelets: list[Kubelet] = []
        published: list[tuple[str | None, Obj]] = [(None, item) for item in network]
        for node in nodes:
            driver = drivers[node.name]
            store.add(node_object(node, kubernetes_version, gates))
            published += [(node.name, item) for item in driver.slices] if driver else []
            if node.ready:
                make_other = (others or {}).get(node.name)
                kubelet = Kubelet(self.cluster, self.api, node.name, driver, make_other)
                self.kubelets.append(kubelet)
        gone = frozenset(node.name for node in nodes if not node.ready)
        self.publisher = SlicePublisher(self.cluster, self.api, published, gone, self._publishes)
        self.other_publisher = SlicePublisher(
            self.cluster, self.api, (), gone, partial(self._publishes, role=OTHER_DRIVER)
        )
        self._told = {
            (name, "driver"): driver.slices
            for name, driver in drivers.items()
            if driver is not None
        }
        claims = ClaimController(self.cluster, self.api)
        evictions = EvictionController(self.cluster, self.api)
        garbage = GarbageCollector(self.cluster, self.api)
        lifecycle = NodeLifecycleController(self.cluster, self.api, self.kubelets)
        parts: list[tuple[str, Controller]] = [
            (MANAGER, claims),
            (MANAGER, DaemonSetController(self.cluster, self.api)),
            (MANAGER, DeploymentController(self.cluster, self.api)),
            (MANAGER, ReplicaSetController(self.cluster, self.api)),
            (MANAGER, StatefulSetController(self.cluster, self.api)),
            (MANAGER, JobController(self.cluster, self.api)),
            (MANAGER, QuotaController(self.cluster, self.api)),
            (MANAGER, evictions),
            (SCHEDULER, self.scheduler),
            *((f"{kubelet.node}/kubelet", kubelet) for kubelet in self.kubelets),
            ("", self.publisher),
            ("", self.other_publisher),
            (MANAGER, garbage),
            (MANAGER, NamespaceController(self.cluster, self.api)),
            (MANAGER, lifecycle),
        ]
        self._names = [name for name, _ in parts]
        self.controllers = [controller for _, controller in parts]
        remembering = {
            MANAGER: (claims, evictions, garbage, lifecycle),
            SCHEDULER: (self.scheduler,),
        }
        self.components = Components(remembering, self.kubelets)
        self._seen: list[tuple[float, int]] = [(-1.0, -1)] * len(self.controllers)
        for node in nodes:
            driver = drivers[node.name]
            if node.ready and driver is not None and node.held:
                hold(self.api, node.name, driver, node.held)
        self.settle()

    def settle(self) -> None:
        """Let everything happen that happens without time passing.

        Raises:
            TargetError: the parts keep undoing each other's work, a defect of the reference.
        """
        store, now = self.cluster.store, self.clock.now
        running = self._running()
        for _ in range(_MAX_ROUNDS):
            before = store.revision
            worked = False
            for index, controller in running:
                newest = max(map(store.changed, controller.watches))
                if self._seen[index] == (now, newest):
                    continue
                self._seen[index] = (now, newest)
                controller.sync()
                worked = True
            if not worked or (store.revision == before and not self._is_behind(running)):
                return
        raise TargetError("the reference does not settle: this is a bug in it")

    def advance(self, limit: float) -> bool:
        """Jump to the next moment at which something is due, at most to ``limit``.

        Returns:
            False when ``limit`` was reached before anything was due.
        """
        moment = self.clock.next()
        if moment is None or moment > limit:
            self.clock.advance(limit)
            return False
        self.clock.advance(moment)
        self.settle()
        return True

    def _is_behind(self, running: Sequence[tuple[int, Controller]]) -> bool:
        store, now = self.cluster.store, self.clock.now
        return any(
            self._seen[index] != (now, max(map(store.changed, controller.watches)))
            for index, controller in running
        )

    def fault(self, component: str, action: str) -> None:
        """Disturb a component; see `Faults.disturb`."""
        self.components.disturb(component, action)
        self._look_again()

    def set_health(self, kubelet: Kubelet, device: str, health: Health) -> None:
        """Have the driver of a kubelet's node find a device healthy or not."""
        assert kubelet.driver is not None
        kubelet.driver.set_health(device, health)
        self._look_again()

    def _look_again(self) -> None:
        """Who was started, reaches the API server again or heard news looks at everything."""
        for kubelet in self.kubelets:
            self._publish(kubelet.driver, kubelet.node, "driver", self.publisher)
            self._publish(kubelet.other, kubelet.node, OTHER_DRIVER, self.other_publisher)
        self._seen = [(-1.0, -1)] * len(self.controllers)
        self.settle()

    def _publish(
        self, driver: NodeDriver | None, node: str, role: str, publisher: SlicePublisher
    ) -> None:
        if driver is None or not self._publishes(node, role):
            return
        if driver.slices != self._told.get((node, role)):
            self._told[node, role] = driver.slices
            publisher.change(node, driver.slices)

    def _running(self) -> list[tuple[int, Controller]]:
        runs = [self.components.runs(name) for name in self._names]
        return [item for item in enumerate(self.controllers) if runs[item[0]]]

    def _publishes(self, node: str | None, role: str = "driver") -> bool:
        """Whether a driver of a node runs."""
        return node is None or self.components.serves(f"{node}/{role}")
