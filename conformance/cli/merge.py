"""``dra-conformance merge``: the result files of a plan's shards as one, with all reports."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import Annotated

import typer

from conformance.cli.options import print_progress
from conformance.cli.reporters import reporters
from conformance.cli.retelling import result_files, retell
from conformance.compare.conclude import conclude_run
from conformance.engine.result import RunResult, retold
from conformance.report.folder import OutputFolder
from conformance.report.pages import write_pages
from conformance.resultfile.merge import merge as joined
from conformance.resultfile.read import load_results


def merge(
    files: Annotated[
        list[Path],
        typer.Argument(help="Result files of runs with --shard, or the folders with them."),
    ],
    output: Annotated[
        Path,
        typer.Option("--output", "-o", help="Folder for the joined result file and its reports."),
    ],
) -> None:
    """Join the result files of all shards of a run, and write all reports.

    What a missing or broken-off shard was to run is lost, and never a pass. Exit code: that of a
    run with all the scenarios.
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
