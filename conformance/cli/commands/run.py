"""``dra-conformance run``: scenarios against a target, shown, written down, compared."""

from __future__ import annotations

import re
import uuid
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import typer

from conformance.cli.config import Config, NoConfig, record_config
from conformance.cli.dryrun import describe_plans
from conformance.cli.options import Paths
from conformance.cli.output import print_progress
from conformance.cli.reporters import finish_reports, is_same_path, open_reporters
from conformance.compare.conclude import conclude_run
from conformance.debuglog import DEBUG_LOG, debug_log
from conformance.engine.options import EXECUTION, OUTPUT, RunOptions
from conformance.engine.plan import header, plan, shard_of
from conformance.engine.second import Second, may_have_second, start_second
from conformance.engine.setup import Setup
from conformance.engine.suite import run_suite
from conformance.report.folder import OutputFolder
from conformance.results.events.result import RunResult
from conformance.results.events.run import ShardPlan
from conformance.results.merge import only_failed, resumed, to_resume
from conformance.scenario.loader import LoadedScenario
from conformance.scenario.selection import Selection, select
from conformance.targets.opening.checks import check_options
from conformance.targets.opening.options import TargetOptions
from conformance.targets.opening.sources import check_context
from conformance.targets.opening.target import Opened, open_running_target, open_target
from kube.base.commandline import add_options
from kube.base.errors import UsageError
from kube.base.options import option_field
from kube.base.text import counted, visible

DEFAULT_OUTPUT = Path("dra-conformance-results")


def _parse_limit(text: str) -> float:
    """Return the seconds of ``90s``, ``30m`` or ``2h``; 0 for "". Raises UsageError."""
    if not text:
        return 0.0
    match = re.fullmatch(r"([1-9][0-9]{0,4})([smh])", text)
    if match is None:
        raise UsageError(f"--run-timeout {text!r}: must be a duration like 90s, 30m or 2h")
    return int(match[1]) * {"s": 1.0, "m": 60.0, "h": 3600.0}[match[2]]


def _refuse_negative(flag: str) -> Callable[[int], int]:
    """Make a conversion that raises UsageError for a negative number."""

    def convert(number: int) -> int:
        if number < 0:
            raise UsageError(f"{flag} {number}: must not be negative")
        return number

    return convert


@dataclass(frozen=True, slots=True)
class ExecutionOptions:
    """The options that only ``run`` has; pytest has its own for the same purposes.

    Attributes:
        run_timeout: as it was given, for example ``30m``; "" means no limit.
    """

    workers: int | None = option_field(
        None,
        "Maximum number of scenarios that run concurrently on a cluster; those that only "
        "observe are not counted. [default: as many as suit its nodes, and the processors of "
        "this machine where it runs here]",
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
        convert=_refuse_negative("--maxfail"),
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
        convert=_refuse_negative("--durations"),
    )


@add_options("options", TargetOptions)
@add_options("selection", Selection)
@add_options("run_options", RunOptions)
@add_options("execution", ExecutionOptions)
def run_command(
    options: TargetOptions,
    selection: Selection,
    run_options: RunOptions,
    execution: ExecutionOptions,
    paths: Paths = None,
    config: Config = None,
    no_config: NoConfig = False,
) -> None:
    """Run scenarios and report: terminal, JUnit XML, Allure, HTML, one result file."""
    output = execution.resume or run_options.output or DEFAULT_OUTPUT
    if run_options.compare and options.target == "reference":
        raise UsageError("--compare judges a cluster against the reference; use --target cluster")
    if config is not None and no_config:
        raise UsageError("--config and --no-config exclude each other")
    if run_options.output is not None and not is_same_path(run_options.output, output):
        raise UsageError("--resume and -o name two folders; a run is continued in its own folder")
    if execution.resume is not None and execution.resume.is_file():
        raise UsageError(
            f"--resume {execution.resume}: is a file; give the folder of the interrupted run"
        )
    if execution.last_failed and selection.failed_in is not None:
        raise UsageError("--lf and --failed-in exclude each other: both name an earlier run")
    time_limit = _parse_limit(execution.run_timeout)
    options = replace(options, record=run_options.compare)
    if execution.last_failed:
        selection = replace(selection, failed_in=output)
    selection = only_failed(selection)
    scenarios, shard = shard_of(select(paths or [], selection), run_options.shard)
    check_options(options)
    check_context(options)
    job = _Job(
        options,
        run_options,
        execution,
        scenarios,
        shard,
        _record_options(run_options, execution, selection, paths, config),
        output,
        run_options.run_id or uuid.uuid4().hex[:8],
    )
    if execution.dry_run:
        job.show_plan()
    else:
        raise typer.Exit(job.run(time_limit))


def _record_options(
    run_options: RunOptions,
    execution: ExecutionOptions,
    selection: Selection,
    paths: Sequence[Path] | None,
    config: Path | None,
) -> dict[str, Any]:
    """Return the options of a run that its result file records, by name, but for the target's."""
    options = {
        "workers": execution.workers,
        "paths": paths,
        **asdict(selection),
        "ids": None,
        "config": record_config(config),
        "retries": run_options.retries,
        "runTimeout": execution.run_timeout,
    }
    return {name: value for name, value in options.items() if value}


@dataclass(frozen=True, slots=True)
class _Job:
    """What to run, and how.

    Attributes:
        recorded_options: the options that the result file records, by name.
    """

    options: TargetOptions
    run_options: RunOptions
    execution: ExecutionOptions
    scenarios: list[LoadedScenario]
    shard: ShardPlan | None
    recorded_options: dict[str, Any]
    output: Path
    run_id: str

    def show_plan(self) -> None:
        with open_running_target(self.options) as opened:
            setup, scenarios = self._make_setup(opened), self.scenarios
            if self.execution.resume:
                head = header(scenarios, setup, self.recorded_options, self.shard)
                scenarios = resumed(to_resume(self.output), head).rest(scenarios)
            for line in describe_plans(plan(scenarios, setup), opened, self.run_id):
                typer.echo(visible(line))

    def run(self, time_limit: float) -> int:
        """Run it, for at most so many seconds if not 0; return the exit code."""
        with (
            OutputFolder(self.output, print_progress) as folder,
            debug_log(self.output / DEBUG_LOG if self.run_options.debug else None),
        ):
            interrupted_run = to_resume(self.output) if self.execution.resume else None
            # Asked before the first runs: a cluster that is there already is used alone.
            second_allowed = may_have_second(self.options, self.execution.workers)
            with open_target(self.options, print_progress) as opened:
                setup, begun = self._make_setup(opened), None
                if interrupted_run is not None:
                    head = header(self.scenarios, setup, self.recorded_options, self.shard)
                    begun = resumed(interrupted_run, head)
                    check_nothing_left(opened, interrupted_run.run.run)
                pending = begun.rest(self.scenarios) if begun else self.scenarios
                offered = pending if second_allowed else ()
                with start_second(offered, setup, print_progress) as await_second:
                    # The reference runs while the second cluster starts.
                    setup = self._with_comparison(setup, pending)
                    second = await_second()
                    if second is not None:
                        compared = self._with_comparison(second.setup, second.scenarios)
                        second = replace(second, setup=compared)
                    result = self._run_suite(setup, second, begun, folder, time_limit)
            finish_reports(self.output)
        return conclude_run(result).code

    def _run_suite(
        self,
        setup: Setup,
        second: Second | None,
        begun: RunResult | None,
        folder: OutputFolder,
        time_limit: float,
    ) -> RunResult:
        with open_reporters(
            folder, verbose=self.execution.verbose, durations=self.execution.durations
        ) as reporters:
            return run_suite(
                self.scenarios,
                setup,
                reporters,
                workers=self.execution.workers,
                options=self.recorded_options,
                shard=self.shard,
                max_failures=1 if self.execution.fail_fast else self.execution.maxfail,
                timeout=time_limit,
                begun=begun,
                second=second,
            )

    def _with_comparison(self, setup: Setup, scenarios: Sequence[LoadedScenario]) -> Setup:
        """Return the setup with what compares these scenarios, where that was asked for."""
        if not self.run_options.compare or not scenarios:
            return setup
        from conformance.compare.compare_scenarios import compare_with
        from conformance.compare.reference import run_on_reference

        print_progress("running the same scenarios on the reference")
        on_the_reference = run_on_reference(scenarios, setup.opened, self.run_id)
        return replace(setup, compare=compare_with(on_the_reference))

    def _make_setup(self, opened: Opened) -> Setup:
        retries, time_factor = self.run_options.retries, self.run_options.time_factor
        return Setup(self.run_id, opened, retries=retries, time_factor=time_factor)


def check_nothing_left(opened: Opened, run_id: str) -> None:
    """Check that nothing of a run is left, because its claims would hold devices.

    Raises UsageError: objects are left, or are still being deleted.
    """
    if leftovers := opened.target.owned(run_id):
        raise UsageError(
            f"--resume: the cluster still has {counted(len(leftovers), 'object')} of the"
            f" interrupted run {run_id}, for example {leftovers[0]}; delete with `dra-conformance"
            " cleanup`, or wait"
        )
