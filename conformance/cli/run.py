"""``dra-conformance run``: scenarios against a target, shown, written down, compared."""

from __future__ import annotations

import os
import sys
import uuid
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, closing
from dataclasses import asdict, replace
from pathlib import Path
from typing import Annotated, Any

import typer

from conformance.cli.options import print_progress, takes
from conformance.cli.planned import planned_lines
from conformance.compare.conclude import conclude_run
from conformance.engine.events import Reporter
from conformance.engine.options import RunOptions
from conformance.engine.plan import plan
from conformance.engine.result import RunResult
from conformance.engine.scenario_run import Setup
from conformance.engine.suite import run_suite
from conformance.errors import UsageError
from conformance.report.allure import AllureResults
from conformance.report.diagnostics import DiagnosticsFolder
from conformance.report.folder import (
    ALLURE,
    DIAGNOSTICS,
    JUNIT,
    RESULTS,
    OutputFolder,
)
from conformance.report.junit import JUnitFile
from conformance.report.pages import write_pages
from conformance.report.terminal import PlainConsole, TerminalReporter
from conformance.resultfile.write import ResultFile
from conformance.scenario.loader import LoadedScenario
from conformance.scenario.selection import Selection, select
from conformance.targets.checks import check_options
from conformance.targets.opening import open_target, open_to_plan
from conformance.targets.options import TargetOptions
from conformance.targets.sources import check_context
from conformance.text import visible

WORKERS = "Scenarios that act at once; on a cluster those that only look on are not counted."

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
    dry_run: Annotated[
        bool,
        typer.Option("--dry-run", help="Say what would run, be skipped, be made; make nothing."),
    ] = False,
) -> None:
    """Run scenarios and report: terminal, JUnit XML, Allure, HTML, one result file."""
    if about.compare and options.target == "reference":
        raise UsageError("--compare judges a cluster against the reference; use --target cluster")
    run_id = about.run_id or uuid.uuid4().hex[:8]
    output = about.output or DEFAULT_OUTPUT
    options = replace(options, record=about.compare)
    scenarios = select(paths or [], selection)
    check_options(options)
    check_context(options)
    if dry_run:
        with open_to_plan(options) as opened:
            for line in planned_lines(plan(scenarios, Setup(run_id, opened)), opened, run_id):
                typer.echo(visible(line))
        return
    with OutputFolder(output, print_progress) as folder:
        with open_target(options, print_progress) as opened:
            comparer = None
            if about.compare:
                from conformance.compare.compare import against
                from conformance.compare.reference import on_reference

                print_progress("running the same scenarios on the reference")
                comparer = against(on_reference(scenarios, opened, run_id))
            given = {"paths": paths, **asdict(selection)}
            filters = {name: value for name, value in given.items() if value}
            setup = Setup(run_id, opened, comparer)
            result = _run(scenarios, setup, folder, workers, verbose, filters)
        write_pages(output)
    raise typer.Exit(conclude_run(result).code)


def _run(
    scenarios: Sequence[LoadedScenario],
    setup: Setup,
    folder: OutputFolder,
    workers: int,
    verbose: bool,
    selection: Mapping[str, Any],
) -> RunResult:
    output = folder.path
    diagnostics = DiagnosticsFolder(output / DIAGNOSTICS)
    with ExitStack() as stack:
        results = stack.enter_context(closing(ResultFile(output / RESULTS)))
        terminal = TerminalReporter(
            live=False if os.environ.get("CI") or not sys.stdout.isatty() else None,
            diagnostics=diagnostics.place,
            verbose=verbose,
        )
        stack.callback(terminal.close)
        reporters: list[Reporter] = [
            folder,
            results,
            diagnostics,
            JUnitFile(output / JUNIT),
            AllureResults(output / ALLURE),
            terminal,
        ]
        result = run_suite(scenarios, setup, reporters, workers=workers, options=selection)
    PlainConsole().print(f"reports in {visible(str(output))}", soft_wrap=True)
    return result
