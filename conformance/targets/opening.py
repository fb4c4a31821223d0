"""From what a user asked for to an open target: the one place that knows every kind of both.

The command line and the pytest plugin give the same options and get the same thing back. All that
was started is stopped again when a context ends, however it ends; what was there before stays.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING

from conformance.clusters.base import (
    DEFAULT_IMAGE,
    ClusterAccess,
    ClusterUsageError,
    Progress,
    silent,
)
from conformance.data import scenarios_dir
from conformance.errors import UsageError
from conformance.targets.base import Capabilities, Obj, Target
from conformance.targets.offer import with_devices
from conformance.targets.options import (
    DEFAULT_SIMULATION,
    REFERENCE_DRIVER,
    TABLE,
    TargetOptions,
    check_options,
    is_given,
    shape_of,
)

if TYPE_CHECKING:
    from conformance.clusters.kind import KindCluster
    from conformance.clusters.kubeconfig import KubeconfigCluster
    from conformance.clusters.local import LocalCluster
    from conformance.scenario.profile import DriverProfile
    from conformance.scenario.shape import ClusterShape, ShapeNode
    from conformance.targets.cluster.cdi import CdiFiles
    from conformance.targets.reference.nodes.device_source import DeviceSource

REFERENCE_IMAGE = "dra-conformance.dev/probe:1"
"""Images mean nothing to the reference: its kubelet runs no process."""


@dataclass(frozen=True, slots=True)
class Opened:
    """A target that is ready for scenarios.

    Attributes:
        image: that scenario pods run.
        options: what was asked for, and what a cluster that ran already had where nothing was.
    """

    target: Target
    capabilities: Capabilities
    profile: DriverProfile | None
    image: str
    options: TargetOptions = field(default_factory=TargetOptions)

    @classmethod
    def of(
        cls,
        target: Target,
        profile: DriverProfile | None,
        image: str,
        options: TargetOptions | None = None,
    ) -> Opened:
        """A target and what it has for the pods of a profile.

        Raises:
            ApiError: what must be known of it may not be read.
            TargetError: there was no answer.
        """
        found = with_devices(target, profile)
        return cls(target, found, profile, image, options or TargetOptions())


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
        open_cluster(options, progress) as (access, found),
        connect(access, found) as opened,
    ):
        yield opened


@contextmanager
def open_reference(
    options: TargetOptions,
    published: Sequence[Obj] | None = None,
    progress: Progress = silent,
    nodes: Sequence[ShapeNode] | None = None,
) -> Iterator[Opened]:
    """The in-process reference, for itself or to compare a cluster with.

    Args:
        options: what was asked for.
        published: the ResourceSlices of the cluster that it is compared with, if there is one.
        progress: told what the reference cannot do here.
        nodes: that cluster's nodes; None: those that slices name.

    Raises:
        UsageError: the options do not go together, or the devices are not known.
    """
    from conformance.targets.reference.nodes.device_source import DescribedDevices, NoDriver
    from conformance.targets.reference.target import ReferenceOptions, ReferenceTarget
    from nvml_driver.errors import NvmlUnavailableError, ProfileError

    version, profile = options.version, options.profile()
    shape = shape_of(options)
    there, slices = _inventory(options, shape, profile, published, nodes)
    chosen = ReferenceOptions(
        kubernetes_version=version,
        feature_gates=options.feature_gates,
        nodes=there,
        devices=_device_source(options, shape is not None, profile, slices),
    )
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
        target = ReferenceTarget(replace(chosen, devices=NoDriver(str(error))))
    try:
        yield Opened.of(target, profile, options.image or REFERENCE_IMAGE, options)
    finally:
        target.close()


def _inventory(
    options: TargetOptions,
    shape: ClusterShape | None,
    profile: DriverProfile,
    published: Sequence[Obj] | None,
    nodes: Sequence[ShapeNode] | None,
) -> tuple[Sequence[ShapeNode], Sequence[Obj] | None]:
    """The nodes of the reference, and the slices of their driver where somebody has given some."""
    from conformance.scenario.shape import ShapeNode

    if shape is not None:
        for item in shape.spec.slices or ():
            if item["spec"].get("driver") != profile.driver:
                raise UsageError(
                    f"--simulate {options.simulate}: the ResourceSlices are of the driver "
                    f"{item['spec'].get('driver')}, and the profile of {profile.driver}; give "
                    "--driver the profile of that driver"
                )
        return shape.spec.nodes, shape.spec.slices
    if published is None or profile.spec.simulated.own_driver:
        alike = ShapeNode(name="reference-node", count=options.nodes or 1)
        return alike.each() if options.nodes else (), None
    slices = [item for item in published if item["spec"]["driver"] == profile.driver]
    names = {item["spec"].get("nodeName") for item in slices} - {None, ""}
    named = [ShapeNode(name=name) for name in sorted(names)]
    return named if nodes is None else nodes, slices


def _device_source(
    options: TargetOptions, is_shape: bool, profile: DriverProfile, slices: Sequence[Obj] | None
) -> DeviceSource:
    """The driver of the reference's nodes: our own on simulated GPUs, or one that is described."""
    from conformance.targets.reference.nodes.device_source import DescribedDevices, SimulatedGpus

    if slices is not None:
        return DescribedDevices(profile, slices)
    if profile.driver == REFERENCE_DRIVER:
        gpus = "" if is_shape else options.simulate
        return SimulatedGpus(gpus or DEFAULT_SIMULATION, dynamic_mig=options.dynamic_mig)
    if options.dynamic_mig or (options.simulate and not is_shape):
        flag = "--dynamic-mig" if options.dynamic_mig else "--simulate"
        raise UsageError(
            f"{flag} is for our own driver, {REFERENCE_DRIVER}; with --driver"
            f" {options.profile_name} it would do nothing"
        )
    if profile.spec.simulated.devices:
        return DescribedDevices(profile)
    raise UsageError(
        f"--driver {options.profile_name}: the reference does not know the devices of "
        f"{profile.driver}; describe some in the profile (spec.simulated.devices), or run in a "
        "cluster (--target cluster)"
    )


@contextmanager
def open_cluster(
    options: TargetOptions, progress: Progress = silent
) -> Iterator[tuple[ClusterAccess, TargetOptions]]:
    """A cluster that runs, for as long as the context lasts, and the options that hold for it.

    Only what this call has started is removed at the end: a local or kind cluster that was there
    before (``dra-conformance cluster up``, ``--keep-cluster``) is used and stays, and so does one
    that a start was refused for.
    """
    driver = options.profile().driver  # a wrong name is told before minutes go into a cluster
    if options.cluster == "kubeconfig":
        yield kubeconfig_cluster(options).up(progress), options
        return
    kind = kind_cluster(options) if options.cluster == "kind" else None
    cluster: KindCluster | LocalCluster
    objects: Sequence[Obj] = ()
    if kind is not None:
        from conformance.clusters.manifests import installed, render

        cluster = kind
        objects = render(options.driver_manifests) if options.driver_manifests else ()
    else:
        cluster = local_cluster(options)
        running = _running(cluster)
        if running is not None:
            found = _as_running(options, cluster)
            progress(f"using the local cluster {options.name!r} that runs already")
            yield running, found
            return
    access = cluster.up(progress)  # a start that fails removes what it made by itself
    stays = options.keep or (kind is not None and not kind.created)
    try:
        if objects:
            with installed(objects, access, driver, progress, removes=stays):
                yield access, options
        else:
            yield access, options
    finally:
        if options.keep:
            progress(
                f"the cluster stays; to remove it: dra-conformance cluster down"
                f" --cluster {options.cluster} --name {options.name}"
            )
        elif not stays:
            cluster.down(progress)


@contextmanager
def connect(access: ClusterAccess, options: TargetOptions) -> Iterator[Opened]:
    """The cluster target on a cluster that runs."""
    with _connected(access, options) as target:
        yield Opened.of(target, options.profile(), options.image or access.image, options)


@contextmanager
def _connected(
    access: ClusterAccess, options: TargetOptions, *, only_read: bool = False
) -> Iterator[Target]:
    from conformance.targets.cluster.target import ClusterTarget

    local = local_cluster(options) if options.cluster == "local" else None
    target = ClusterTarget(
        access,
        driver=options.profile().driver,
        record=options.record,
        only_read=only_read,
        double_allocation=options.double_allocation or options.cluster != "kubeconfig",
        cdi=_cdi_reader(options, access),
        fault=_injector(local) if local else None,
        fault_components=[row.name for row in local.status()] if local else (),
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
        yield Opened.of(target, options.profile(), options.image or DEFAULT_IMAGE, options)


@contextmanager
def open_existing(options: TargetOptions, *, only_read: bool = True) -> Iterator[Target | None]:
    """The target of a cluster that is there already; None where a local or kind one is not.

    Args:
        only_read: nothing is asked of the cluster that reading alone does not tell.
    """
    check_options(options)
    access: ClusterAccess | None
    if options.cluster == "local":
        access = _running(local_cluster(options))
    elif options.cluster == "kind":
        kind = kind_cluster(options)
        there = kind.kubeconfig.exists()
        access = (
            kubeconfig_cluster(
                replace(options, kubeconfig=kind.kubeconfig, context=kind.context)
            ).up()
            if there
            else None
        )
    else:
        access = kubeconfig_cluster(options).up()
    if access is None:
        yield None
        return
    with _connected(access, options, only_read=only_read) as target:
        yield target


def check_context(options: TargetOptions) -> None:
    """See that somebody else's cluster is named in full, before a word is said about it.

    Raises:
        UsageError: --context is missing; the contexts of the file are listed.
    """
    if options.cluster == "kubeconfig" and not options.context:
        kubeconfig_cluster(options).up()  # refuses without talking to a server


def kubeconfig_cluster(options: TargetOptions) -> KubeconfigCluster:
    """The cluster that a kubeconfig leads to."""
    from conformance.clusters.kubeconfig import KubeconfigCluster

    return KubeconfigCluster(
        options.kubeconfig, options.context, image=options.image or DEFAULT_IMAGE
    )


def kind_cluster(options: TargetOptions) -> KindCluster:
    """The kind cluster of that name."""
    from conformance.clusters.kind import KindCluster

    return KindCluster(
        options.name,
        config=options.kind_config,
        node_image=options.node_image or None,
        image=options.image or DEFAULT_IMAGE,
        images=options.image_archives,
    )


def local_cluster(options: TargetOptions) -> LocalCluster:
    """The local cluster of that name."""
    from conformance.clusters.local import LocalCluster, LocalOptions

    return LocalCluster(
        LocalOptions(
            name=options.name,
            binaries=options.binaries,
            kubernetes=f"v{options.version}",
            nodes=options.nodes,
            driver=options.nodes > 0,
            feature_gates=options.feature_gates,
            driver_command=options.driver_command or None,
            driver_name=options.profile().driver,
            simulate=options.simulate or DEFAULT_SIMULATION,
            dynamic_mig=options.dynamic_mig,
            persistent=options.keep,
        )
    )


def _cdi_reader(options: TargetOptions, access: ClusterAccess) -> CdiFiles | None:
    """What reads the CDI specs of a cluster's nodes; None where nobody can."""
    if options.cluster == "local" and access.nodes:
        from conformance.targets.cluster.cdi import spec_files

        layout = local_cluster(options).layout
        return partial(spec_files, [layout.node(i + 1).cdi for i in range(len(access.nodes))])
    if options.cluster == "kind" and access.nodes:
        from conformance.clusters.kind.nodes import cdi_files, engine_of

        engine = engine_of(access.nodes[0])
        return partial(cdi_files, engine, access.nodes) if engine else None
    return None


def _running(local: LocalCluster) -> ClusterAccess | None:
    try:
        return local.access()
    except ClusterUsageError:
        return None


def _as_running(options: TargetOptions, local: LocalCluster) -> TargetOptions:
    """The options as they hold for a local cluster that runs already.

    Raises:
        UsageError: something was asked for that it was not started with; naming that and what the
            cluster has.
    """
    from conformance.clusters.local.owndriver import name_or_file

    state, shown = local.state(), local.simulation()
    problem = ""
    if options.driver_command:
        problem = "--driver-command starts a driver with the cluster"
    elif state is not None:
        nodes = next(item for item in TABLE if item.name == "nodes")
        binaries = options.binaries
        if binaries is not None and binaries.resolve() != state.binaries.resolve():
            problem = f"--binaries: it has those of {state.binaries}"
        elif options.kubernetes_version and f"v{options.version}" != state.kubernetes_version:
            problem = f"--kubernetes {options.version}: it is {state.kubernetes_version}"
        elif is_given(options, nodes) and options.nodes != state.nodes:
            problem = f"--nodes {options.nodes}: it has {state.nodes}"
        for gate, wanted in options.feature_gates.items():
            if state.feature_gates.get(gate) != wanted:
                problem = f"--feature-gate {gate}: it was started without that"
    if problem:
        raise UsageError(
            f"the local cluster {options.name!r} runs already, and {problem}; choose another "
            f"--name, or remove it first: dra-conformance cluster down --name {options.name}"
        )
    if shown is None:
        return options
    wanted_gpus = shown._replace(
        simulate=name_or_file(options.simulate) if options.simulate else shown.simulate,
        dynamic_mig=options.dynamic_mig or shown.dynamic_mig,
    )
    if wanted_gpus != shown:
        raise UsageError(
            f"the local cluster {options.name!r} runs already with {shown}; to change that: "
            f"dra-conformance cluster driver --name {options.name} {wanted_gpus}"
        )
    return replace(options, simulate=shown.simulate, dynamic_mig=shown.dynamic_mig)


def _injector(local: LocalCluster) -> Callable[[str, str], None]:
    """Restart or kill a component of a local cluster."""
    return lambda component, action: (
        local.kill(component) if action == "kill" else local.restart(component)
    )
