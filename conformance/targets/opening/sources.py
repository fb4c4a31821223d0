"""Where a cluster comes from: a kubeconfig, kind, or one that is started on this machine.

All that was started is stopped again when a context ends, however it ends; what was there before
stays.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from conformance.targets.opening.options import (
    DEFAULT_SIMULATION,
    OTHER_SIMULATION,
    TABLE,
    TargetOptions,
    is_given,
)
from kube.base.errors import UsageError
from kube.values import Obj
from localkube.base import DEFAULT_IMAGE, ClusterAccess, ClusterUsageError, Progress, silent

if TYPE_CHECKING:
    from conformance.targets.cluster.reach import Reach
    from localkube import LocalCluster
    from localkube.kind import KindCluster
    from localkube.kubeconfig import KubeconfigCluster


@contextmanager
def open_cluster(
    options: TargetOptions, progress: Progress = silent
) -> Iterator[tuple[ClusterAccess, TargetOptions]]:
    """Provide a cluster that runs while the context lasts, and the options that hold for it.

    Only what this call has started is removed at the end: a local or kind cluster that was there
    before (``dra-conformance cluster up``, ``--keep-cluster``) is used and stays, and so does one
    that a start was refused for.
    """
    driver = options.profile().driver  # report a wrong name before a cluster takes minutes
    if options.cluster == "kubeconfig":
        yield kubeconfig_cluster(options).up(progress), options
        return
    kind = kind_cluster(options) if options.cluster == "kind" else None
    cluster: KindCluster | LocalCluster
    objects: Sequence[Obj] = ()
    if kind is not None:
        from localkube.manifests import install_objects, render_manifests

        cluster = kind
        objects = render_manifests(options.driver_manifests) if options.driver_manifests else ()
    else:
        cluster = local_cluster(options)
        access_before = find_local_access(cluster)
        if access_before is not None:
            running_options = _match_running_cluster(options, cluster)
            progress(f"using the local cluster {options.name!r} that runs already")
            yield access_before, running_options
            return
        # Devices that somebody else's driver publishes may be this machine's: they are there once.
        if options.nodes is None and not options.driver_command:
            from localkube.options import count_suitable_nodes

            options = replace(options, nodes=count_suitable_nodes())
            cluster = local_cluster(options)
    access = cluster.up(progress)  # a start that fails removes what it made by itself
    stays = options.keep or (kind is not None and not kind.created)
    try:
        if objects:
            with install_objects(objects, access, driver, progress, removes=stays):
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


def check_context(options: TargetOptions) -> None:
    """Check that somebody else's cluster is named in full, before a word is said about it.

    Raises UsageError: --context is missing; the contexts of the file are listed.
    """
    if options.cluster == "kubeconfig" and not options.context:
        kubeconfig_cluster(options).up()  # refuses without talking to a server


def kubeconfig_cluster(options: TargetOptions) -> KubeconfigCluster:
    from localkube.kubeconfig import KubeconfigCluster

    return KubeconfigCluster(
        options.kubeconfig, options.context, image=options.image or DEFAULT_IMAGE
    )


def kind_cluster(options: TargetOptions) -> KindCluster:
    from localkube.kind import KindCluster

    return KindCluster(
        options.name,
        config=options.kind_config,
        node_image=options.node_image or None,
        image=options.image or DEFAULT_IMAGE,
        images=options.image_archives,
    )


def local_cluster(options: TargetOptions) -> LocalCluster:
    from conformance.targets.opening.own_driver import Simulation, own_driver
    from localkube import LocalCluster, LocalOptions, command_driver

    profile, other = options.profile(), options.other_profile()
    driver = (
        command_driver(profile.driver, options.driver_command)
        if options.driver_command
        else own_driver(
            Simulation(
                options.simulate or DEFAULT_SIMULATION,
                options.dynamic_mig,
                profile.driver,
                profile.spec.simulated.prefix,
            )
        )
    )
    return LocalCluster(
        LocalOptions(
            name=options.name,
            binaries=options.binaries,
            kubernetes=f"v{options.version}",
            node_kubernetes=options.node_kubernetes and f"v{options.node_kubernetes}",
            upgrade_to=options.upgrade_to and f"v{options.upgrade_to}",
            nodes=options.node_count,
            driver=driver if options.node_count or options.driver_command else None,
            feature_gates=options.feature_gates,
            scheduler_command=options.scheduler_command or None,
            other_driver=own_driver(
                Simulation(OTHER_SIMULATION, False, other.driver, other.spec.simulated.prefix)
            )
            if other is not None
            else None,
            persistent=options.keep,
        )
    )


def find_reach(options: TargetOptions, access: ClusterAccess) -> Reach:
    """Return what can be reached of a cluster beside its API server, by where it comes from."""
    from conformance.targets.cluster.reach import ControlFiles, Reach
    from conformance.targets.cluster.reading import spec_files

    if options.cluster == "kind" and access.nodes:
        from localkube.kind.command import cdi_files, engine_of

        engine = engine_of(access.nodes[0])
        return Reach(cdi=partial(cdi_files, engine, access.nodes) if engine else None)
    if options.cluster != "local":
        return Reach()
    local = local_cluster(options)
    nodes = [local.layout.node(index + 1) for index in range(len(access.nodes))]
    stimulus = options.profile().spec.stimulus
    files = {node.name: node.driver / stimulus.file for node in nodes} if stimulus else {}
    # A driver that has not made the file which its profile names does not follow it.
    follows = bool(files) and all(map(Path.is_file, files.values()))
    return Reach(
        cdi=partial(spec_files, [node.cdi for node in nodes]) if nodes else None,
        pod_resources={node.name: node.pod_resources for node in nodes},
        control=local,
        components=tuple(local.components()),
        upgrades=bool(options.upgrade_to),
        health_files=ControlFiles(stimulus, files) if stimulus and follows else None,
    )


def find_local_access(local: LocalCluster) -> ClusterAccess | None:
    """Return how to reach a local cluster that runs already; None where it does not."""
    try:
        return local.access()
    except ClusterUsageError:
        return None


def _match_running_cluster(options: TargetOptions, local: LocalCluster) -> TargetOptions:
    """Return the options as they hold for a local cluster that runs already.

    Raises UsageError: something was asked for that it was not started with; naming that and what
    the cluster has.
    """
    from conformance.targets.opening.own_driver import name_or_file, simulation_of

    state, simulation = local.state(), simulation_of(local)
    problem = ""
    if options.driver_command:
        problem = "--driver-command starts a driver with the cluster"
    elif options.scheduler_command:
        problem = "--scheduler-command starts a scheduler with the cluster"
    elif options.node_kubernetes:
        problem = "--node-kubernetes is for kubelets that start with the cluster"
    elif options.upgrade_to:
        problem = "--upgrade-to is for a cluster that starts with the run"
    elif state is not None:
        nodes = next(item for item in TABLE if item.name == "nodes")
        binaries = options.binaries
        if binaries is not None and binaries.resolve() != state.binaries.resolve():
            problem = f"--binaries: it has those of {state.binaries}"
        elif options.kubernetes_version and f"v{options.version}" != state.kubernetes_version:
            problem = f"--kubernetes {options.version}: it is {state.kubernetes_version}"
        elif is_given(options, nodes) and options.nodes != state.nodes:
            problem = f"--nodes {options.nodes}: it has {state.nodes}"
        for gate, enabled in options.feature_gates.items():
            if state.feature_gates.get(gate) != enabled:
                problem = f"--feature-gate {gate}: it was started without that"
    if problem:
        raise UsageError(
            f"the local cluster {options.name!r} runs already, and {problem}; choose another "
            f"--name, or remove it first: dra-conformance cluster down --name {options.name}"
        )
    if state is not None:
        options = replace(options, nodes=state.nodes)
    if simulation is None:
        return options
    requested_simulation = simulation._replace(
        simulate=name_or_file(options.simulate) if options.simulate else simulation.simulate,
        dynamic_mig=options.dynamic_mig or simulation.dynamic_mig,
    )
    if requested_simulation != simulation:
        raise UsageError(
            f"the local cluster {options.name!r} runs already with {simulation}; to change that: "
            f"dra-conformance cluster driver --name {options.name} {requested_simulation}"
        )
    return replace(options, simulate=simulation.simulate, dynamic_mig=simulation.dynamic_mig)
