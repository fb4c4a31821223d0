"""The reference as a target: opened once, with a scope for each scenario.

One lock guards the whole cluster. Scopes may be used from several threads, one at a time gets on;
virtual time is common to them, so a wait in one scope makes time pass in all.
"""

from __future__ import annotations

import os
import shutil
import tempfile
import threading
import weakref
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Final

from conformance import __version__
from conformance.scenario.shape import ShapeNode
from conformance.seam.abilities import Ability, list_fault_abilities, metrics_ability
from conformance.seam.overlaps import ClaimHolders
from conformance.seam.values import (
    Capabilities,
    FreeDevices,
    Tier,
    describe_scheduler,
)
from conformance.targets.reference.device_source import (
    DescribedDevices,
    DeviceSource,
    NoDriver,
    SimulatedGpus,
)
from conformance.targets.reference.probes import ProbeRuntime
from conformance.targets.reference.scope import ReferenceScope
from conformance.targets.reference.shaped import fit_devices, node_of
from kube.components import OTHER_DRIVER
from kube.nodes import RUN_LABEL, usable_nodes
from kube.observations import CONTROL_PLANE
from kube.values import Obj, Ref
from kubesim.nodes.driver import NodeDriver
from kubesim.resources import served_apis
from kubesim.world import KUBERNETES, World
from reference_allocator.gates import check_gates, describe_rules, scheduler_gates

_SHARED_MEMORY: Final = Path("/dev/shm")  # noqa: S108 - mkdtemp makes a private one in it
_WITH_DRIVER: Final[tuple[Tier, ...]] = ("node", "device")
_DELETION_ORDER: Final = (
    "DaemonSet",
    "Deployment",
    "ReplicaSet",
    "StatefulSet",
    "Job",
    "Pod",
    "PodGroup",
    "ResourceClaim",
    "ResourceClaimTemplate",
    "ResourceQuota",
    "Event",
    "Namespace",
    "DeviceTaintRule",
    "ResourceSlice",
    "DeviceClass",
    "Node",
    "PriorityClass",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ReferenceOptions:
    """How the reference cluster looks.

    Attributes:
        kubernetes_version: whose rules and default feature gates apply.
        feature_gates: gates set on top of the version's defaults.
        devices: where the devices of each of them come from, and with them the driver.
        other: where those of another driver come from, which runs where a scenario needs it.
        scheduler: ``spec.schedulerName`` of another scheduler beside the default one.
        scheduler_kubernetes: the version whose rules that scheduler, or without one the default
            one, follows; empty: that of the cluster.
        seed: uids and generated names depend on it.
        start: virtual time at the start, in seconds after `clock.EPOCH`.
    """

    kubernetes_version: str = KUBERNETES
    feature_gates: Mapping[str, bool] | None = None
    nodes: Sequence[ShapeNode] = (ShapeNode(name="reference-node-0"),)
    devices: DeviceSource = field(default_factory=SimulatedGpus)
    other: SimulatedGpus | DescribedDevices | None = None
    scheduler: str = ""
    scheduler_kubernetes: str = ""
    seed: int = 0
    start: float = 0.0


class ReferenceTarget:
    """A model of a Kubernetes cluster in this process: deterministic, without waiting."""

    name = "reference"

    def __init__(self, options: ReferenceOptions | None = None) -> None:
        """Start it: nodes, driver and its ResourceSlices are there when this returns.

        Raises:
            ValueError: a Kubernetes version whose rules are not known, or a feature gate that it
                does not have or does not let one set.
            DriverError: the simulated GPUs cannot be set up.
            UsageError: the shape speaks of devices that are not there.
        """
        self.options = options or ReferenceOptions()
        # As the world does, but before a driver is started for nothing.
        check_gates(self.options.kubernetes_version, self.options.feature_gates or {})
        self.claims = ClaimHolders()
        self._root = Path(tempfile.mkdtemp(prefix="dra-reference-", dir=_memory()))
        # Also when nobody closes it: at the latest when the interpreter ends.
        self._remove = weakref.finalize(self, shutil.rmtree, self._root, ignore_errors=True)
        self.lock = threading.RLock()
        try:
            self.world = World(
                kubernetes_version=self.options.kubernetes_version,
                gates=self.options.feature_gates,
                seed=self.options.seed,
                start=self.options.start,
                nodes=[node_of(node) for node in self.options.nodes],
                drivers={node.name: self._driver(node) for node in self.options.nodes},
                network=[*self.options.devices.network, *self.options.devices.unprepared],
                others={node.name: partial(self._other, node) for node in self._with_other},
                scheduler=self.options.scheduler,
                scheduler_kubernetes=self.options.scheduler_kubernetes,
                runtime=ProbeRuntime(),
                listeners={"ResourceClaim": self.claims.hear},
            )
        except BaseException:
            self.close()
            raise

    def _driver(self, node: ShapeNode) -> NodeDriver | None:
        """Return the driver of a node, started."""
        root = self._root / node.name
        driver = self.options.devices.start(node, root, root / "cdi") if node.driver else None
        fit_devices(node, driver)
        return driver

    @property
    def _with_other(self) -> list[ShapeNode]:
        """The nodes on which the other driver can be started; GPUs of a shape are not its."""
        has_driver = self.options.devices.driver is not None
        nodes = self.options.nodes if self.options.other is not None and has_driver else ()
        return [
            node.model_copy(update={"gpus": ""}) for node in nodes if node.driver and node.ready
        ]

    def _other(self, node: ShapeNode) -> NodeDriver:
        """Start the other driver of a node; both write their CDI specs into one folder."""
        assert self.options.other is not None
        root = self._root / node.name
        return self.options.other.start(node, root / OTHER_DRIVER, root / "cdi")

    def capabilities(self) -> Capabilities:
        devices, gates = self.options.devices, self.world.cluster.gates
        scheduler = self.options.scheduler_kubernetes
        nodes = usable_nodes(self.world.cluster.store.all("Node"))
        return Capabilities(
            kubernetes_version=self.options.kubernetes_version,
            served_apis=served_apis(self.world.cluster.served_kinds),
            tiers=frozenset({"allocation", *(_WITH_DRIVER if devices.driver and nodes else ())}),
            unserved=dict.fromkeys(_WITH_DRIVER, devices.why)
            if isinstance(devices, NoDriver)
            else {},
            driver=devices.driver,
            nodes=nodes,
            other_driver=self.options.other.driver if self.options.other else None,
            free=FreeDevices(other_by_node=self._other_devices()),
            abilities=frozenset(
                {
                    Ability.CDI,
                    Ability.DOUBLE_ALLOCATION,
                    Ability.IMAGE,
                    Ability.IMPERSONATION,
                    Ability.KUBELET_ACCOUNT,
                    Ability.KUBELET_METRICS,
                    Ability.POD_RESOURCES,
                    Ability.ROOT_CONTAINERS,
                }
                | set(map(metrics_ability, CONTROL_PLANE))
                | list_fault_abilities(self.world.components.names)
                | ({Ability.DEVICE_HEALTH} if devices.driver else set())
            ),
            feature_gates=gates,
            simulated=(
                "API server",
                "controllers",
                "scheduler (reference allocator)",
                "kubelet",
                "containers",
                *filter(None, [devices.simulated]),
            ),
            versions={
                "kubernetes": self.options.kubernetes_version,
                "reference": __version__,
                **describe_rules(self.options.kubernetes_version),
                **describe_scheduler(self.options.scheduler_kubernetes),
            },
            scheduler_version=scheduler,
            scheduler_gates=scheduler_gates(self.options.kubernetes_version, gates, scheduler)
            if scheduler
            else {},
        )

    def _other_devices(self) -> dict[str, int]:
        other = self.options.other
        return {node.name: other.count(node) for node in self._with_other} if other else {}

    def scope(self, namespace: str) -> ReferenceScope:
        """Return a view of one namespace, which need not exist yet.

        On a cluster time passes between two scenarios; here only what a driver needs for it to
        tell its devices' health again.
        """
        with self.lock:
            if self.world.components.is_running(""):
                self.world.await_health()
        return ReferenceScope(self.world, self.lock, self.claims, namespace)

    def owned(
        self,
        run: str | None = None,
        *,
        every_kind: bool = False,  # noqa: ARG002 -- nothing installs a driver here
    ) -> list[Ref]:
        """Return all that has the run label (one run's, or any), in the order of deletion."""
        with self.lock:
            labelled = [
                obj
                for kind in _DELETION_ORDER
                for obj in self.world.cluster.store.all(kind)
                if _belongs(obj, run)
            ]
            return [Ref.of(obj) for obj in labelled]

    def now(self) -> float:
        """Return the virtual seconds since the reference was started."""
        with self.lock:
            return self.world.clock.now

    def peak_memory(self) -> int | None:
        """Return None: all of it is in this process."""
        return None

    def close(self) -> None:
        """Remove the driver's files. Can be called again."""
        self._remove()

    def __enter__(self) -> ReferenceTarget:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()


def _memory() -> Path | None:
    """Return a folder in memory for files that no crash needs to spare, None without one."""
    return _SHARED_MEMORY if os.access(_SHARED_MEMORY, os.W_OK | os.X_OK) else None


def _belongs(obj: Obj, run: str | None) -> bool:
    labels: Mapping[str, Any] = obj["metadata"].get("labels") or {}
    return RUN_LABEL in labels and run in {None, labels[RUN_LABEL]}
