"""``dra-conformance merge``: the shards of a run, joined into one result file with its reports."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from conformance.cli.output import print_progress
from conformance.cli.reporters import find_result_files, finish_reports, open_reporters, retell
from conformance.compare.conclude import conclude_run
from conformance.report.folder import OutputFolder
from conformance.results.events.result import RunResult, retold
from conformance.results.merge import merge
from conformance.results.read import MAX_BYTES, load_results
from conformance.results.sharing import Sharing
from conformance.results.times import parse_time
from kube.base.errors import ExitCode, UsageError


def merge_command(
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
    result_files = find_result_files(files, output)
    if sum(file.stat().st_size for file in result_files if file.is_file()) > MAX_BYTES:
        raise UsageError(
            f"{result_files[0]} and the others are more than {MAX_BYTES >> 20} MiB, so the joined"
            " file could not be read; give the shards fewer scenarios"
        )
    with OutputFolder(output, print_progress) as folder:
        code = _join(result_files, folder)
        finish_reports(output)
    raise typer.Exit(code)


def _join(files: Sequence[Path], folder: OutputFolder) -> ExitCode:
    """Write the joined result file and its reports, but for the pages that are made from that.

    Nothing of what was read stays, so that it is not there twice when the joined file is read.
    """
    sharing = Sharing()
    result = merge([load_results(file, truncated_ok=True, sharing=sharing) for file in files])
    with open_reporters(folder, clock=lambda: _read_end_time(result)) as reporters:
        retell(retold(result), reporters)
    return conclude_run(result).code


def _read_end_time(result: RunResult) -> float:
    """Return when the run ended, in seconds since the epoch; 0 where that is no time."""
    finished_at = result.footer.finished_at if result.footer else ""
    try:
        return parse_time(finished_at).timestamp()
    except ValueError:
        return 0.0
