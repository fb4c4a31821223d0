"""``dra-conformance run``: scenarios against a target, shown, written down, compared."""

from __future__ import annotations

import re
import uuid
from dataclasses import asdict, replace
from pathlib import Path
from typing import Annotated

import typer

from conformance.cli.config import Config, NoConfig, recorded_config
from conformance.cli.options import print_progress, takes
from conformance.cli.planned import planned_lines
from conformance.cli.reporters import reporters
from conformance.cli.retelling import same_place
from conformance.compare.conclude import conclude_run
from conformance.engine.header import header
from conformance.engine.options import RunOptions
from conformance.engine.plan import plan
from conformance.engine.setup import Setup
from conformance.engine.shards import shard_of
from conformance.engine.suite import run_suite
from conformance.errors import UsageError
from conformance.report.folder import OutputFolder
from conformance.report.pages import write_pages
from conformance.resultfile.failed import only_failed
from conformance.resultfile.resume import resumed, to_resume
from conformance.scenario.selection import Selection, select
from conformance.targets.checks import check_options
from conformance.targets.opening import Opened, open_target, open_to_plan
from conformance.targets.options import TargetOptions
from conformance.targets.sources import check_context
from conformance.text import counted, visible

WORKERS = (
    "Scenarios that act at once on a cluster, those that only look on not counted; "
    "on the reference it is one."
)

DEFAULT_OUTPUT = Path("dra-conformance-results")


@takes("options", TargetOptions)
@takes("about", RunOptions)
@takes("selection", Selection)
def run(
    options: TargetOptions,
    about: RunOptions,
    selection: Selection,
    paths: Annotated[
        list[Path] | None, typer.Argument(help="Scenario files or folders; default: all shipped.")
    ] = None,
    workers: Annotated[int, typer.Option("-n", "--workers", help=WORKERS)] = 1,
    verbose: Annotated[bool, typer.Option("-v", "--verbose", help="Show every step.")] = False,
    fail_fast: Annotated[
        bool, typer.Option("-x", "--fail-fast", help="Begin nothing more after a failure.")
    ] = False,
    maxfail: Annotated[
        int,
        typer.Option(metavar="N", min=0, help="Begin nothing more after so many; 0 is never."),
    ] = 0,
    last_failed: Annotated[
        bool,
        typer.Option("--lf", "--last-failed", help="Only what failed in the last run into -o."),
    ] = False,
    resume: Annotated[
        Path | None,
        typer.Option(
            metavar="FOLDER",
            help="Go on with the run of this folder, which was interrupted or killed; give its "
            "options again.",
        ),
    ] = None,
    run_timeout: Annotated[
        str,
        typer.Option(
            metavar="TIME", help="End the run after so long, for example 30m, as Ctrl-C would."
        ),
    ] = "",
    durations: Annotated[
        int, typer.Option(metavar="N", min=0, help="Name the N slowest scenarios at the end.")
    ] = 0,
    config: Config = None,
    no_config: NoConfig = False,
    dry_run: Annotated[
        bool,
        typer.Option("--dry-run", help="Say what would run, be skipped, be made; make nothing."),
    ] = False,
) -> None:
    """Run scenarios and report: terminal, JUnit XML, Allure, HTML, one result file."""
    if about.compare and options.target == "reference":
        raise UsageError("--compare judges a cluster against the reference; use --target cluster")
    if config is not None and no_config:
        raise UsageError("--config and --no-config exclude each other")
    limit = _limit(run_timeout) if run_timeout else 0.0
    run_id = about.run_id or uuid.uuid4().hex[:8]
    output = resume or about.output or DEFAULT_OUTPUT
    if about.output is not None and not same_place(about.output, output):
        raise UsageError("--resume and -o name two folders; a run goes on in its own")
    options = replace(options, record=about.compare)
    if last_failed:
        if selection.failed_in is not None:
            raise UsageError("--lf and --failed-in exclude each other: both name an earlier run")
        selection = replace(selection, failed_in=output)
    selection = only_failed(selection)
    scenarios, shard = shard_of(select(paths or [], selection), about.shard)
    given = {"paths": paths, **asdict(selection), "ids": None}
    given |= {"config": recorded_config(config)}
    given |= {"retries": about.retries, "runTimeout": run_timeout}
    filters = {name: value for name, value in given.items() if value}
    check_options(options)
    check_context(options)
    if dry_run:
        with open_to_plan(options) as opened:
            setup = Setup(run_id, opened, time_factor=about.time_factor)
            if resume:
                head = header(scenarios, setup, {"workers": workers, **filters}, shard)
                scenarios = resumed(to_resume(output), head).rest(scenarios)
            for line in planned_lines(plan(scenarios, setup), opened, run_id):
                typer.echo(visible(line))
        return
    with OutputFolder(output, print_progress) as folder:
        earlier = to_resume(output) if resume else None
        with open_target(options, print_progress) as opened:
            setup = Setup(run_id, opened, retries=about.retries, time_factor=about.time_factor)
            begun = None
            if earlier is not None:
                head = header(scenarios, setup, {"workers": workers, **filters}, shard)
                begun = resumed(earlier, head)
                _check_gone(opened, earlier.run.run)
            rest = begun.rest(scenarios) if begun else scenarios
            if about.compare and rest:
                from conformance.compare.compare import against
                from conformance.compare.reference import on_reference

                print_progress("running the same scenarios on the reference")
                setup = replace(setup, compare=against(on_reference(rest, opened, run_id)))
            with reporters(folder, verbose=verbose, durations=durations) as told:
                result = run_suite(
                    scenarios,
                    setup,
                    told,
                    workers=workers,
                    options=filters,
                    shard=shard,
                    max_failures=1 if fail_fast else maxfail,
                    timeout=limit,
                    begun=begun,
                )
        write_pages(output)
    raise typer.Exit(conclude_run(result).code)


def _check_gone(opened: Opened, run: str) -> None:
    """See that nothing of a run is left, because its claims would hold devices.

    Raises:
        UsageError: something is, or is still being removed.
    """
    if left := opened.target.owned(run):
        raise UsageError(
            f"--resume: {counted(len(left), 'object')} of the interrupted run {run}"
            f" {'is' if len(left) == 1 else 'are'} still there, for example {left[0]}; remove that"
            " with `dra-conformance cleanup`, or wait until it is gone"
        )


def _limit(text: str) -> float:
    """Seconds of ``90s``, ``30m`` or ``2h``.

    Raises:
        UsageError: it is none of these.
    """
    found = re.fullmatch(r"([1-9][0-9]{0,4})([smh])", text)
    if found is None:
        raise UsageError(f"--run-timeout {text!r}: say it like 90s, 30m or 2h")
    return int(found[1]) * {"s": 1.0, "m": 60.0, "h": 3600.0}[found[2]]
