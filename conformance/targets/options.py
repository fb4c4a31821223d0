"""What a user may say about the target: the same on the command line and in pytest."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from conformance.data import scenarios_dir
from conformance.scenario.profile import DriverProfile, load_profile

TargetName = Literal["reference", "cluster"]
ClusterName = Literal["kubeconfig", "kind", "local"]

DEFAULT_PROFILE = "t4x4"
REFERENCE_DRIVER = "gpu.nvidia.com"
"""The profile of our own driver, which is the one that the reference runs."""


@dataclass(frozen=True, slots=True)
class TargetOptions:
    """What a user may say about the target.

    Attributes:
        driver: name of a shipped driver profile, or the path of one.
        driver_command: a driver to run on each node of a local cluster; () is our own.
        simulate: which simulated GPUs our own driver and the reference show.
        dynamic_mig: whether they offer all MIG devices that could be made.
        name: of a local or kind cluster.
        kubernetes_version: that the reference behaves like; "" is the newest.
        record: keep decisions and snapshots, for comparison.
        keep: leave a cluster that was started for this run running.
        image_archives: image files that a kind cluster loads.
    """

    target: TargetName = "reference"
    cluster: ClusterName | None = None
    kubeconfig: Path | None = None
    context: str = ""
    driver: str = REFERENCE_DRIVER
    driver_command: tuple[str, ...] = ()
    simulate: str = DEFAULT_PROFILE
    dynamic_mig: bool = False
    binaries: Path | None = None
    name: str = "default"
    nodes: int = 1
    image: str = ""
    feature_gates: Mapping[str, bool] = field(default_factory=dict)
    kubernetes_version: str = ""
    record: bool = False
    keep: bool = False
    image_archives: tuple[Path, ...] = ()

    def profile(self) -> DriverProfile:
        """The driver profile that ``driver`` names.

        Raises:
            UsageError: there is none, or it is malformed.
        """
        return load_profile(self.driver, scenarios_dir() / "drivers")
