"""Where the cluster that a user asked for comes from: a kubeconfig, kind, or this machine."""

from __future__ import annotations

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
            persistent=options.keep,
        )
    )
