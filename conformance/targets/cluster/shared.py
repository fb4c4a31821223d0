"""What all scopes of one cluster target have in common."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from conformance.kubeapi.api import Api
from conformance.kubeapi.informers import InformerFactory
from conformance.targets.base import Capabilities
from conformance.targets.cluster.cdi import CdiFiles
from conformance.targets.cluster.control_files import ControlFiles
from conformance.targets.cluster.health import Health
from conformance.targets.cluster.hollow import HollowNodes
from conformance.targets.cluster.metrics import MetricsReader
from conformance.targets.cluster.podresources import PodResourcesSockets
from conformance.targets.cluster.recorder import Recorder
from conformance.targets.overlaps import ClaimHolders

FaultInjector = Callable[[str, str], None]
"""Called with a component's name and what to do (`Scope.fault`); returns when that is done."""


@dataclass(frozen=True)
class Shared:
    """What the scopes of a target use together.

    Attributes:
        informers: of what has no namespace, so that it is followed once for all.
        claims: which claims of the cluster have which devices.
        logs: component name -> its log file on this machine.
        cdi: reads the nodes' CDI specs, where somebody can.
        metrics: reads those of the control plane, where the cluster's source can.
        pod_resources: by which nodes' kubelets are asked, where they can be reached.
        fault: disturbs ``fault_components``, where the cluster's source can.
        control: tells drivers of the health of devices, where the suite has started them.
        down: those of ``fault_components`` that are stopped.
    """

    api: Api
    capabilities: Callable[[], Capabilities]
    informers: InformerFactory
    hollow: HollowNodes
    health: Health
    recorder: Recorder | None
    claims: ClaimHolders
    logs: Mapping[str, Path]
    cdi: CdiFiles | None
    metrics: MetricsReader | None
    pod_resources: PodResourcesSockets
    fault: FaultInjector | None
    fault_components: tuple[str, ...]
    control: ControlFiles | None = None
    down: set[str] = field(default_factory=set)
