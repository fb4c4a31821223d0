"""``dra-conformance cluster``: start, change, stop and inspect the local cluster."""

from __future__ import annotations

from typing import Annotated, Literal

import typer

from conformance.cli.options import takes
from conformance.cli.output import print_progress
from conformance.errors import UsageError
from conformance.targets.checks import check_options
from conformance.targets.options import DEFAULT_SIMULATION, TargetOptions
from conformance.targets.sources import local_cluster

app = typer.Typer(
    help="A real cluster on this machine, without a container engine.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
)

_STARTED = (
    "name",
    "nodes",
    "binaries",
    "kubernetes_version",
    "driver",
    "driver_command",
    "simulate",
    "dynamic_mig",
    "feature_gates",
)
_LOCAL = {"target": "cluster", "cluster": "local"}
Name = Annotated[str, typer.Option("--name", metavar="NAME", help="Name of the cluster.")]


@app.command(short_help="Start a cluster that runs until `down`.")
@takes("options", TargetOptions, _STARTED, **_LOCAL, keep=True)
def up(options: TargetOptions) -> None:
    """Start a cluster that runs until `down`, and print how to use it."""
    check_options(options)
    access = local_cluster(options).up(print_progress)
    typer.echo(f"export KUBECONFIG={access.kubeconfig}")
    typer.echo(
        f"dra-conformance run --target cluster --cluster local --name {options.name}  # to test it"
    )
    typer.echo(f"dra-conformance cluster down --name {options.name}  # to remove it")


@app.command(short_help="Change the simulated GPUs of a running cluster.")
@takes("options", TargetOptions, ("name", "simulate", "dynamic_mig"), **_LOCAL)
def driver(options: TargetOptions) -> None:
    """Change the GPUs that the driver of a running cluster simulates."""
    cluster = local_cluster(options)
    before = cluster.simulation()
    kept = before.simulate if before else DEFAULT_SIMULATION
    cluster.change_driver(options.simulate or kept, dynamic_mig=options.dynamic_mig)
    typer.echo(f"local cluster {options.name} now simulates {cluster.simulation()}")


@app.command(short_help="Stop and delete a cluster.")
def down(
    name: Name = "default",
    cluster: Annotated[
        Literal["local", "kind"], typer.Option("--cluster", help="Kind of cluster.")
    ] = "local",
) -> None:
    """Stop and delete a cluster, including one whose run was killed."""
    if cluster == "kind":
        from conformance.clusters.kind import KindCluster

        kind = KindCluster(name)
        found = kind.kubeconfig.parent.exists()
        kind.down(print_progress)
    else:
        from conformance.clusters.local import LocalCluster, LocalOptions

        local = LocalCluster(LocalOptions(name=name))
        found = local.layout.dir.exists()
        local.down(print_progress)
    typer.echo(
        f"removed the {cluster} cluster {name}"
        if found
        else f"there is no {cluster} cluster {name}; nothing was removed"
    )


@app.command()
def status(name: Name = "default") -> None:
    """List the components of a cluster."""
    from conformance.clusters.local import LocalCluster, LocalOptions

    rows = LocalCluster(LocalOptions(name=name)).status()
    for row in rows:
        state = f"running, pid {row.pid}" if row.running else "stopped"
        typer.echo(f"{row.name:<24} {state:<20} {row.log}")
    if not rows:
        raise UsageError(f"there is no local cluster {name}")


@app.command(short_help="Build missing binaries of the cluster.")
@takes("options", TargetOptions, ("kubernetes_version",), **_LOCAL)
def binaries(options: TargetOptions) -> None:
    """Build the cluster's binaries that the cache lacks, and print their folder."""
    from conformance.clusters.local.binaries.build import resolve_binaries
    from conformance.clusters.local.binaries.versions import CONTROL_PLANE_BINARIES, NODE_BINARIES
    from conformance.clusters.local.layout import default_cache

    needed, version = CONTROL_PLANE_BINARIES + NODE_BINARIES, f"v{options.version}"
    typer.echo(str(resolve_binaries(None, default_cache(), needed, print_progress, version)))
