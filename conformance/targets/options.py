"""What a user may say about the target: the same on the command line and in pytest.

One table: what an option is called, what it means and for which targets is written at its field.
Both doors and the check that nothing is given in vain derive from it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from conformance.clusters.base import DEFAULT_IMAGE
from conformance.errors import UsageError
from conformance.options import Given, Option, options_of
from conformance.targets.conversions import gates_of, seconds_of, version_of, words_of
from nvml_driver.simulated import shipped

if TYPE_CHECKING:
    from conformance.scenario.profile import DriverProfile

TargetName = Literal["reference", "cluster"]
ClusterName = Literal["kubeconfig", "kind", "local"]

DEFAULT_SIMULATION = "t4x4"
"""The simulated GPUs of our own driver where nobody asks for others."""

REFERENCE_DRIVER = "gpu.nvidia.com"
"""The driver that the reference runs: ours, which has the name of NVIDIA's."""

OWN_PROFILE = "nvml-dra-driver"
"""The profile of our own driver, and the default where the suite starts that."""

OTHER_PROFILE = "other-nvml-dra-driver"
"""The profile of the second driver, our own once more, where the suite starts one."""

OTHER_SIMULATION = "t4x4"
"""The simulated GPUs of that."""

NVIDIA_PROFILE = "gpu.nvidia.com"
"""The profile of NVIDIA's driver, and the default elsewhere."""

DEFAULT_VERSION = "1.37.1"
"""The Kubernetes that the reference and a local cluster are, where nothing else is asked for."""

MOST_NODES = 1000

REQUIRED_GATE = "DynamicResourceAllocation"


@dataclass(frozen=True, slots=True)
class TargetOptions:
    """What a user may say about the target.

    Attributes:
        simulate: "" is what a cluster that runs shows, else ``DEFAULT_SIMULATION``.
        driver_command: () is our own driver.
        kubernetes_version: that the reference behaves like and a local cluster is; "" is that of
            a cluster that runs or of ``binaries``, else ``DEFAULT_VERSION``.
        record: keep decisions and snapshots, for comparison with the reference.
    """

    target: Annotated[TargetName, Given("What the scenarios run against.")] = "reference"
    cluster: Annotated[ClusterName | None, Given("Where the cluster comes from.")] = None
    kubeconfig: Annotated[
        Path | None,
        Given(
            "File for --cluster kubeconfig; by default $KUBECONFIG, else ~/.kube/config.",
            places=("kubeconfig",),
        ),
    ] = None
    context: Annotated[
        str,
        Given(
            "Context in it; required, the current one is never taken by accident.",
            places=("kubeconfig",),
        ),
    ] = ""
    driver: Annotated[
        str,
        Given(
            f"Driver profile: a shipped name or a file. [default: {OWN_PROFILE} where the suite "
            f"starts its own driver, else {NVIDIA_PROFILE}]"
        ),
    ] = ""
    driver_options: Annotated[
        tuple[str, ...],
        Given(
            "Feature gate or setting of the driver that is on, of those that its profile names "
            "(repeatable).",
            flag="--driver-option",
            metavar="NAME",
        ),
    ] = ()
    other_driver: Annotated[
        str,
        Given(
            "Profile of another driver that is installed on the same nodes, for scenarios with two "
            f"drivers. [default: {OTHER_PROFILE}, which is started for them, where the suite "
            "starts its own driver; else none]",
            metavar="PROFILE",
            places=("kubeconfig", "kind", "reference"),
        ),
    ] = ""
    driver_command: Annotated[
        tuple[str, ...],
        Given(
            "Driver to start on each node of a local cluster instead of ours.",
            type=str,
            convert=words_of,
            places=("local",),
        ),
    ] = ()
    simulate: Annotated[
        str,
        Given(
            f"Simulated GPUs of our own driver: a file, or one of {', '.join(shipped())}; for the "
            "reference also the shape of a cluster, a YAML file or one of those that are shipped. "
            f"[default: {DEFAULT_SIMULATION}, or what a cluster that runs shows]",
            metavar="PROFILE",
            places=("local", "reference"),
        ),
    ] = ""
    dynamic_mig: Annotated[
        bool,
        Given(
            "Our own driver offers all MIG devices that can be made.",
            places=("local", "reference"),
        ),
    ] = False
    binaries: Annotated[
        Path | None,
        Given(
            "Directory with the local cluster's binaries, instead of the cache.",
            places=("local",),
        ),
    ] = None
    name: Annotated[str, Given("Name of a local or kind cluster.", places=("kind", "local"))] = (
        "default"
    )
    nodes: Annotated[
        int,
        Given(
            "Nodes, all alike; 0 is a control plane only.",
            places=("local", "reference"),
        ),
    ] = 1
    feature_gates: Annotated[
        Mapping[str, bool],
        Given(
            "NAME=true or NAME=false, on the reference or every component of a local cluster "
            "(repeatable).",
            flag="--feature-gate",
            type=tuple[str, ...],
            convert=gates_of,
            places=("local", "reference"),
        ),
    ] = field(default_factory=dict)
    image_archives: Annotated[
        tuple[Path, ...],
        Given(
            "Image file that a kind cluster loads (repeatable).",
            flag="--image-archive",
            places=("kind",),
        ),
    ] = ()
    node_image: Annotated[
        str,
        Given(
            "Image of a kind cluster's nodes, which decides its Kubernetes version. [default: the "
            "kind command's]",
            metavar="IMAGE",
            places=("kind",),
        ),
    ] = ""
    kind_config: Annotated[
        Path | None,
        Given(
            "kind's configuration of the cluster. [default: ci/kind/cluster.yaml, three nodes]",
            places=("kind",),
        ),
    ] = None
    driver_manifests: Annotated[
        str,
        Given(
            "Manifests that install the driver for the run: a kustomization, a folder of files, a "
            "file, or a URL of one of these. kubectl reads them.",
            metavar="FOLDER|FILE|URL",
            places=("kind",),
        ),
    ] = ""
    image: Annotated[
        str,
        Given(
            f"Image that scenario pods run. [default: {DEFAULT_IMAGE}; local clusters bring one]",
            places=("kubeconfig", "kind", "local"),
        ),
    ] = ""
    double_allocation: Annotated[
        bool,
        Given(
            "Also run scenarios that give one device to two claims for some seconds, as a "
            "scheduler that has lost count does.",
            places=("kubeconfig",),
        ),
    ] = False
    keep: Annotated[
        bool,
        Given(
            "Leave a cluster that was started running.",
            flag="--keep-cluster",
            places=("kind", "local"),
        ),
    ] = False
    kubernetes_version: Annotated[
        str,
        Given(
            "Kubernetes that the reference or a local cluster is: a minor, for example 1.35, or a "
            f"patch of it. [default: {DEFAULT_VERSION}]",
            flag="--kubernetes",
            metavar="VERSION",
            convert=version_of,
            places=("local", "reference"),
        ),
    ] = ""
    churn_time: Annotated[
        float,
        Given(
            "Repeat churn for so long, for example 10m, each time with the next seed. "
            "[default: once, for as long as the scenario says]",
            metavar="TIME",
            type=str,
            convert=seconds_of,
        ),
    ] = 0.0
    churn_seed: Annotated[
        int, Given("Seed of the first churn; 0 is the scenario's.", metavar="SEED")
    ] = 0
    churn_here: Annotated[
        bool,
        Given(
            "Allow --churn-time on a cluster that others may use.", places=("kubeconfig", "kind")
        ),
    ] = False
    record: bool = False

    @property
    def version(self) -> str:
        """Of the Kubernetes that the reference is and that a local cluster would be started as."""
        return self.kubernetes_version or DEFAULT_VERSION

    @property
    def profile_name(self) -> str:
        """Name or file of the driver profile."""
        own = self.target == "reference" or (self.cluster == "local" and not self.driver_command)
        return self.driver or (OWN_PROFILE if own else NVIDIA_PROFILE)

    @property
    def other_name(self) -> str:
        """Name or file of the other driver's profile; empty where there is none."""
        return self.other_driver or (OTHER_PROFILE if self.other_profile() is not None else "")

    def profile(self) -> DriverProfile:
        """The driver profile that is used, with the options of the driver that are on.

        Raises:
            UsageError: there is none, it is malformed, or has no such option.
        """
        return _load(self.profile_name).with_options(self.driver_options)

    def other_profile(self) -> DriverProfile | None:
        """The profile of the other driver; None where there is none.

        Raises:
            UsageError: there is none of that name, it is malformed, or is of the same driver.
        """
        profile = self.profile()
        if not self.other_driver:
            local = self.target == "cluster" and self.cluster == "local" and self.nodes > 0
            starts = local or (self.target == "reference" and is_simulated(profile))
            other = _load(OTHER_PROFILE) if starts else None
            return other if other is not None and other.driver != profile.driver else None
        other = _load(self.other_driver)
        if other.driver == profile.driver:
            raise UsageError(
                f"--other-driver {self.other_driver}: that is the profile of {other.driver}, too;"
                " give the one of another driver"
            )
        return other


def _load(name: str) -> DriverProfile:
    from conformance.data import scenarios_dir
    from conformance.scenario.profile import load_profile

    return load_profile(name, scenarios_dir() / "drivers")


def is_simulated(profile: DriverProfile) -> bool:
    """Whether the reference runs our own driver on simulated GPUs for a profile."""
    return profile.driver == REFERENCE_DRIVER or profile.spec.simulated.own_driver


TABLE = options_of(TargetOptions)


def is_given(options: TargetOptions, item: Option) -> bool:
    """Whether an option has another value than its default."""
    return bool(getattr(options, item.name) != item.default)
