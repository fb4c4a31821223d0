"""From what a user asked for to an open target: the one place that knows every kind of both.

The command line and the pytest plugin give the same options and get the same thing back. All that
was started is stopped again when a context ends, however it ends.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from conformance.clusters.base import (
    Cluster,
    ClusterAccess,
    ClusterUsageError,
    Progress,
    silent,
)
from conformance.data import scenarios_dir
from conformance.errors import UsageError
from conformance.scenario.profile import DriverProfile, load_profile
from conformance.targets.base import Capabilities, Target
from nvml_driver.errors import NvmlUnavailableError, ProfileError

if TYPE_CHECKING:
    from conformance.clusters.kind import KindCluster
    from conformance.clusters.local import LocalCluster

TargetName = Literal["reference", "cluster"]
ClusterName = Literal["kubeconfig", "kind", "local"]

REFERENCE_DRIVER = "gpu.nvidia.com"
"""The profile of our own driver, which is the one that the reference runs."""

REFERENCE_IMAGE = "dra-conformance.dev/probe:1"
"""Images mean nothing to the reference: its kubelet runs no process."""


@dataclass(frozen=True, slots=True)
class TargetOptions:
    """What a user may say about the target.

    Attributes:
        driver: name of a shipped driver profile, or the path of one.
        driver_command: a driver to run on each node of a local cluster; () is our own.
        simulate: which simulated GPUs our own driver and the reference show.
        name: of a local or kind cluster.
        kubernetes_version: that the reference behaves like; "" is the newest.
        record: keep decisions and snapshots, for comparison.
        keep: leave a cluster that was started for this run running.
    """

    target: TargetName = "reference"
    cluster: ClusterName | None = None
    kubeconfig: Path | None = None
    context: str = ""
    driver: str = REFERENCE_DRIVER
    driver_command: tuple[str, ...] = ()
    simulate: str = "t4x4"
    binaries: Path | None = None
    name: str = "default"
    nodes: int = 1
    image: str = ""
    feature_gates: Mapping[str, bool] = field(default_factory=dict)
    kubernetes_version: str = ""
    record: bool = False
    keep: bool = False

    def profile(self) -> DriverProfile:
        """The driver profile that ``driver`` names.

        Raises:
            UsageError: there is none, or it is malformed.
        """
        return load_profile(self.driver, scenarios_dir() / "drivers")


@dataclass(frozen=True, slots=True)
class Opened:
    """A target that is ready for scenarios."""

    target: Target
    capabilities: Capabilities
    profile: DriverProfile
    image: str


@contextmanager
def open_target(options: TargetOptions, progress: Progress = silent) -> Iterator[Opened]:
    """Open the target that the options ask for, its cluster included.

    Raises:
        UsageError: the options do not go together, or name something that is not there.
        InfrastructureError: the cluster could not be started or reached.
    """
    if options.target == "reference":
        with open_reference(options) as opened:
            yield opened
        return
    options.profile()  # a wrong name is told before minutes go into a cluster
    with open_cluster(options, progress) as access, connect(access, options) as opened:
        yield opened


@contextmanager
def open_reference(options: TargetOptions) -> Iterator[Opened]:
    """The in-process reference, for itself or to compare a cluster with."""
    if options.target == "reference" and options.cluster is not None:
        raise UsageError("--cluster goes with --target cluster; the reference needs none")
    from conformance.targets.reference.target import ReferenceOptions, ReferenceTarget

    profile = options.profile()
    if profile.driver != REFERENCE_DRIVER:
        raise UsageError(
            f"--driver {options.driver}: the reference runs our own driver, {REFERENCE_DRIVER};"
            " other drivers run in a cluster (--target cluster)"
        )
    version = options.kubernetes_version or "1.37.1"
    try:
        target = ReferenceTarget(
            ReferenceOptions(
                kubernetes_version=version, driver=profile.driver, profile=options.simulate
            )
        )
    except ValueError as error:
        raise UsageError(f"the reference cannot be Kubernetes {version}: {error}") from None
    except (NvmlUnavailableError, ProfileError) as error:
        raise UsageError(f"--simulate {options.simulate}: {error}") from None
    try:
        yield Opened(target, target.capabilities(), profile, options.image or REFERENCE_IMAGE)
    finally:
        target.close()


@contextmanager
def open_cluster(options: TargetOptions, progress: Progress = silent) -> Iterator[ClusterAccess]:
    """A cluster that runs, for as long as the context lasts.

    A local cluster that is up already (``dra-conformance cluster up``) is used and stays.
    """
    running = _running_local(options)
    if running is not None:
        progress(f"using the local cluster {options.name!r} that runs already")
        yield running
        return
    cluster = cluster_of(options)
    try:
        yield cluster.up(progress)
    finally:
        if not options.keep:
            cluster.down(progress)


@contextmanager
def connect(access: ClusterAccess, options: TargetOptions) -> Iterator[Opened]:
    """The cluster target on a cluster that runs."""
    from conformance.targets.cluster.target import ClusterTarget

    profile = options.profile()
    local = _local(options) if options.cluster == "local" else None
    target = ClusterTarget(
        access,
        driver=profile.driver,
        record=options.record,
        cdi_roots=[local.layout.node(i + 1).cdi for i in range(len(access.nodes))] if local else (),
        fault=_injector(local) if local else None,
        fault_components=[row.name for row in local.status()] if local else (),
        simulated=_simulated(options),
    )
    try:
        yield Opened(target, target.capabilities(), profile, options.image or access.image)
    finally:
        target.close()


@contextmanager
def open_existing(options: TargetOptions) -> Iterator[Target | None]:
    """The target of a cluster that is there already; None where a local one does not run."""
    if options.cluster == "kubeconfig":
        with connect(cluster_of(options).up(), options) as opened:
            yield opened.target
        return
    found = _running_kind(options) if options.cluster == "kind" else _running_local(options)
    if found is None:
        yield None
        return
    with connect(found, options) as opened:
        yield opened.target


def access_to_dict(access: ClusterAccess) -> dict[str, Any]:
    """A hand-over as JSON, for another process on this machine."""
    return {
        "kubeconfig": str(access.kubeconfig),
        "context": access.context,
        "kubernetes_version": access.kubernetes_version,
        "image": access.image,
        "nodes": list(access.nodes),
        "component_logs": {name: str(path) for name, path in access.component_logs.items()},
    }


def access_from_dict(data: Mapping[str, Any]) -> ClusterAccess:
    """The inverse of :func:`access_to_dict`."""
    return ClusterAccess(
        kubeconfig=Path(data["kubeconfig"]),
        context=data["context"],
        kubernetes_version=data["kubernetes_version"],
        image=data["image"],
        nodes=tuple(data["nodes"]),
        component_logs={name: Path(path) for name, path in data["component_logs"].items()},
    )


def _injector(local: LocalCluster) -> Callable[[str, str], None]:
    """Restart or kill a component of a local cluster."""
    return lambda component, action: (
        local.kill(component) if action == "kill" else local.restart(component)
    )


def _simulated(options: TargetOptions) -> tuple[str, ...]:
    if options.cluster == "local" and not options.driver_command and options.nodes:
        return (f"GPUs and NVML ({options.simulate})",)
    return ()


def _kind(options: TargetOptions) -> KindCluster:
    from conformance.clusters.kind import KindCluster
    from conformance.clusters.kubeconfig import DEFAULT_IMAGE

    return KindCluster(options.name, image=options.image or DEFAULT_IMAGE)


def _running_kind(options: TargetOptions) -> ClusterAccess | None:
    kind = _kind(options)
    if not kind.kubeconfig.exists():
        return None
    from conformance.clusters.kubeconfig import KubeconfigCluster

    return KubeconfigCluster(kind.kubeconfig, kind.context).up()


def _local(options: TargetOptions) -> LocalCluster:
    from conformance.clusters.local import LocalCluster, LocalOptions

    return LocalCluster(
        LocalOptions(
            name=options.name,
            binaries=options.binaries,
            nodes=options.nodes,
            driver=options.nodes > 0,
            feature_gates=options.feature_gates,
            driver_command=options.driver_command or None,
            driver_name=options.profile().driver,
            simulate=options.simulate,
        )
    )


def _running_local(options: TargetOptions) -> ClusterAccess | None:
    if options.cluster != "local":
        return None
    try:
        return _local(options).access()
    except ClusterUsageError:
        return None


def cluster_of(options: TargetOptions) -> Cluster:
    """The source of the cluster that the options ask for.

    Raises:
        UsageError: the options do not go together.
    """
    if options.cluster is None:
        raise UsageError("--target cluster needs --cluster kubeconfig, kind or local")
    if options.driver_command and options.cluster != "local":
        raise UsageError(
            "--driver-command starts a driver beside a local cluster's kubelet; in another cluster"
            " install the driver as its vendor says"
        )
    if options.cluster == "kubeconfig":
        from conformance.clusters.kubeconfig import DEFAULT_IMAGE, KubeconfigCluster

        image = options.image or DEFAULT_IMAGE
        return KubeconfigCluster(options.kubeconfig, options.context, image=image)
    if options.kubeconfig is not None or options.context:
        raise UsageError("--kubeconfig and --context go with --cluster kubeconfig")
    if options.cluster == "kind":
        return _kind(options)
    return _local(options)
