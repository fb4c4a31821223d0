"""The options about the target: the same on the command line and in pytest.

One table: each field carries its option's name, help text and the targets that it applies to. The
command line, pytest and the check for options without effect derive from it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from conformance.targets.opening.conversions import churn_seconds_of, gates_of, version_of, words_of
from kube.base.errors import UsageError
from kube.base.options import Option, list_options, option_field
from localkube.base import DEFAULT_IMAGE
from nvml_driver.options import DEFAULT_DRIVER_NAME
from nvml_driver.simulated import list_shipped_profiles

if TYPE_CHECKING:
    from conformance.scenario.driver.profile import DriverProfile
    from conformance.scenario.scheduler import SchedulerProfile

TargetName = Literal["reference", "cluster"]
ClusterName = Literal["kubeconfig", "kind", "local"]

DEFAULT_SIMULATION = "t4x4"  # Default of the GPUs that our own driver simulates.

OWN_PROFILE = "nvml-dra-driver"
"""Profile of our own driver; the default where the suite starts that driver."""

OTHER_PROFILE = "other-nvml-dra-driver"
"""Profile of the second driver, another instance of ours, where the suite starts one."""

OTHER_SIMULATION = "t4x4"  # GPUs that the second driver simulates.

NVIDIA_PROFILE = "gpu.nvidia.com"  # Profile of NVIDIA's driver, the default elsewhere.

DEFAULT_VERSION = "1.37.2"  # Default Kubernetes version of the reference and of a local cluster.

MOST_NODES = 1000

MOST_SKEW = 3  # Minors by which a kubelet may be older than its API server.

REQUIRED_GATE = "DynamicResourceAllocation"

SUITE = ("local", "reference")
STARTED = ("kind", "local")
TARGET, DRIVER, SCHEDULER = "Target", "Driver", "Scheduler"
KIND, VERSIONS, CHURN = "kind cluster", "Several versions", "Churn scenarios"


@dataclass(frozen=True, slots=True)
class TargetOptions:
    """The options about the target.

    Attributes:
        simulate: "" means those of a running cluster, else ``DEFAULT_SIMULATION``.
        nodes: None means as many as suit the target (``node_count``, ``open_cluster``).
        driver_command: () means our own driver.
        kubernetes_version: "" means that of a running cluster or of ``binaries``, else
            ``DEFAULT_VERSION``.
        record: keep decisions and snapshots, for comparison with the reference.
    """

    target: TargetName = option_field("reference", "What to run the scenarios against.", TARGET)
    cluster: ClusterName | None = option_field(None, "Kind of cluster.", TARGET)
    kubeconfig: Path | None = option_field(
        None,
        "Kubeconfig file. [default: $KUBECONFIG, else ~/.kube/config]",
        TARGET,
        metavar="FILE",
        places=("kubeconfig",),
    )
    context: str = option_field(
        "",
        "Context of the kubeconfig; required, because the current context is never assumed.",
        TARGET,
        metavar="NAME",
        places=("kubeconfig",),
    )
    kubernetes_version: str = option_field(
        "",
        "Kubernetes version of the reference or of a local cluster: a minor (1.35) or a patch "
        f"release. [default: {DEFAULT_VERSION}]",
        TARGET,
        flag="--kubernetes",
        metavar="VERSION",
        convert=version_of,
        places=SUITE,
    )
    name: str = option_field(
        "default", "Name of the local or kind cluster.", TARGET, metavar="NAME", places=STARTED
    )
    nodes: int | None = option_field(
        None,
        "Number of identical nodes; 0 is a control plane only. [default: 1; where a run starts a "
        "local cluster with the suite's own driver, as many as this machine has room for, up to 4; "
        "unless -n or --keep-cluster is given, too, it may then start a second one of one node]",
        TARGET,
        metavar="N",
        places=SUITE,
    )
    feature_gates: Mapping[str, bool] = option_field(
        {},
        "Set a Kubernetes feature gate on all components (repeatable).",
        TARGET,
        flag="--feature-gate",
        metavar="NAME=true|false",
        given_as=tuple[str, ...],
        convert=gates_of,
        places=SUITE,
    )
    binaries: Path | None = option_field(
        None,
        "Use the local cluster's binaries in this folder instead of the cache.",
        TARGET,
        metavar="FOLDER",
        places=("local",),
    )
    image: str = option_field(
        "",
        f"Image for scenario pods. [default: {DEFAULT_IMAGE}, or the one that a local cluster"
        " includes]",
        TARGET,
        metavar="IMAGE",
        places=("kubeconfig", *STARTED),
    )
    keep: bool = option_field(
        False,
        "Do not delete the cluster after the run.",
        TARGET,
        flag="--keep-cluster",
        places=STARTED,
    )
    driver: str = option_field(
        "",
        f"Driver profile: a shipped name or a file. [default: {OWN_PROFILE} if the suite "
        f"starts its own driver, else {NVIDIA_PROFILE}]",
        DRIVER,
        metavar="PROFILE",
    )
    driver_options: tuple[str, ...] = option_field(
        (),
        "Feature gate or setting of the profile that is enabled in the driver (repeatable).",
        DRIVER,
        flag="--driver-option",
        metavar="NAME",
    )
    other_driver: str = option_field(
        "",
        "Profile of a second driver on the same nodes, for scenarios with two drivers. "
        f"[default: {OTHER_PROFILE} if the suite starts its own driver, else none]",
        DRIVER,
        metavar="PROFILE",
        places=("kubeconfig", "kind", "reference"),
    )
    driver_command: tuple[str, ...] = option_field(
        (),
        "Command that starts the driver on each node of a local cluster, instead of the "
        "suite's own driver. With devices that are not this machine's (simulated ones), --nodes 4 "
        "makes a run shorter.",
        DRIVER,
        metavar="COMMAND",
        given_as=str,
        convert=words_of,
        places=("local",),
    )
    simulate: str = option_field(
        "",
        "GPUs that the suite's own driver simulates: a file, or one of "
        f"{', '.join(list_shipped_profiles())}."
        f" The reference also accepts the shape of a cluster. [default: {DEFAULT_SIMULATION}, "
        "or those of a running cluster]",
        DRIVER,
        metavar="PROFILE",
        places=SUITE,
    )
    dynamic_mig: bool = option_field(
        False,
        "Publish every MIG device that could be created on the simulated GPUs.",
        DRIVER,
        places=SUITE,
    )
    scheduler: str = option_field(
        "",
        "Scheduler that all pods of scenarios ask for: its name, or the profile of one, a shipped "
        "name or a file. [default: the cluster's default scheduler]",
        SCHEDULER,
        metavar="NAME|PROFILE",
    )
    scheduler_command: tuple[str, ...] = option_field(
        (),
        "Command that starts that scheduler beside a local cluster's own; it finds the cluster by "
        "KUBECONFIG in its environment, as administrator.",
        SCHEDULER,
        metavar="COMMAND",
        given_as=str,
        convert=partial(words_of, option="--scheduler-command"),
        places=("local",),
    )
    scheduler_kubernetes: str = option_field(
        "",
        "Kubernetes version by whose rules that scheduler gives devices to claims, where it is not "
        "the API server's: its own, or that of the allocator in it. [default: the API server's]",
        SCHEDULER,
        metavar="VERSION",
        convert=partial(version_of, option="--scheduler-kubernetes"),
    )
    double_allocation: bool = option_field(
        False,
        "Also run scenarios that allocate one device to two claims for a few seconds, which "
        "simulates a scheduler bug.",
        "Execution",
        places=("kubeconfig",),
    )
    node_image: str = option_field(
        "",
        "Node image, which determines the Kubernetes version. [default: kind's own]",
        KIND,
        metavar="IMAGE",
        places=("kind",),
    )
    image_archives: tuple[Path, ...] = option_field(
        (),
        "Image archive to load into the cluster (repeatable).",
        KIND,
        flag="--image-archive",
        metavar="FILE",
        places=("kind",),
    )
    kind_config: Path | None = option_field(
        None,
        "Configuration file for kind. [default: ci/kind/cluster.yaml, three nodes]",
        KIND,
        metavar="FILE",
        places=("kind",),
    )
    driver_manifests: str = option_field(
        "",
        "Manifests that install the driver for the run, in any form that kubectl accepts: "
        "a kustomization, a folder, a file or a URL.",
        KIND,
        metavar="PATH|URL",
        places=("kind",),
    )
    node_kubernetes: str = option_field(
        "",
        "Kubernetes version of a local cluster's kubelets, at most three minors older than "
        "--kubernetes. [default: that of --kubernetes]",
        VERSIONS,
        metavar="VERSION",
        convert=partial(version_of, option="--node-kubernetes"),
        places=("local",),
    )
    upgrade_to: str = option_field(
        "",
        "Kubernetes version, of the next minor, that scenarios upgrade a local cluster to.",
        VERSIONS,
        metavar="VERSION",
        convert=partial(version_of, option="--upgrade-to"),
        places=("local",),
    )
    churn_time: float = option_field(
        0.0,
        "Repeat churn for this long (10m), each round with the next seed. "
        "[default: one round, as long as the scenario specifies]",
        CHURN,
        metavar="TIME",
        given_as=str,
        convert=churn_seconds_of,
    )
    churn_seed: int = option_field(
        0, "Seed of the first round; 0 uses the scenario's seed.", CHURN, metavar="SEED"
    )
    churn_here: bool = option_field(
        False,
        "Allow --churn-time on a cluster that others may be using.",
        CHURN,
        places=("kubeconfig", "kind"),
    )
    record: bool = False

    @property
    def version(self) -> str:
        """Kubernetes version of the reference, and of a local cluster that is not running yet."""
        return self.kubernetes_version or DEFAULT_VERSION

    @property
    def node_count(self) -> int:
        """Number of nodes of the reference, or of a local cluster that is not running yet."""
        return 1 if self.nodes is None else self.nodes

    @property
    def profile_name(self) -> str:
        own = self.target == "reference" or (self.cluster == "local" and not self.driver_command)
        return self.driver or (OWN_PROFILE if own else NVIDIA_PROFILE)

    @property
    def other_name(self) -> str:
        """Name or file of the other driver's profile; empty where there is none."""
        return self.other_driver or (OTHER_PROFILE if self.other_profile() is not None else "")

    def profile(self) -> DriverProfile:
        """The driver profile in use, with its enabled driver options.

        Raises UsageError: it does not exist, is malformed, or lacks one of the options.
        """
        return _load(self.profile_name).with_options(self.driver_options)

    def scheduler_profile(self) -> SchedulerProfile | None:
        """The profile of the scheduler in use; None is the cluster's default. Raises UsageError."""
        if not self.scheduler:
            return None
        from conformance.data import scenarios_dir
        from conformance.scenario.scheduler import find_scheduler

        return find_scheduler(self.scheduler, scenarios_dir() / "schedulers")

    def other_profile(self) -> DriverProfile | None:
        """The profile of the second driver; None where there is none. Raises UsageError."""
        profile = self.profile()
        if not self.other_driver:
            local = self.target == "cluster" and self.cluster == "local" and self.node_count > 0
            starts = local or (self.target == "reference" and is_simulated(profile))
            other = _load(OTHER_PROFILE) if starts else None
            return other if other is not None and other.driver != profile.driver else None
        other = _load(self.other_driver)
        if other.driver == profile.driver:
            raise UsageError(
                f"--other-driver {self.other_driver}: is a profile of the same driver, "
                f"{other.driver}; give one of another driver"
            )
        return other


def _load(name: str) -> DriverProfile:
    from conformance.data import scenarios_dir
    from conformance.scenario.driver.profile import load_profile

    return load_profile(name, scenarios_dir() / "drivers")


def is_simulated(profile: DriverProfile) -> bool:
    """Whether the reference runs our own driver on simulated GPUs for a profile."""
    return profile.driver == DEFAULT_DRIVER_NAME or profile.spec.simulated.own_driver


TABLE = list_options(TargetOptions)


def is_given(options: TargetOptions, option: Option) -> bool:
    """Tell whether an option has another value than its default."""
    return bool(getattr(options, option.name) != option.default)
