"""``dra-conformance cleanup``: deletes what runs left in a cluster."""

from __future__ import annotations

from typing import Annotated

import typer

from conformance.cli.output import print_progress, printable
from conformance.engine.leftovers import sweep
from conformance.engine.options import RunOptions
from conformance.targets.opening.options import TargetOptions
from conformance.targets.opening.target import find_cluster, open_cluster_target
from kube.base.commandline import add_options
from kube.base.errors import ExitCode, UsageError
from kube.base.options import build_options
from localkube import stale_clusters


@add_options(
    "options", TargetOptions, ("cluster", "kubeconfig", "context", "name"), target="cluster"
)
def cleanup_command(
    options: TargetOptions,
    run: Annotated[
        str | None,
        typer.Option("--run", metavar="ID", help="Only objects of this run. [default: all runs]"),
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show what would be deleted.")] = False,
) -> None:
    """Delete what runs of the suite left in a cluster, and wait until it is gone."""
    if options.cluster is None:
        raise UsageError(
            "give --cluster kubeconfig --context NAME, --cluster kind or --cluster local"
        )
    if run is not None:
        build_options(RunOptions, {"run_id": run})  # refuses what cannot be a run's label
    if options.cluster == "local" and not dry_run:
        for stale in stale_clusters():
            typer.echo(f"removing local cluster {stale.layout.name}, whose run has ended")
            stale.down(print_progress)
    access = find_cluster(options)
    if access is None:
        typer.echo("nothing to do: the cluster is not running")
        return
    with open_cluster_target(access, options, only_read=True) as target:
        leftovers = target.owned(run, every_kind=True)
        for ref in leftovers:
            unless = ", unless another run uses it" if run and ref.kind == "DeviceClass" else ""
            typer.echo(printable(f"{'would delete' if dry_run else 'deleting'} {ref}{unless}"))
        problems = () if dry_run else sweep(target, run)
    for problem in problems:
        typer.echo(printable(f"not deleted: {problem}"))
    counts = (
        f"{len(leftovers)} found" if dry_run else f"{len(leftovers)} found, {len(problems)} left"
    )
    typer.echo(counts)
    if problems:
        raise typer.Exit(ExitCode.INCONCLUSIVE)
