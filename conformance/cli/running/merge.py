"""``dra-conformance merge``: the result files of a plan's shards as one, with all reports."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import Annotated

import typer

from conformance.cli.output import print_progress
from conformance.cli.running.reporters import reporters, result_files, retell
from conformance.compare.conclude import conclude_run
from conformance.engine.result import RunResult, retold
from conformance.report.folder import OutputFolder
from conformance.report.pages import write_pages
from conformance.resultfile.merge import merge as joined
from conformance.resultfile.read import load_results


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
    result = joined([load_results(place, truncated_ok=True) for place in places])
    with OutputFolder(output, print_progress) as folder:
        with reporters(folder, clock=lambda: _ended(result)) as told:
            retell(retold(result), told)
        write_pages(output)
    raise typer.Exit(conclude_run(result).code)


def _ended(result: RunResult) -> float:
    """When the run ended, in seconds since the epoch; 0 where that is no time."""
    ended = result.footer.finished_at if result.footer else ""
    try:
        return datetime.fromisoformat(ended).timestamp()
    except ValueError:
        return 0.0
