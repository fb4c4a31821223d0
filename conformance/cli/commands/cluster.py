"""``dra-conformance cluster``: clusters on this machine, to be used by hand."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated, Any, Literal

import typer

from conformance.cli.output import print_progress
from conformance.targets.opening.checks import check_options
from conformance.targets.opening.options import DEFAULT_SIMULATION, TargetOptions
from conformance.targets.opening.sources import local_cluster
from kube.base.commandline import add_options
from kube.base.errors import UsageError

cluster_command = typer.Typer(
    help="A real cluster on this machine, without a container engine.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
)

_START_FIELDS = (
    "name",
    "nodes",
    "binaries",
    "kubernetes_version",
    "node_kubernetes",
    "driver",
    "driver_command",
    "simulate",
    "dynamic_mig",
    "feature_gates",
)
_LOCAL: dict[str, Any] = {"target": "cluster", "cluster": "local"}
Name = Annotated[str, typer.Option("--name", metavar="NAME", help="Name of the cluster.")]


@cluster_command.command(short_help="Start a cluster that runs until `down`.")
@add_options("options", TargetOptions, _START_FIELDS, **_LOCAL, keep=True)
def up(
    options: TargetOptions,
    reference: Annotated[
        bool,
        typer.Option(
            "--reference", help="Serve the in-process reference instead, until Ctrl-C or `down`."
        ),
    ] = False,
) -> None:
    """Start a cluster that runs until `down`, and print how to use it."""
    if reference:
        _serve_reference(options)
        return
    check_options(options)
    access = local_cluster(options).up(print_progress)
    typer.echo(f"export KUBECONFIG={access.kubeconfig}")
    typer.echo(
        f"dra-conformance run --target cluster --cluster local --name {options.name}  # to test it"
    )
    typer.echo(f"dra-conformance cluster down --name {options.name}  # to remove it")


def _serve_reference(options: TargetOptions) -> None:
    """Serve the reference over HTTPS until a signal ends this process."""
    from conformance.targets.opening.target import open_reference
    from conformance.targets.reference.serving import ServedReference
    from conformance.targets.reference.target import ReferenceTarget
    from kubesim.front.serving import seconds_since_epoch

    served = ServedReference(options.name)
    reference_options = replace(
        options, target="reference", cluster=None, keep=False, name="default"
    )
    check_options(reference_options)
    start = seconds_since_epoch()
    with open_reference(reference_options, progress=print_progress, start=start) as opened:
        assert isinstance(opened.target, ReferenceTarget)
        with served.serving(opened.target) as backend:
            typer.echo(f"export KUBECONFIG={served.kubeconfig}")
            typer.echo(
                f"dra-conformance cluster down --cluster reference --name {options.name}"
                "  # to end it, or Ctrl-C"
            )
            try:
                backend.run()
            except KeyboardInterrupt:
                print_progress(f"ended the reference {options.name}")


@cluster_command.command(short_help="Change the simulated GPUs of a running cluster.")
@add_options("options", TargetOptions, ("name", "simulate", "dynamic_mig"), **_LOCAL)
def driver(options: TargetOptions) -> None:
    """Change the GPUs that the driver of a running cluster simulates."""
    from conformance.targets.opening.own_driver import change_simulation, simulation_of

    cluster = local_cluster(options)
    current = simulation_of(cluster)
    profile = options.simulate or (current.simulate if current else DEFAULT_SIMULATION)
    change_simulation(cluster, profile, dynamic_mig=options.dynamic_mig)
    typer.echo(f"local cluster {options.name} now simulates {simulation_of(cluster)}")


@cluster_command.command(short_help="Stop and delete a cluster.")
def down(
    name: Name = "default",
    cluster: Annotated[
        Literal["local", "kind", "reference"], typer.Option("--cluster", help="Kind of cluster.")
    ] = "local",
) -> None:
    """Stop and delete a cluster, including one whose run was killed."""
    if cluster == "reference":
        from conformance.targets.reference.serving import ServedReference

        existed = ServedReference(name).down()
    elif cluster == "kind":
        from localkube.kind import KindCluster

        kind = KindCluster(name)
        existed = kind.kubeconfig.parent.exists()
        kind.down(print_progress)
    else:
        from localkube import LocalCluster, LocalOptions

        local = LocalCluster(LocalOptions(name=name))
        existed = local.layout.dir.exists()
        local.down(print_progress)
    typer.echo(
        f"removed the {cluster} cluster {name}"
        if existed
        else f"there is no {cluster} cluster {name}; nothing was removed"
    )


@cluster_command.command()
def status(
    name: Name = "default",
    cluster: Annotated[
        Literal["local", "reference"], typer.Option("--cluster", help="Kind of cluster.")
    ] = "local",
) -> None:
    """List the components of a cluster."""
    if cluster == "reference":
        from conformance.targets.reference.serving import ServedReference

        process = ServedReference(name).process()
        if process is None:
            raise UsageError(f"there is no reference {name}")
        typer.echo(f"{'reference':<24} running, pid {process.pid}")
        return
    from localkube import LocalCluster, LocalOptions

    rows = LocalCluster(LocalOptions(name=name)).status()
    for row in rows:
        state = f"running, pid {row.pid}" if row.running else "stopped"
        typer.echo(f"{row.name:<24} {state:<20} {row.log}")
    if not rows:
        raise UsageError(f"there is no local cluster {name}")


@cluster_command.command(short_help="Build missing binaries of the cluster.")
@add_options("options", TargetOptions, ("kubernetes_version",), **_LOCAL)
def binaries(options: TargetOptions) -> None:
    """Build the cluster's binaries that the cache lacks, and print their folder."""
    from localkube.binaries.build import resolve_binaries
    from localkube.binaries.versions import CONTROL_PLANE_BINARIES, NODE_BINARIES
    from localkube.layout import default_cache

    needed, version = CONTROL_PLANE_BINARIES + NODE_BINARIES, f"v{options.version}"
    typer.echo(str(resolve_binaries(None, default_cache(), needed, print_progress, version)))
