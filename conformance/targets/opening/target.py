"""From what a user asked for to an open target: the one place that knows every kind of both.

The command line and the pytest plugin give the same options and get the same thing back. All that
was started is stopped again when a context ends, however it ends; what was there before stays.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from conformance.data import scenarios_dir
from conformance.seam.scope import Target
from conformance.seam.values import Capabilities
from conformance.targets.opening.checks import check_options, shape_of
from conformance.targets.opening.inventory import device_source, inventory, other_source
from conformance.targets.opening.offer import with_devices, with_scheduler
from conformance.targets.opening.options import OTHER_SIMULATION, TargetOptions
from conformance.targets.opening.sources import (
    kind_cluster,
    kubeconfig_cluster,
    local_cluster,
    open_cluster,
    reach_of,
    running,
)
from kube.api import Api
from kube.base.errors import UsageError
from kube.connection import Connection
from kube.kubeconfig import default_kubeconfig
from kube.values import Obj
from localkube.base import DEFAULT_IMAGE, ClusterAccess, Progress, silent

if TYPE_CHECKING:
    from conformance.scenario.driver.profile import DriverProfile
    from conformance.scenario.scheduler import SchedulerProfile
    from conformance.scenario.shape import ShapeNode

REFERENCE_IMAGE = "dra-conformance.dev/probe:1"
"""Images mean nothing to the reference: its kubelet runs no process."""


@dataclass(frozen=True, slots=True)
class Opened:
    """A target that is ready for scenarios.

    Attributes:
        other: the profile of another driver on the same nodes, where there is one.
        scheduler: of all pods that scenarios make; None is the cluster's default.
        options: what was asked for, and what a cluster that ran already had where nothing was.
    """

    target: Target
    capabilities: Capabilities
    profile: DriverProfile | None
    image: str
    options: TargetOptions = field(default_factory=TargetOptions)
    other: DriverProfile | None = None
    scheduler: SchedulerProfile | None = None

    @classmethod
    def of(
        cls,
        target: Target,
        profile: DriverProfile | None,
        image: str,
        options: TargetOptions | None = None,
        other: DriverProfile | None = None,
    ) -> Opened:
        """A target and what it has for the pods of a profile, and of another driver's.

        Raises ApiError: what must be known of it may not be read; TargetError: there was no answer.
        """
        found = with_devices(target, profile, other)
        options = options or TargetOptions()
        scheduler = options.scheduler_profile()
        found = with_scheduler(found, scheduler.name if scheduler is not None else "")
        return cls(target, found, profile, image, options, other, scheduler)


@contextmanager
def open_target(options: TargetOptions, progress: Progress = silent) -> Iterator[Opened]:
    """Open the target that the options ask for, its cluster included.

    Raises:
        UsageError: the options do not go together, or name something that is not there.
        InfrastructureError: the cluster could not be started or reached.
    """
    check_options(options)
    if options.target == "reference":
        with open_reference(options, progress=progress) as opened:
            yield opened
        return
    with open_cluster(options, progress) as (access, found), connect(access, found) as opened:
        yield opened


@contextmanager
def open_reference(
    options: TargetOptions,
    published: Sequence[Obj] | None = None,
    progress: Progress = silent,
    nodes: Sequence[ShapeNode] | None = None,
    start: float = 0.0,
) -> Iterator[Opened]:
    """The in-process reference, for itself or to compare a cluster with.

    Args:
        published: the ResourceSlices of the cluster that it is compared with, if there is one.
        nodes: that cluster's nodes; None: those that slices name.
        start: its virtual time at the start, in seconds after its epoch.

    Raises UsageError: the options do not go together, or the devices are not known.
    """
    from conformance.targets.reference.device_source import DescribedDevices, NoDriver
    from conformance.targets.reference.target import ReferenceOptions, ReferenceTarget
    from nvml_driver.errors import NvmlUnavailableError, ProfileError

    version, profile = options.version, options.profile()
    shape = shape_of(options)
    there, slices = inventory(options, shape, profile, published, nodes)
    # Beside a cluster it has another driver only where that has one.
    other = options.other_profile() if published is None or options.other_driver else None
    chosen = ReferenceOptions(
        kubernetes_version=version,
        feature_gates=options.feature_gates,
        nodes=there,
        devices=device_source(options, shape is not None, profile, slices),
        other=other_source(options, other, published) if other is not None else None,
        scheduler=scheduler.name if (scheduler := options.scheduler_profile()) else "",
        start=start,
    )
    if isinstance(chosen.other, DescribedDevices):
        other = other and other.for_reference()
    if isinstance(chosen.devices, DescribedDevices):
        profile = profile.for_reference()
    try:
        target = ReferenceTarget(chosen)
    except ValueError as error:
        raise UsageError(f"the reference cannot be Kubernetes {version}: {error}") from None
    except ProfileError as error:
        shapes = ", ".join(sorted(file.stem for file in (scenarios_dir() / "shapes").iterdir()))
        text = f"--simulate {options.simulate}: {error}; shapes of clusters are {shapes}"
        raise UsageError(text) from None
    except NvmlUnavailableError as error:
        if published is not None or options.simulate or options.dynamic_mig:
            raise UsageError(f"the reference has no devices: {error}") from None
        # Nobody has asked for GPUs, and what needs none can run.
        progress(f"scenarios of the node tier are skipped: {error}")
        target = ReferenceTarget(replace(chosen, devices=NoDriver(str(error)), other=None))
        other = None
    try:
        yield Opened.of(target, profile, options.image or REFERENCE_IMAGE, options, other)
    finally:
        target.close()


@contextmanager
def connect(access: ClusterAccess, options: TargetOptions) -> Iterator[Opened]:
    """The cluster target on a cluster that runs."""
    with _connected(access, options) as target:
        image = options.image or access.image
        yield Opened.of(target, options.profile(), image, options, options.other_profile())


@contextmanager
def _connected(
    access: ClusterAccess, options: TargetOptions, *, only_read: bool = False
) -> Iterator[Target]:
    from conformance.targets.cluster.target import ClusterTarget
    from conformance.targets.opening.own_driver import count_devices

    local = local_cluster(options) if options.cluster == "local" else None
    other = options.other_profile()
    target = ClusterTarget(
        access,
        driver=options.profile().driver,
        other_driver=other.driver if other is not None else None,
        other_devices=count_devices(OTHER_SIMULATION) if local and other else 0,
        record=options.record,
        only_read=only_read,
        double_allocation=options.double_allocation or options.cluster != "kubeconfig",
        reach=reach_of(options, access),
    )
    try:
        yield target
    finally:
        target.close()


@contextmanager
def open_to_plan(options: TargetOptions) -> Iterator[Opened]:
    """The target as it is, for a look at what a run would do: nothing is started.

    Raises:
        UsageError: the options do not go together, or no local or kind cluster of that name runs.
        InfrastructureError: the cluster could not be reached.
    """
    if options.target == "reference":
        with open_target(options) as opened:
            yield opened
        return
    with open_existing(options, only_read=False) as target:
        if target is None:
            raise UsageError(
                f"--dry-run starts no cluster, and no {options.cluster} cluster {options.name!r} "
                "runs; `dra-conformance cluster up` starts one"
            )
        image = options.image or DEFAULT_IMAGE
        yield Opened.of(target, options.profile(), image, options, options.other_profile())


@contextmanager
def open_existing(options: TargetOptions, *, only_read: bool = True) -> Iterator[Target | None]:
    """The target of a cluster that is there already; None where a local or kind one is not.

    ``only_read``: nothing is asked of the cluster that reading alone does not tell.
    """
    access = existing(options)
    if access is None:
        yield None
        return
    with _connected(access, options, only_read=only_read) as target:
        yield target


def existing(options: TargetOptions) -> ClusterAccess | None:
    """A cluster that is there already; None where a local or kind one is not.

    Raises UsageError: the options do not go together, or the kubeconfig is wrong.
    """
    check_options(options)
    if options.cluster == "local":
        return running(local_cluster(options))
    if options.cluster == "kind":
        kind = kind_cluster(options)
        if not kind.kubeconfig.exists():
            return None
        options = replace(options, kubeconfig=kind.kubeconfig, context=kind.context)
    return kubeconfig_cluster(options).up()


@contextmanager
def open_to_read(options: TargetOptions) -> Iterator[Api]:
    """The API server of a cluster that is there already, of which nothing is known yet.

    Raises UsageError: as `existing`, or the cluster does not run.
    """
    if options.cluster == "kubeconfig":
        check_options(options)
        file, context = options.kubeconfig or default_kubeconfig(os.environ), options.context
    else:
        access = existing(options)
        if access is None:
            raise UsageError(
                f"the {options.cluster} cluster {options.name!r} is not running; "
                "`dra-conformance cluster up` starts one"
            )
        file, context = access.kubeconfig, access.context
    with closing(Connection.open(file, context)) as connection:
        yield Api(connection)
