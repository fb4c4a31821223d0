"""Reports from result files: of one run (``render``), or of all its shards (``merge``)."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from conformance.cli.output import print_progress
from conformance.cli.running.reporters import finish_reports, reporters, result_files, retell
from conformance.compare.conclude import conclude_run
from conformance.report.files import FORMATS, DiagnosticsFolder, file_reporters
from conformance.report.folder import DIAGNOSTICS, OutputFolder
from conformance.report.pages import PAGES
from conformance.results.events.result import RunResult, retold
from conformance.results.events.run import RunFinished
from conformance.results.events.scenario import count
from conformance.results.merge import merge as joined
from conformance.results.read import MAX_BYTES, load_results
from conformance.results.sharing import Sharing
from conformance.results.times import parse_time
from conformance.scenario.documents.validate import hint
from kube.base.errors import ExitCode, UsageError

ALL = (*PAGES, *FORMATS)


def render(
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
            help=f"Some of {','.join(ALL)}; diagnostics are always written.",
        ),
    ] = ",".join(ALL),
) -> None:
    """Regenerate a run's reports: HTML, Markdown, JSON, JUnit XML, Allure, diagnostics.

    If the result file has no footer, scenarios without a result are lost. Exit code: as for the
    run.
    """
    [file] = result_files([results], output)
    wanted = formats.split(",")
    for name in wanted:
        if name not in ALL:
            raise UsageError(f"--format: unknown format {name!r}; {hint(name, ALL)}")
    result = load_results(file, truncated_ok=True)
    with OutputFolder(output, print_progress) as folder:
        files = file_reporters(output, DiagnosticsFolder(output / DIAGNOSTICS), formats=wanted)
        # Only its end makes the reporters write.
        end = [_cut_off(result)] if result.footer is None else []
        retell([*retold(result), *end], [folder, *files])
        finish_reports(output, result, wanted)
    raise typer.Exit(conclude_run(result).code)


def _cut_off(result: RunResult) -> RunFinished:
    return RunFinished(
        run=result.run.run,
        counts=count(result.finished),
        finished_at=result.run.started_at,
        seconds=sum(event.seconds for event in result.finished),
        interrupted=True,
        left=(),
    )


def merge(
    files: Annotated[
        list[Path],
        typer.Argument(metavar="PATH", help="Result files of runs with --shard, or their folders."),
    ],
    output: Annotated[
        Path,
        typer.Option(
            "--output",
            "-o",
            metavar="FOLDER",
            help="Folder for the joined result file and its reports.",
        ),
    ],
) -> None:
    """Join the result files of all shards of a run, and write all reports.

    Scenarios of a missing or interrupted shard are reported as lost. Exit code: as for a run of
    all scenarios.
    """
    places = result_files(files, output)
    if sum(place.stat().st_size for place in places if place.is_file()) > MAX_BYTES:
        raise UsageError(
            f"{places[0]} and the others are more than {MAX_BYTES >> 20} MiB, so the joined file"
            " could not be read; give the shards fewer scenarios"
        )
    with OutputFolder(output, print_progress) as folder:
        code = _join(places, folder)
        finish_reports(output)
    raise typer.Exit(code)


def _join(places: Sequence[Path], folder: OutputFolder) -> ExitCode:
    """Write the joined result file and its reports, but for the pages that are made from that.

    Nothing of what was read stays, so that it is not there twice when the joined file is read.
    """
    sharing = Sharing()
    result = joined([load_results(place, truncated_ok=True, sharing=sharing) for place in places])
    with reporters(folder, clock=lambda: _ended(result)) as told:
        retell(retold(result), told)
    return conclude_run(result).code


def _ended(result: RunResult) -> float:
    """When the run ended, in seconds since the epoch; 0 where that is no time."""
    ended = result.footer.finished_at if result.footer else ""
    try:
        return parse_time(ended).timestamp()
    except ValueError:
        return 0.0
