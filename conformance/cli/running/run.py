"""``dra-conformance run``: scenarios against a target, shown, written down, compared."""

from __future__ import annotations

import re
import uuid
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import typer

from conformance.cli.options import Paths
from conformance.cli.output import print_progress
from conformance.cli.running.config import Config, NoConfig, recorded_config
from conformance.cli.running.reporters import finish_reports, planned_lines, reporters, same_place
from conformance.compare.conclude import conclude_run
from conformance.debuglog import DEBUG_LOG, debug_log
from conformance.engine.events.run import ShardPlan
from conformance.engine.options import EXECUTION, OUTPUT, RunOptions
from conformance.engine.plan import header, plan, shard_of
from conformance.engine.setup import Setup
from conformance.engine.suite import run_suite
from conformance.errors import UsageError
from conformance.report.folder import OutputFolder
from conformance.resultfile.merge import only_failed, resumed, to_resume
from conformance.scenario.loader import LoadedScenario
from conformance.scenario.selection import Selection, select
from conformance.targets.opening.checks import check_options
from conformance.targets.opening.options import TargetOptions
from conformance.targets.opening.sources import check_context
from conformance.targets.opening.target import Opened, open_target, open_to_plan
from conformance.text import counted, visible
from kube.base.commandline import add_options
from kube.base.options import option_field

DEFAULT_OUTPUT = Path("dra-conformance-results")


def _limit(text: str) -> float:
    """Seconds of ``90s``, ``30m`` or ``2h``. Raises UsageError: it is none of these."""
    found = re.fullmatch(r"([1-9][0-9]{0,4})([smh])", text)
    if found is None:
        raise UsageError(f"--run-timeout {text!r}: must be a duration like 90s, 30m or 2h")
    return int(found[1]) * {"s": 1.0, "m": 60.0, "h": 3600.0}[found[2]]


def _number(flag: str) -> Any:
    """A conversion that refuses negative numbers."""

    def convert(number: int) -> int:
        if number < 0:
            raise UsageError(f"{flag} {number}: must not be negative")
        return number

    return convert


@dataclass(frozen=True, slots=True)
class Execution:
    """The options that only ``run`` has; pytest has its own for the same purposes.

    Attributes:
        run_timeout: as it was given, for example ``30m``; "" means no limit.
    """

    workers: int = option_field(
        1,
        "Maximum number of scenarios that run concurrently on a cluster; those that only "
        "observe are not counted.",
        EXECUTION,
        short="-n",
        metavar="N",
    )
    fail_fast: bool = option_field(False, "Stop after the first failure.", EXECUTION, short="-x")
    maxfail: int = option_field(
        0,
        "Stop after N failures. [default: 0, unlimited]",
        EXECUTION,
        metavar="N",
        convert=_number("--maxfail"),
    )
    run_timeout: str = option_field(
        "", "End the run after this time (30m), as Ctrl-C would.", EXECUTION, metavar="TIME"
    )
    resume: Path | None = option_field(
        None,
        "Continue the interrupted run in this folder; repeat its other options.",
        EXECUTION,
        metavar="FOLDER",
    )
    dry_run: bool = option_field(False, "Show the plan without running it.", EXECUTION)
    last_failed: bool = option_field(
        False,
        "Only scenarios that failed in the last run into the output folder.",
        "Selection",
        flag="--lf",
        short="--last-failed",
    )
    verbose: bool = option_field(False, "Show every step.", OUTPUT, short="-v")
    durations: int = option_field(
        0,
        "Show the N slowest scenarios at the end. [default: 0]",
        OUTPUT,
        metavar="N",
        convert=_number("--durations"),
    )


@add_options("options", TargetOptions)
@add_options("selection", Selection)
@add_options("about", RunOptions)
@add_options("execution", Execution)
def run(
    options: TargetOptions,
    selection: Selection,
    about: RunOptions,
    execution: Execution,
    paths: Paths = None,
    config: Config = None,
    no_config: NoConfig = False,
) -> None:
    """Run scenarios and report: terminal, JUnit XML, Allure, HTML, one result file."""
    output = execution.resume or about.output or DEFAULT_OUTPUT
    for wrong, message in (
        (
            about.compare and options.target == "reference",
            "--compare judges a cluster against the reference; use --target cluster",
        ),
        (config is not None and no_config, "--config and --no-config exclude each other"),
        (
            about.output is not None and not same_place(about.output, output),
            "--resume and -o name two folders; a run is continued in its own folder",
        ),
        (
            execution.resume is not None and execution.resume.is_file(),
            f"--resume {execution.resume}: is a file; give the folder of the interrupted run",
        ),
        (
            execution.last_failed and selection.failed_in is not None,
            "--lf and --failed-in exclude each other: both name an earlier run",
        ),
    ):
        if wrong:
            raise UsageError(message)
    limit = _limit(execution.run_timeout) if execution.run_timeout else 0.0
    options = replace(options, record=about.compare)
    if execution.last_failed:
        selection = replace(selection, failed_in=output)
    selection = only_failed(selection)
    scenarios, shard = shard_of(select(paths or [], selection), about.shard)
    given = {"workers": execution.workers, "paths": paths, **asdict(selection), "ids": None}
    given |= {"config": recorded_config(config), "retries": about.retries}
    given |= {"runTimeout": execution.run_timeout}
    check_options(options)
    check_context(options)
    job = _Job(
        options,
        about,
        execution,
        scenarios,
        shard,
        {name: value for name, value in given.items() if value},
        output,
        about.run_id or uuid.uuid4().hex[:8],
    )
    if execution.dry_run:
        job.show_plan()
    else:
        raise typer.Exit(job.run(limit))


@dataclass(frozen=True, slots=True)
class _Job:
    """What to run, and how.

    Attributes:
        filters: the options that the result file records, by name.
    """

    options: TargetOptions
    about: RunOptions
    execution: Execution
    scenarios: list[LoadedScenario]
    shard: ShardPlan | None
    filters: dict[str, Any]
    output: Path
    run_id: str

    def show_plan(self) -> None:
        with open_to_plan(self.options) as opened:
            setup, scenarios = self._setup(opened), self.scenarios
            if self.execution.resume:
                head = header(scenarios, setup, self.filters, self.shard)
                scenarios = resumed(to_resume(self.output), head).rest(scenarios)
            for line in planned_lines(plan(scenarios, setup), opened, self.run_id):
                typer.echo(visible(line))

    def run(self, limit: float) -> int:
        """Run it, for at most so many seconds if not 0; the exit code."""
        with (
            OutputFolder(self.output, print_progress) as folder,
            debug_log(self.output / DEBUG_LOG if self.about.debug else None),
        ):
            earlier = to_resume(self.output) if self.execution.resume else None
            with open_target(self.options, print_progress) as opened:
                setup, begun = self._setup(opened), None
                if earlier is not None:
                    head = header(self.scenarios, setup, self.filters, self.shard)
                    begun = resumed(earlier, head)
                    _check_gone(opened, earlier.run.run)
                rest = begun.rest(self.scenarios) if begun else self.scenarios
                if self.about.compare and rest:
                    from conformance.compare.compare import against
                    from conformance.compare.reference import on_reference

                    print_progress("running the same scenarios on the reference")
                    setup = replace(setup, compare=against(on_reference(rest, opened, self.run_id)))
                with reporters(
                    folder, verbose=self.execution.verbose, durations=self.execution.durations
                ) as told:
                    result = run_suite(
                        self.scenarios,
                        setup,
                        told,
                        workers=self.execution.workers,
                        options=self.filters,
                        shard=self.shard,
                        max_failures=1 if self.execution.fail_fast else self.execution.maxfail,
                        timeout=limit,
                        begun=begun,
                    )
            finish_reports(self.output)
        return conclude_run(result).code

    def _setup(self, opened: Opened) -> Setup:
        about = self.about
        return Setup(self.run_id, opened, retries=about.retries, time_factor=about.time_factor)


def _check_gone(opened: Opened, run: str) -> None:
    """Check that nothing of a run is left, because its claims would hold devices.

    Raises UsageError: objects are left, or are still being deleted.
    """
    if left := opened.target.owned(run):
        raise UsageError(
            f"--resume: the cluster still has {counted(len(left), 'object')} of the interrupted"
            f" run {run}, for example {left[0]}; delete with `dra-conformance cleanup`, or wait"
        )
