"""``dra-conformance render``: a run's reports again, from its result file."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from conformance.cli.output import print_progress
from conformance.cli.reporters import find_result_files, finish_reports, retell
from conformance.compare.conclude import conclude_run
from conformance.report.files import FORMATS, DiagnosticsFolder, file_reporters
from conformance.report.folder import DIAGNOSTICS, OutputFolder
from conformance.report.pages import PAGES
from conformance.results.events.result import RunResult, retold
from conformance.results.events.run import RunFinished
from conformance.results.events.scenario import count
from conformance.results.read import load_results
from conformance.scenario.documents.validate import hint
from kube.base.errors import UsageError

ALL_FORMATS = (*PAGES, *FORMATS)


def render_command(
    results: Annotated[
        Path, typer.Argument(metavar="PATH", help="Result file of a run, or its folder.")
    ],
    output: Annotated[
        Path,
        typer.Option(
            "--output",
            "-o",
            metavar="FOLDER",
            help="Folder for the reports, other than that of the run.",
        ),
    ],
    formats: Annotated[
        str,
        typer.Option(
            "--format",
            metavar="NAMES",
            help=f"Some of {','.join(ALL_FORMATS)}; diagnostics are always written.",
        ),
    ] = ",".join(ALL_FORMATS),
) -> None:
    """Regenerate a run's reports: HTML, Markdown, JSON, JUnit XML, Allure, diagnostics.

    If the result file has no footer, scenarios without a result are lost. Exit code: as for the
    run.
    """
    [file] = find_result_files([results], output)
    names = formats.split(",")
    for name in names:
        if name not in ALL_FORMATS:
            raise UsageError(f"--format: unknown format {name!r}; {hint(name, ALL_FORMATS)}")
    result = load_results(file, truncated_ok=True)
    with OutputFolder(output, print_progress) as folder:
        files = file_reporters(output, DiagnosticsFolder(output / DIAGNOSTICS), formats=names)
        # Only its end makes the reporters write.
        end = [_end_truncated(result)] if result.footer is None else []
        retell([*retold(result), *end], [folder, *files])
        finish_reports(output, result, names)
    raise typer.Exit(conclude_run(result).code)


def _end_truncated(result: RunResult) -> RunFinished:
    """Make the end of a run whose result file has none, as that of an interrupted run."""
    return RunFinished(
        run=result.run.run,
        counts=count(result.finished),
        finished_at=result.run.started_at,
        seconds=sum(event.seconds for event in result.finished),
        interrupted=True,
        left=(),
    )
