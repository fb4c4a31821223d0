"""``dra-conformance cleanup``: delete everything with a run's label, and nothing else."""

from __future__ import annotations

from typing import Annotated

import typer

from conformance.cli.options import takes
from conformance.cli.output import print_progress, printable
from conformance.clusters.local import stale_clusters
from conformance.engine.options import RunOptions
from conformance.engine.sweep import sweep
from conformance.errors import ExitCode, UsageError
from conformance.options import from_given
from conformance.targets.opening import open_existing
from conformance.targets.options import TargetOptions


@takes("options", TargetOptions, ("cluster", "kubeconfig", "context", "name"), target="cluster")
def cleanup(
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
        from_given(RunOptions, {"run_id": run})  # refuses what cannot be a run's label
    if options.cluster == "local" and not dry_run:
        for stale in stale_clusters():
            typer.echo(f"removing local cluster {stale.layout.name}, whose run has ended")
            stale.down(print_progress)
    with open_existing(options) as target:
        if target is None:
            typer.echo("nothing to do: the cluster is not running")
            return
        found = target.owned(run, every_kind=True)
        for ref in found:
            unless = ", unless another run uses it" if run and ref.kind == "DeviceClass" else ""
            typer.echo(f"{'would delete' if dry_run else 'deleting'} {ref}{unless}")
        left = () if dry_run else sweep(target, run)
    for problem in left:
        typer.echo(printable(f"not deleted: {problem}"))
    typer.echo(f"{len(found)} found, {len(left)} left" if not dry_run else f"{len(found)} found")
    if left:
        raise typer.Exit(ExitCode.INCONCLUSIVE)
