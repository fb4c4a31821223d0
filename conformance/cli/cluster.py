"""Commands about the local cluster: up, driver, down, status."""

from __future__ import annotations

from typing import Annotated, Literal

import typer

from conformance.cli.options import (
    Binaries,
    Driver,
    DriverCommand,
    DynamicMig,
    FeatureGates,
    Name,
    Nodes,
    Simulate,
    feature_gates,
    say,
    split_command,
)
from conformance.clusters.local import LocalCluster, LocalOptions
from conformance.data import scenarios_dir
from conformance.scenario.profile import load_profile
from conformance.targets.options import DEFAULT_PROFILE

app = typer.Typer(
    help="A real cluster on this machine, without a container engine.",
    no_args_is_help=True,
    rich_markup_mode=None,
)


@app.command()
def up(
    name: Name = "default",
    nodes: Nodes = 1,
    binaries: Binaries = None,
    driver: Driver = "gpu.nvidia.com",
    driver_command: DriverCommand = "",
    simulate: Simulate = None,
    dynamic_mig: DynamicMig = False,
    gate: FeatureGates = None,
) -> None:
    """Start a cluster that stays until `down`, and print how to use it."""
    profile = load_profile(driver, scenarios_dir() / "drivers")
    options = LocalOptions(
        name=name,
        nodes=nodes,
        binaries=binaries,
        driver=nodes > 0,
        driver_name=profile.driver,
        driver_command=split_command(driver_command) or None,
        simulate=simulate or DEFAULT_PROFILE,
        dynamic_mig=dynamic_mig,
        feature_gates=feature_gates(gate),
        persistent=True,
    )
    access = LocalCluster(options).up(say)
    typer.echo(f"export KUBECONFIG={access.kubeconfig}")
    typer.echo(f"dra-conformance run --target cluster --cluster local --name {name}  # to test it")
    typer.echo(f"dra-conformance cluster down --name {name}  # to remove it")


@app.command()
def driver(
    name: Name = "default", simulate: Simulate = None, dynamic_mig: DynamicMig = False
) -> None:
    """Have our own driver of a cluster that runs show other simulated GPUs."""
    cluster = LocalCluster(LocalOptions(name=name))
    before = cluster.shown()
    kept = before.simulate if before else DEFAULT_PROFILE
    cluster.change_driver(simulate or kept, dynamic_mig=dynamic_mig)
    typer.echo(f"local cluster {name} runs with {cluster.shown()}")


@app.command()
def down(
    name: Name = "default",
    cluster: Annotated[
        Literal["local", "kind"], typer.Option("--cluster", help="What kind of cluster it is.")
    ] = "local",
) -> None:
    """Stop a cluster and remove all of it, also one whose run was killed."""
    if cluster == "kind":
        from conformance.clusters.kind import KindCluster

        kind = KindCluster(name)
        found = kind.kubeconfig.parent.exists()
        kind.down(say)
    else:
        local = LocalCluster(LocalOptions(name=name))
        found = local.layout.dir.exists()
        local.down(say)
    typer.echo(
        f"removed the {cluster} cluster {name}"
        if found
        else f"there is no {cluster} cluster {name}; nothing was removed"
    )


@app.command()
def status(name: Name = "default") -> None:
    """Say which components of a cluster run."""
    rows = LocalCluster(LocalOptions(name=name)).status()
    for row in rows:
        state = f"runs, pid {row.pid}" if row.running else "does not run"
        typer.echo(f"{row.name:<24} {state:<20} {row.log}")
    if not rows:
        typer.echo(f"there is no local cluster {name}")


@app.command()
def binaries() -> None:
    """Build the cluster's binaries where the cache lacks them, and print where they are."""
    from conformance.clusters.local.binaries import resolve_binaries
    from conformance.clusters.local.layout import default_cache
    from conformance.clusters.local.versions import CONTROL_PLANE_BINARIES, NODE_BINARIES

    needed = CONTROL_PLANE_BINARIES + NODE_BINARIES
    typer.echo(str(resolve_binaries(None, default_cache(), needed, say)))
