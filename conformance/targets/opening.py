"""From what a user asked for to an open target: the one place that knows every kind of both.

The command line and the pytest plugin give the same options and get the same thing back. All that
was started is stopped again when a context ends, however it ends.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from conformance.clusters.base import ClusterAccess, Progress, silent
from conformance.errors import UsageError
from conformance.scenario.profile import DriverProfile
from conformance.targets.base import Capabilities, Target
from conformance.targets.checking import check_options, check_running
from conformance.targets.options import REFERENCE_DRIVER, TargetOptions
from conformance.targets.sources import cluster_of, kind_cluster, local_cluster, running_cluster
from nvml_driver.errors import NvmlUnavailableError, ProfileError
from nvml_driver.features import Features

if TYPE_CHECKING:
    from conformance.clusters.local import LocalCluster

REFERENCE_IMAGE = "dra-conformance.dev/probe:1"
"""Images mean nothing to the reference: its kubelet runs no process."""


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
    check_options(options)
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
                kubernetes_version=version,
                feature_gates=options.feature_gates,
                driver=profile.driver,
                driver_features=Features(dynamic_mig=options.dynamic_mig),
                profile=options.simulate,
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

    Only what this call has started is removed at the end: a local or kind cluster that was there
    before (``dra-conformance cluster up``, ``--keep-cluster``) is used and stays, and so does one
    that a start was refused for.
    """
    if options.cluster == "local" and (running := running_cluster(options)) is not None:
        if (state := local_cluster(options).state()) is not None:
            check_running(options, state)
        progress(f"using the local cluster {options.name!r} that runs already")
        yield running
        return
    cluster = cluster_of(options)
    stays = options.keep or (options.cluster == "kind" and kind_cluster(options).exists(progress))
    access = cluster.up(progress)  # a start that fails removes what it made by itself
    try:
        yield access
    finally:
        if not stays:
            cluster.down(progress)


@contextmanager
def connect(access: ClusterAccess, options: TargetOptions) -> Iterator[Opened]:
    """The cluster target on a cluster that runs."""
    from conformance.targets.cluster.target import ClusterTarget

    profile = options.profile()
    local = local_cluster(options) if options.cluster == "local" else None
    target = ClusterTarget(
        access,
        driver=profile.driver,
        record=options.record,
        cdi_roots=[local.layout.node(i + 1).cdi for i in range(len(access.nodes))] if local else (),
        fault=_injector(local) if local else None,
        fault_components=[row.name for row in local.status()] if local else (),
    )
    try:
        yield Opened(target, target.capabilities(), profile, options.image or access.image)
    finally:
        target.close()


@contextmanager
def open_existing(options: TargetOptions) -> Iterator[Target | None]:
    """The target of a cluster that is there already; None where a local one does not run."""
    check_options(options)
    found = running_cluster(options)
    if found is None:
        yield None
        return
    with connect(found, options) as opened:
        yield opened.target


def _injector(local: LocalCluster) -> Callable[[str, str], None]:
    """Restart or kill a component of a local cluster."""
    return lambda component, action: (
        local.kill(component) if action == "kill" else local.restart(component)
    )
