"""What all scopes of one cluster target have in common."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from conformance.kubeapi.api import Api
from conformance.kubeapi.informers import InformerFactory
from conformance.targets.base import Capabilities
from conformance.targets.cluster.health import Health
from conformance.targets.cluster.hollow import HollowNodes
from conformance.targets.cluster.reach import ClusterFaults, Reach
from conformance.targets.cluster.recorder import Recorder
from conformance.targets.overlaps import ClaimHolders


@dataclass(frozen=True)
class Shared:
    """What the scopes of a target use together.

    Attributes:
        informers: of what has no namespace, so that it is followed once for all.
        claims: which claims of the cluster have which devices.
        logs: component name -> its log file on this machine.
    """

    api: Api
    capabilities: Callable[[], Capabilities]
    informers: InformerFactory
    hollow: HollowNodes
    health: Health
    recorder: Recorder | None
    claims: ClaimHolders
    logs: Mapping[str, Path]
    reach: Reach
    faults: ClusterFaults
