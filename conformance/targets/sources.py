"""Where the cluster that a user asked for comes from: a kubeconfig, kind, or this machine."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from conformance.clusters.base import Cluster, ClusterAccess, ClusterUsageError
from conformance.errors import UsageError
from conformance.targets.options import TargetOptions

if TYPE_CHECKING:
    from conformance.clusters.kind import KindCluster
    from conformance.clusters.local import LocalCluster


def cluster_of(options: TargetOptions) -> Cluster:
    """The source of the cluster that the options ask for.

    Raises:
        UsageError: the options do not go together.
    """
    if options.cluster is None:
        raise UsageError("--target cluster needs --cluster kubeconfig, kind or local")
    if options.cluster == "kubeconfig":
        from conformance.clusters.kubeconfig import DEFAULT_IMAGE, KubeconfigCluster

        image = options.image or DEFAULT_IMAGE
        return KubeconfigCluster(options.kubeconfig, options.context, image=image)
    if options.cluster == "kind":
        return kind_cluster(options)
    return local_cluster(options)


def running_cluster(options: TargetOptions) -> ClusterAccess | None:
    """The cluster if it is there already; None where it must be started first.

    Raises:
        UsageError: the options do not go together.
        InfrastructureError: it is there and does not answer.
    """
    cluster = cluster_of(options)
    if options.cluster == "local":
        try:
            return local_cluster(options).access()
        except ClusterUsageError:
            return None
    if options.cluster == "kind":
        from conformance.clusters.kubeconfig import KubeconfigCluster

        kind = kind_cluster(options)
        if not kind.kubeconfig.exists():
            return None
        cluster = KubeconfigCluster(kind.kubeconfig, kind.context)
    return cluster.up()


def as_shown(options: TargetOptions, asked: str | None) -> TargetOptions:
    """The options with the simulated GPUs that a local cluster which runs already shows.

    Args:
        options: for the target.
        asked: the profile that the user named; None: none.

    Raises:
        UsageError: the user named others than it shows.
    """
    if options.cluster != "local" or running_cluster(options) is None:
        return options
    from conformance.clusters.local.owndriver import name_or_file

    shown = local_cluster(options).shown()
    if shown is None:
        return options
    wanted = shown._replace(
        simulate=name_or_file(asked) if asked else shown.simulate, dynamic_mig=options.dynamic_mig
    )
    if wanted.simulate != shown.simulate or (wanted.dynamic_mig and not shown.dynamic_mig):
        raise UsageError(
            f"the local cluster {options.name!r} runs already with {shown}; to change that: "
            f"dra-conformance cluster driver --name {options.name} {wanted}"
        )
    return replace(options, simulate=shown.simulate, dynamic_mig=shown.dynamic_mig)


def kind_cluster(options: TargetOptions) -> KindCluster:
    """The kind cluster of that name."""
    from conformance.clusters.kind import KindCluster
    from conformance.clusters.kubeconfig import DEFAULT_IMAGE

    return KindCluster(
        options.name, image=options.image or DEFAULT_IMAGE, images=options.image_archives
    )


def local_cluster(options: TargetOptions) -> LocalCluster:
    """The local cluster of that name."""
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
            dynamic_mig=options.dynamic_mig,
            persistent=options.keep,
        )
    )
