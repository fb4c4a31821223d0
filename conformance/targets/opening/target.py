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
from conformance.seam.abilities import Ability, fault_ability, metrics_ability
from conformance.seam.scope import Target
from conformance.seam.values import Capabilities
from conformance.targets.opening.checks import check_options, find_named_shape
from conformance.targets.opening.inventory import (
    choose_device_source,
    choose_other_source,
    list_inventory,
)
from conformance.targets.opening.offer import with_devices
from conformance.targets.opening.options import OTHER_SIMULATION, TargetOptions
from conformance.targets.opening.sources import (
    find_local_access,
    find_reach,
    kind_cluster,
    kubeconfig_cluster,
    local_cluster,
    open_cluster,
)
from kube.base.errors import UsageError
from kube.kubeconfig import default_kubeconfig
from kube.values import KUBE_SCHEDULER, Obj
from localkube.base import DEFAULT_IMAGE, ClusterAccess, Progress, silent

if TYPE_CHECKING:
    from conformance.scenario.driver.profile import DriverProfile
    from conformance.scenario.scheduler import SchedulerProfile
    from conformance.scenario.shape import ShapeNode
    from kube.api import Api

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
        """Return a target with what it has for the pods of a profile, and of another driver's.

        Raises ApiError: what must be known of it may not be read; TargetError: there was no answer.
        """
        capabilities = with_devices(target, profile, other)
        options = options or TargetOptions()
        scheduler = options.scheduler_profile()
        capabilities = _limit_to_scheduler(capabilities, scheduler.name if scheduler else "")
        return cls(target, capabilities, profile, image, options, other, scheduler)


def _limit_to_scheduler(capabilities: Capabilities, name: str) -> Capabilities:
    """Return what a target can where this scheduler has the pods that name none; "" is the default.

    What kube-scheduler counts, and what its restart does, says nothing of another. But a pod may
    name kube-scheduler, so that both are there.
    """
    if name in {"", KUBE_SCHEDULER}:
        why = "--scheduler names none beside the default one"
        return replace(
            capabilities, lacking={**capabilities.lacking, Ability.ANOTHER_SCHEDULER: why}
        )
    of_kube_scheduler = {
        fault_ability("kube-scheduler"),
        metrics_ability("kube-scheduler"),
    } & capabilities.abilities
    why = f"the pods are those of scheduler {name}"
    return replace(
        capabilities,
        abilities=capabilities.abilities - of_kube_scheduler | {Ability.ANOTHER_SCHEDULER},
        lacking={**capabilities.lacking, **dict.fromkeys(of_kube_scheduler, why)},
    )


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
    with (
        open_cluster(options, progress) as (access, cluster_options),
        attach_target(access, cluster_options) as opened,
    ):
        yield opened


@contextmanager
def open_reference(
    options: TargetOptions,
    published: Sequence[Obj] | None = None,
    progress: Progress = silent,
    nodes: Sequence[ShapeNode] | None = None,
    start: float = 0.0,
) -> Iterator[Opened]:
    """Open the in-process reference, for itself or to compare a cluster with.

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
    shape = find_named_shape(options)
    shape_nodes, slices = list_inventory(options, shape, profile, published, nodes)
    # Beside a cluster it has another driver only where that has one.
    other = options.other_profile() if published is None or options.other_driver else None
    reference_options = ReferenceOptions(
        kubernetes_version=version,
        feature_gates=options.feature_gates,
        nodes=shape_nodes,
        devices=choose_device_source(options, shape is not None, profile, slices),
        other=choose_other_source(options, other, published) if other is not None else None,
        scheduler=scheduler.name if (scheduler := options.scheduler_profile()) else "",
        scheduler_kubernetes=options.scheduler_kubernetes,
        start=start,
    )
    if isinstance(reference_options.other, DescribedDevices):
        other = other and other.for_reference()
    if isinstance(reference_options.devices, DescribedDevices):
        profile = profile.for_reference()
    try:
        target = ReferenceTarget(reference_options)
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
        target = ReferenceTarget(
            replace(reference_options, devices=NoDriver(str(error)), other=None)
        )
        other = None
    try:
        yield Opened.of(target, profile, options.image or REFERENCE_IMAGE, options, other)
    finally:
        target.close()


@contextmanager
def attach_target(access: ClusterAccess, options: TargetOptions) -> Iterator[Opened]:
    """Open the target of a cluster that runs, with what it has for the pods of the profile."""
    with open_cluster_target(access, options) as target:
        image = options.image or access.image
        yield Opened.of(target, options.profile(), image, options, options.other_profile())


@contextmanager
def open_cluster_target(
    access: ClusterAccess, options: TargetOptions, *, only_read: bool = False
) -> Iterator[Target]:
    """Open the bare target of a cluster that runs; nothing is asked of the cluster yet.

    ``only_read``: it finds out what the cluster can do by reading alone.
    """
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
        reach=find_reach(options, access),
        scheduler=options.scheduler_kubernetes,
    )
    try:
        yield target
    finally:
        target.close()


@contextmanager
def open_running_target(options: TargetOptions) -> Iterator[Opened]:
    """Open the target as it is, for a look at what a run would do: nothing is started.

    Raises:
        UsageError: the options do not go together, or no local or kind cluster of that name runs.
        InfrastructureError: the cluster could not be reached.
    """
    if options.target == "reference":
        with open_target(options) as opened:
            yield opened
        return
    access = find_cluster(options)
    if access is None:
        raise UsageError(
            f"--dry-run starts no cluster, and no {options.cluster} cluster {options.name!r} "
            "runs; `dra-conformance cluster up` starts one"
        )
    with open_cluster_target(access, options) as target:
        image = options.image or DEFAULT_IMAGE
        yield Opened.of(target, options.profile(), image, options, options.other_profile())


def find_cluster(options: TargetOptions) -> ClusterAccess | None:
    """Return a cluster that is there already; None where a local or kind one is not.

    Raises UsageError: the options do not go together, or the kubeconfig is wrong.
    """
    check_options(options)
    if options.cluster == "local":
        return find_local_access(local_cluster(options))
    if options.cluster == "kind":
        kind = kind_cluster(options)
        if not kind.kubeconfig.exists():
            return None
        options = replace(options, kubeconfig=kind.kubeconfig, context=kind.context)
    return kubeconfig_cluster(options).up()


@contextmanager
def open_api(options: TargetOptions) -> Iterator[Api]:
    """Open the API server of a cluster that is there already, of which nothing is known yet.

    Raises UsageError: as `find_cluster`, or the cluster does not run.
    """
    if options.cluster == "kubeconfig":
        check_options(options)
        file, context = options.kubeconfig or default_kubeconfig(os.environ), options.context
    else:
        access = find_cluster(options)
        if access is None:
            raise UsageError(
                f"the {options.cluster} cluster {options.name!r} is not running; "
                "`dra-conformance cluster up` starts one"
            )
        file, context = access.kubeconfig, access.context
    # The reference has no use for a client with HTTPS.
    from kube.api import Api
    from kube.connection import Connection

    with closing(Connection.open(file, context)) as connection:
        yield Api(connection)
